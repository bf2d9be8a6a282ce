"""The GNU build-id of an ELF file: the identity that a running kernel shows in /sys/kernel/notes."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO

_NT_GNU_BUILD_ID = 3
_PT_NOTE = 4
_NOTES_LIMIT = 1 << 20


def build_id(path: Path) -> str:
    """The build-id in hexadecimal. Raises ValueError when the file is no 64-bit little-endian ELF file or has none.

    Layout: ELF-64 object file format, "ELF Header", "Program Header", "Note Section".
    """
    with path.open("rb") as file:
        for notes in _note_segments(file):
            if found := build_id_in_notes(notes):
                return found
    raise ValueError("no GNU build-id")


def build_id_in_notes(notes: bytes) -> str | None:
    """The build-id in a note segment (also the content of /sys/kernel/notes), or None."""
    offset = 0
    while offset + 12 <= len(notes):
        name_size, description_size, kind = struct.unpack_from("<III", notes, offset)
        name_at = offset + 12
        description_at = name_at + (name_size + 3 & ~3)
        offset = description_at + (description_size + 3 & ~3)
        if offset > len(notes) + 3:
            return None
        if kind == _NT_GNU_BUILD_ID and notes[name_at : name_at + name_size] == b"GNU\0":
            return notes[description_at : description_at + description_size].hex()
    return None


def _note_segments(file: BinaryIO) -> list[bytes]:
    header = file.read(64)
    if len(header) < 64 or header[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not a 64-bit little-endian ELF file")
    (table,) = struct.unpack_from("<Q", header, 32)
    size, count = struct.unpack_from("<HH", header, 54)
    if size != 56:
        raise ValueError("odd program header size")
    segments = []
    for index in range(count):
        file.seek(table + index * size)
        entry = file.read(size)
        if len(entry) < size:
            raise ValueError("truncated program header")
        (kind,) = struct.unpack_from("<I", entry, 0)
        (at,) = struct.unpack_from("<Q", entry, 8)
        (length,) = struct.unpack_from("<Q", entry, 32)
        if kind == _PT_NOTE and length <= _NOTES_LIMIT:
            file.seek(at)
            segments.append(file.read(length))
    return segments
