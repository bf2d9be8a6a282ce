"""Read the GNU build-id of an ELF file, which a running kernel shows in /sys/kernel/notes."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from elftools.common.exceptions import ELFError
from elftools.common.utils import struct_parse
from elftools.elf.elffile import ELFFile

_NT_GNU_BUILD_ID = 3
_BUILD_ID_LIMIT = 64
"""Longest build-id in bytes; that of ld has 20."""
_NOTES_LIMIT = 1 << 20
"""Bytes of notes read from one file; larger note segments are skipped."""
_HEADERS_LIMIT = 4096
"""Program headers looked at in one file; a vmlinux has about ten."""


def read_build_id(path: Path) -> str:
    """Return the build-id in hexadecimal.

    The file may come from submitted code, so time and memory are bounded whatever its headers say. Raises ValueError if
    the file is not a 64-bit little-endian ELF file, is damaged, or has no build-id.
    """
    with path.open("rb") as file:
        for notes in _note_segments(file):
            if found := build_id_in_notes(notes):
                return found
    raise ValueError("no GNU build-id")


def build_id_in_notes(notes: bytes) -> str | None:
    """Return the build-id in a note segment (also the content of /sys/kernel/notes), or None if it has none.

    Layout: ELF-64 object file format, "Note Section". pyelftools parses notes only as part of an ELF file.
    """
    offset = 0
    while offset + 12 <= len(notes):
        name_size, description_size, note_type = struct.unpack_from("<III", notes, offset)
        name_at = offset + 12
        description_at = name_at + (name_size + 3 & ~3)
        offset = description_at + (description_size + 3 & ~3)
        if offset > len(notes) + 3:
            return None
        is_build_id = note_type == _NT_GNU_BUILD_ID and notes[name_at : name_at + name_size] == b"GNU\0"
        if is_build_id and description_size <= _BUILD_ID_LIMIT:
            return notes[description_at : description_at + description_size].hex()
    return None


def _note_segments(file: BinaryIO) -> Iterator[bytes]:
    """Yield the content of each PT_NOTE segment.

    Program headers are parsed one by one instead of with `ELFFile.iter_segments`: that follows extended header counts
    and parses segments of every type, as often and as large as a hostile file asks for.
    """
    try:
        elf = ELFFile(file)
        if elf.elfclass != 64 or not elf.little_endian:
            raise ValueError("not a 64-bit little-endian ELF file")
        entry, header = elf.structs.Elf_Phdr, elf.header
        if header["e_phentsize"] != entry.sizeof():
            raise ValueError("unexpected size of program headers")
        left = _NOTES_LIMIT
        for index in range(min(header["e_phnum"], _HEADERS_LIMIT)):
            segment = struct_parse(entry, file, header["e_phoff"] + index * entry.sizeof())
            if segment["p_type"] == "PT_NOTE" and segment["p_filesz"] <= left:
                left -= segment["p_filesz"]
                file.seek(segment["p_offset"])
                yield file.read(segment["p_filesz"])
    except (ELFError, OverflowError) as error:  # an offset may be larger than any file
        raise ValueError(f"not a readable ELF file: {error}") from error
