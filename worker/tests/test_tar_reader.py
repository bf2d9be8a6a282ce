"""Archives of GNU tar and of Python's tarfile, and hostile ones."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from wqlab_worker.tar_reader import TarReader


def reader(data: bytes, total_bytes: int = 1 << 20, members: int = 100) -> TarReader:
    return TarReader(io.BytesIO(data), total_bytes=total_bytes, members=members)


def header(name: str, size: int = 0, type_: bytes = tarfile.REGTYPE) -> bytes:
    entry = tarfile.TarInfo(name)
    entry.size, entry.type = size, type_
    return entry.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize("form", ["gnu", "ustar", "posix"])
def test_files_of_gnu_tar_are_read(tmp_path: Path, form: str) -> None:
    folder = tmp_path / "lib" / ("long" * 20)
    folder.mkdir(parents=True)
    (folder / "one.ko").write_bytes(b"1" * 700)
    (folder / "empty").write_bytes(b"")
    (folder / "link").symlink_to("one.ko")
    command = ["tar", f"--format={form}", "--sort=name", "-C", tmp_path, "-cf", tmp_path / "all.tar", "lib"]
    subprocess.run(command, check=True)
    found = {}
    archive = reader((tmp_path / "all.tar").read_bytes())
    for entry in archive:
        found[entry.name.rpartition("/")[2]] = archive.read(1000) if entry.isreg() else entry.linkname
    assert found == {"one.ko": b"1" * 700, "empty": b"", "link": "one.ko"}


def test_unread_content_is_skipped() -> None:
    data = header("one", 600) + bytes(1024) + header("two", 1) + b"x" + bytes(511) + bytes(1024)
    assert [entry.name for entry in reader(data)] == ["one", "two"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (header("x", 600) + bytes(100), "truncated"),
        (header("x", 2 << 20), "too large"),
        (header("x", -5), "unsupported"),
        (header("x", 5, tarfile.GNUTYPE_SPARSE), "unsupported"),
        (header("x", 1 << 19, tarfile.GNUTYPE_LONGNAME) + bytes(1 << 19), "at most 4096"),
        (header("x") * 101, "too many"),
        (b"x" * 512, "invalid header"),
    ],
)
def test_hostile_archive_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(tarfile.TarError, match=message):
        list(reader(data))


def test_member_over_the_limit_is_refused() -> None:
    archive = reader(header("x", 600) + bytes(1024))
    next(iter(archive))
    with pytest.raises(tarfile.ReadError, match="at most 599"):
        archive.read(599)
