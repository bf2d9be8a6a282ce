"""Build-ids in notes and in ELF files, also hostile ones."""

from __future__ import annotations

import struct
import time
import tracemalloc
from pathlib import Path

import pytest

from wqlab_worker.build.build_id import build_id_in_notes, read_build_id


def note(kind: int, name: bytes, description: bytes) -> bytes:
    def padded(text: bytes) -> bytes:
        return text + b"\0" * (-len(text) % 4)

    return struct.pack("<III", len(name), len(description), kind) + padded(name) + padded(description)


def test_build_id_is_found_among_other_notes() -> None:
    notes = note(1, b"Xen\0", b"abc") + note(3, b"GNU\0", bytes(range(20))) + note(6, b"Linux\0", b"")
    assert build_id_in_notes(notes) == bytes(range(20)).hex()
    assert build_id_in_notes(note(3, b"Xen\0", bytes(20))) is None
    assert build_id_in_notes(struct.pack("<III", 4, 1 << 31, 3) + b"GNU\0") is None


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"\x7fELF\x02\x01" + b"\xff" * 200])
def test_file_without_valid_elf_header_is_rejected(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "vmlinux").write_bytes(content)
    with pytest.raises(ValueError):
        read_build_id(tmp_path / "vmlinux")


# --- hostile files ------------------------------------------------------------------------------------------------


def elf_file(*segments: tuple[int, int, int], content: bytes = b"", **header: int) -> bytes:
    """A 64-bit ELF file with program headers (type, offset, size); `header` overrides fields of the ELF header."""
    fields = {"phoff": 64, "phentsize": 56, "phnum": len(segments), "shoff": 0, "type": 2} | header
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    first = struct.pack("<HHIQQQI", fields["type"], 62, 1, 0, fields["phoff"], fields["shoff"], 0)
    last = struct.pack("<HHHHHH", 64, fields["phentsize"], fields["phnum"], 64, 0, 0)
    table = b"".join(struct.pack("<IIQQQQQQ", kind, 4, at, 0, 0, size, size, 4) for kind, at, size in segments)
    return ident + first + last + table + content


NOTE, LOAD, DYNAMIC = 4, 1, 2


def test_build_id_is_read_from_note_segment(tmp_path: Path) -> None:
    notes = note(1, b"Xen\0", b"abc") + note(3, b"GNU\0", bytes(range(20)))
    file = tmp_path / "vmlinux"
    file.write_bytes(elf_file((LOAD, 0, 64), (NOTE, 64 + 2 * 56, len(notes)), content=notes))
    assert read_build_id(file) == bytes(range(20)).hex()


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(elf_file((NOTE, 0, 1 << 62)), id="endless note segment"),
        pytest.param(elf_file((NOTE, 1 << 63, 8)), id="offset larger than a file"),
        pytest.param(elf_file((NOTE, 120, 8), phoff=1 << 63), id="headers outside all files"),
        pytest.param(elf_file((NOTE, 120, 8), phoff=1 << 40), id="headers behind the end"),
        pytest.param(elf_file((NOTE, 120, 8), phentsize=0), id="headers of size 0"),
        pytest.param(elf_file((NOTE, 120, 8), phentsize=57), id="headers of unexpected size"),
        pytest.param(elf_file(phnum=0xFFFF, shoff=64, content=b"\xff" * 64), id="extended header count"),
        pytest.param(elf_file((DYNAMIC, 0, 1 << 40), (LOAD, 1 << 60, 1 << 60)), id="endless other segments"),
        pytest.param(
            elf_file((NOTE, 120, 24), content=struct.pack("<III", 1 << 31, 1 << 31, 3) + bytes(12)), id="huge note"
        ),
        pytest.param(elf_file((NOTE, 120, 24), content=note(0x46494C45, b"CORE", b"\xff" * 8), type=4), id="core file"),
        pytest.param(elf_file((NOTE, 120, 8))[:100], id="truncated header"),
        pytest.param(b"\x7fELF\x01\x01\x01" + bytes(200), id="32-bit"),
        pytest.param(b"\x7fELF\x02\x02\x01" + bytes(200), id="big-endian"),
    ],
)
def test_hostile_elf_file_has_no_build_id(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "vmlinux").write_bytes(content)
    with pytest.raises(ValueError):
        read_build_id(tmp_path / "vmlinux")


def test_many_large_note_segments_cost_bounded_memory_and_time(tmp_path: Path) -> None:
    count = 0xFFFE
    with (tmp_path / "vmlinux").open("wb") as file:
        file.write(elf_file(*[(NOTE, 0, 1 << 20)] * count))
    tracemalloc.start()
    started = time.thread_time()
    with pytest.raises(ValueError):
        read_build_id(tmp_path / "vmlinux")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 << 20
    assert time.thread_time() - started < 30


def test_long_build_id_is_ignored() -> None:
    """A build-id is shown and stored; that of ld has 20 bytes."""
    assert build_id_in_notes(note(3, b"GNU\0", b"\x01" * 65)) is None
    assert build_id_in_notes(note(3, b"GNU\0", b"\x01" * 65) + note(3, b"GNU\0", b"\x02" * 20)) == "02" * 20
