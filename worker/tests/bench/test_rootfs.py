"""The content of the root filesystem image."""

from __future__ import annotations

import io
import subprocess
from pathlib import Path

import pytest

from wqlab_bench import cpio, rootfs


def gcc(*arguments: str) -> None:
    subprocess.run(["gcc", *arguments], check=True)


def test_unexpected_absent_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lib.c").write_text("void f(void) {}\n")
    (tmp_path / "main.c").write_text("void f(void); int main(void) { f(); }\n")
    gcc("-shared", "-fPIC", "-Wl,-soname,libnew.so.3", str(tmp_path / "lib.c"), "-o", str(tmp_path / "libnew.so.3"))
    gcc(str(tmp_path / "main.c"), str(tmp_path / "libnew.so.3"), "-o", str(tmp_path / "tool"))
    (tmp_path / "libnew.so.3").unlink()
    monkeypatch.setattr(rootfs, "PROGRAMS", {"tool": "usr/bin/tool"})
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/x86_64-linux-gnu").symlink_to("/lib/x86_64-linux-gnu")
    with pytest.raises(rootfs.RootfsError, match=r"tool needs .*add its package"):
        rootfs.Image("x86_64", tmp_path, tmp_path).libraries()


def newer_tree(tmp_path: Path) -> Path:
    """Programs of a newer release, as its packages hold them."""
    (tmp_path / "main.c").write_text("int main(void) { return 0; }\n")
    for folder in ("usr/bin", "usr/lib", "usr/lib64"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "usr/lib/x86_64-linux-gnu").symlink_to("/lib/x86_64-linux-gnu")
    (tmp_path / "usr/lib64/ld-linux-x86-64.so.2").write_bytes(b"loader")
    for name in rootfs.NEWER_PROGRAMS:
        gcc(str(tmp_path / "main.c"), "-o", str(tmp_path / "usr/bin" / name))
    return tmp_path


def test_programs_of_newer_release_have_own_loader_and_libraries(tmp_path: Path) -> None:
    archive = io.BytesIO()
    folders = [cpio.directory(name) for name in ("usr", "usr/bin", "usr/lib")]
    cpio.write_archive([*folders, *rootfs.newer_entries("x86_64", newer_tree(tmp_path))], archive)
    root = tmp_path / "root"
    root.mkdir()
    subprocess.run(["cpio", "-id", "--quiet"], input=archive.getvalue(), cwd=root, check=True)
    theirs = root / "usr/lib/trixie"
    loader = "ld-linux-x86-64.so.2"
    assert {path.name for path in theirs.iterdir()} == {"bin", loader, "libc.so.6", "netperf", "netserver"}
    assert (theirs / loader).read_bytes() == b"loader"
    for name in ("netperf", "netserver"):
        assert (theirs / name).readlink() == Path(loader)
        started = (root / "usr/bin" / name).read_text().splitlines()[1].split()
        folder = "/usr/lib/trixie"
        assert started == ["exec", f"{folder}/{name}", "--library-path", folder, f"{folder}/bin/{name}", '"$@"']
    assert sorted(path.name for path in (root / "usr/lib").iterdir()) == ["trixie"]


def test_missing_library_of_newer_release_is_named(tmp_path: Path) -> None:
    tree = newer_tree(tmp_path)
    (tree / "usr/lib/x86_64-linux-gnu").unlink()
    with pytest.raises(rootfs.RootfsError, match=r"need libc\.so\.6; add the packages to NEWER_PACKAGES"):
        rootfs.newer_entries("x86_64", tree)


def test_content_key_depends_on_inputs() -> None:
    key = rootfs.content_key({"fio": "3.33-3"}, {"netperf": "2.7.0-3"}, "x86_64")
    assert key == rootfs.content_key({"fio": "3.33-3"}, {"netperf": "2.7.0-3"}, "x86_64")
    assert key != rootfs.content_key({"fio": "3.33-4"}, {"netperf": "2.7.0-3"}, "x86_64")
    assert key != rootfs.content_key({"fio": "3.33-3"}, {"netperf": "2.7.0-4"}, "x86_64")
    assert key != rootfs.content_key({"fio": "3.33-3"}, {"netperf": "2.7.0-3"}, "arm64")
