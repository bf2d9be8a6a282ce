"""What the root filesystem is made of: archive, library closure, stand-ins, and the option ROM."""

from __future__ import annotations

import io
import subprocess
from pathlib import Path

import pytest

from wqlab_bench import cpio, firmware, rootfs, shared_libraries


def gcc(*arguments: str) -> None:
    subprocess.run(["gcc", *arguments], check=True)


def test_cpio_reads_our_archives(tmp_path: Path) -> None:
    entries = [
        cpio.directory("usr"),
        cpio.file("usr/tool", b"#!/bin/sh\n", executable=True),
        cpio.symlink("bin", "usr"),
        cpio.file("odd", b"12345"),
        cpio.character_device("console", 5, 1),
    ]
    archive = io.BytesIO()
    cpio.write_archive(entries, archive)
    listing = subprocess.run(["cpio", "-itv"], input=archive.getvalue(), capture_output=True, check=True).stdout
    lines = [line.split() for line in listing.decode().splitlines()]
    assert [(line[0], line[-3] if "->" in line else line[-1]) for line in lines] == [
        ("drwxr-xr-x", "usr"), ("-rwxr-xr-x", "usr/tool"), ("lrwxrwxrwx", "bin"), ("-rw-r--r--", "odd"),
        ("crw-------", "console"),
    ]  # fmt: skip
    assert all(line[2:4] == ["root", "root"] for line in lines)
    subprocess.run(["cpio", "-id", "--quiet", "odd", "usr/tool"], input=archive.getvalue(), cwd=tmp_path, check=True)
    assert (tmp_path / "odd").read_bytes() == b"12345"
    again = io.BytesIO()
    cpio.write_archive(entries, again)
    assert again.getvalue() == archive.getvalue()


def test_a_member_before_its_folder_is_an_error() -> None:
    with pytest.raises(ValueError, match="usr/tool comes before its folder"):
        cpio.write_archive([cpio.file("usr/tool", b"")], io.BytesIO())


def test_a_program_runs_with_a_stand_in_until_it_calls_it(tmp_path: Path) -> None:
    """Versioned functions, and a variable that the program copies, as in Debian's fio and kexec."""
    (tmp_path / "lib.c").write_text("int huge(void) { return 1; } int huge_state = 7;\n")
    (tmp_path / "lib.map").write_text("HUGE_1.0 { global: huge; huge_state; };\n")
    (tmp_path / "main.c").write_text(
        "extern int huge(void), huge_state; int main(int c, char **v) { return c > 1 ? huge() : huge_state; }\n"
    )
    library, program = tmp_path / "libhuge.so.1", tmp_path / "program"
    script = f"-Wl,--version-script={tmp_path / 'lib.map'}"
    gcc("-shared", "-fPIC", "-Wl,-soname,libhuge.so.1", script, str(tmp_path / "lib.c"), "-o", str(library))
    gcc(
        "-no-pie",
        "-Wl,-z,now",
        str(tmp_path / "main.c"),
        str(library),
        "-Wl,-rpath," + str(tmp_path),
        "-o",
        str(program),
    )
    assert subprocess.run([program], check=False).returncode == 7
    library.unlink()

    found = shared_libraries.closure([program], [Path("/lib/x86_64-linux-gnu"), tmp_path])
    assert dict(found.absent) == {"libhuge.so.1": {program}}
    library.write_bytes(rootfs.Image("x86_64", tmp_path, tmp_path).stand_in(found))
    run = subprocess.run([program], capture_output=True, check=False)
    assert (run.returncode, run.stderr) == (0, b"")  # an all-zero variable, and no word from the loader
    assert subprocess.run([program, "call"], check=False).returncode < 0


def test_an_absent_library_that_is_not_expected_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_programs_of_a_newer_release_bring_their_own_loader_and_libraries(tmp_path: Path) -> None:
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


def test_a_library_that_the_newer_packages_lack_is_named(tmp_path: Path) -> None:
    tree = newer_tree(tmp_path)
    (tree / "usr/lib/x86_64-linux-gnu").unlink()
    with pytest.raises(rootfs.RootfsError, match=r"need libc\.so\.6: add to NEWER_PACKAGES"):
        rootfs.newer_entries("x86_64", tree)


def test_the_image_is_named_by_what_it_is_made_from() -> None:
    key = rootfs.content_key({"fio": "3.33-3"}, {"netperf": "2.7.0-3"}, "x86_64")
    assert key == rootfs.content_key({"fio": "3.33-3"}, {"netperf": "2.7.0-3"}, "x86_64")
    assert key != rootfs.content_key({"fio": "3.33-4"}, {"netperf": "2.7.0-3"}, "x86_64")
    assert key != rootfs.content_key({"fio": "3.33-3"}, {"netperf": "2.7.0-4"}, "x86_64")
    assert key != rootfs.content_key({"fio": "3.33-3"}, {"netperf": "2.7.0-3"}, "arm64")


def test_the_option_rom_is_one_a_bios_accepts(tmp_path: Path) -> None:
    rom = firmware.smt_last(tmp_path)
    data = rom.read_bytes()
    assert data[:2] == b"\x55\xaa"
    assert data[2] * 512 == len(data)
    assert sum(data) % 256 == 0
    offset = int.from_bytes(data[0x1A:0x1C], "little")
    assert data[offset : offset + 4] == b"$PnP"
    assert firmware.smt_last(tmp_path) == rom


def test_sealing_covers_code_that_fills_its_block() -> None:
    for size in (511, 512, 513):
        image = firmware.sealed(bytes([0x55, 0xAA, 0]) + b"\x07" * (size - 3))
        assert len(image) % 512 == 0 and len(image) > size
        assert sum(image) % 256 == 0
