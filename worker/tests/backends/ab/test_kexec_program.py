"""kexec of the root filesystem, as it runs on a machine that has none."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from wqlab_bench import cpio
from wqlab_worker.backends.ab import kexec_program

SH = Path("/bin/sh").resolve()
LIBC = next(Path("/usr/lib").glob("*-linux-gnu/libc.so.6"))
LOADER = Path("/lib64/ld-linux-x86-64.so.2").resolve()


def image(path: Path, *entries: cpio.Entry) -> Path:
    folders = ["usr", "usr/sbin", "usr/lib", "usr/lib64"]
    with path.open("wb") as file:
        cpio.write_archive([*(cpio.directory(name) for name in folders), *entries], file)
    return path


def test_the_program_comes_with_the_libraries_that_it_needs(tmp_path: Path) -> None:
    """A shell in place of kexec runs with the loader of the archive, from any folder."""
    rootfs = image(
        tmp_path / "rootfs",
        cpio.file("usr/sbin/kexec", SH.read_bytes(), executable=True),
        cpio.file("usr/lib/libc.so.6", LIBC.read_bytes()),
        cpio.file("usr/lib/libunused.so.1", b"unused"),
        cpio.file("usr/lib64/ld-linux-x86-64.so.2", LOADER.read_bytes()),
    )
    with tarfile.open(fileobj=io.BytesIO(kexec_program.archive(rootfs))) as archive:
        assert sorted(archive.getnames()) == ["kexec", "ld.so", "libc.so.6"]
        assert all(member.mode == 0o755 for member in archive)
    assert kexec_program.command("/dev/shm/x") == "/dev/shm/x/ld.so --library-path /dev/shm/x /dev/shm/x/kexec"


def test_an_image_without_kexec_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has no usr/sbin/kexec"):
        kexec_program.archive(image(tmp_path / "rootfs", cpio.file("usr/sbin/other", b"x")))
