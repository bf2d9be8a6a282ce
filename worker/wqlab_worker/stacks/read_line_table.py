"""Print which addresses of a vmlinux belong to some lines of its source.

It runs inside the sandbox, because submitted code made the file. Arguments: vmlinux, a file that is not read, and a
JSON file: path in the source tree -> list of [first line, last line]. The output is one JSON object: `ranges`, a list
of [path, line, start, end] with addresses relative to `_text`, the end excluded; `files`, those of the paths that have
code; or `error`. A line has several ranges, also in functions that it is inlined into. Only the line number program
tells all of them, and which lines have code at all (DWARF 5, 6.2; versions 2 to 5 are read).
"""

from __future__ import annotations

import json
import posixpath
import sys
from collections.abc import Iterator
from functools import cache
from itertools import islice
from struct import pack, unpack_from
from typing import Any

from elftools.elf.elffile import ELFFile

ROOTS = ("/src/", "/build/")
"""Folders of the source tree and of the generated files in the sandbox of a build."""
RANGES_LIMIT = 200_000
_STRING, _UDATA = 0x08, 0x0F
_SECTIONS = {0x1F: ".debug_line_str", 0x0E: ".debug_str"}
_FIXED = {0x0B: 1, 0x05: 2, 0x06: 4, 0x07: 8, 0x1E: 16}
"""Forms of fields (DWARF 5, 7.5.6): string, udata, line_strp and strp, data1 to data16 with their bytes."""
_PATH, _FOLDER = 1, 2
_COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE, _CONST_ADD_PC, _FIXED_ADVANCE_PC = 1, 2, 3, 4, 8, 9
_END_SEQUENCE, _SET_ADDRESS = 1, 2
_SYMBOL_BYTES = 24


class _Reader:
    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def fixed(self, size: int) -> int:
        self.at += size
        return int.from_bytes(self.data[self.at - size : self.at], "little")

    def unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def signed(self) -> int:
        start = self.at
        value = self.unsigned()
        bits = 7 * (self.at - start)
        return value - (1 << bits) if value >> (bits - 1) else value

    def text(self) -> str:
        end = self.data.index(b"\0", self.at)
        self.at, start = end + 1, self.at
        return self.data[start:end].decode(errors="replace")


class _LineTable:
    """The line number programs of a vmlinux, for lines of some files."""

    def __init__(self, vmlinux: str, wanted: dict[str, list[list[int]]]) -> None:
        with open(vmlinux, "rb") as file:  # noqa: PTH123 - no import that is not needed
            elf = ELFFile(file)
            names = (".debug_line", ".debug_line_str", ".debug_str")
            self._sections = {name: _content(elf, name) for name in names}
            self._start = _address_of(elf, b"_text")
        self._lines = {
            path: {line for first, last in ranges for line in range(first, last + 1)} for path, ranges in wanted.items()
        }
        self.files: set[str] = set()

    def ranges(self) -> Iterator[tuple[str, int, int, int]]:
        """Yield path, line, and the addresses between which it is, from `_text` on."""
        data, at = self._sections[".debug_line"], 0
        while at < len(data):
            size = unpack_from("<I", data, at)[0]
            if size >= 0xFFFFFFF0:
                raise ValueError("a line number program in 64-bit DWARF is not read")
            yield from self._program(_Reader(data[at : at + 4 + size], 4))
            at += 4 + size

    def _program(self, reader: _Reader) -> Iterator[tuple[str, int, int, int]]:
        version = reader.fixed(2)
        if not 2 <= version <= 5:
            raise ValueError(f"a line number program of version {version} is not read")
        reader.at += 2 if version == 5 else 0  # sizes of addresses and of segment selectors
        header = reader.fixed(4)
        start = reader.at + header
        least = reader.fixed(1)
        reader.at += 1 if version >= 4 else 0  # operations of a bundle
        reader.at += 1  # whether rows are statements
        base, span, opcodes = reader.fixed(1), reader.fixed(1), reader.fixed(1)
        lengths = [reader.fixed(1) for _ in range(opcodes - 1)]
        files = self._files(reader) if version == 5 else self._files_before_5(reader)
        wanted = {number: path for number, path in files.items() if path in self._lines}
        if wanted:
            reader.at = start
            yield from self._rows(reader, wanted, least, (base ^ 0x80) - 0x80, span, lengths)

    def _files(self, reader: _Reader) -> dict[int, str]:
        folders = [self._entry(reader, formats)[0] for formats in self._formats(reader)]
        entries = [self._entry(reader, formats) for formats in self._formats(reader)]
        return {
            number: _in_tree(posixpath.join(folders[folder] if folder < len(folders) else "", name))
            for number, (name, folder) in enumerate(entries)
        }

    @staticmethod
    def _formats(reader: _Reader) -> Iterator[list[tuple[int, int]]]:
        """Yield the fields of each entry of the table that begins here."""
        fields = [(reader.unsigned(), reader.unsigned()) for _ in range(reader.fixed(1))]
        for _ in range(reader.unsigned()):
            yield fields

    def _entry(self, reader: _Reader, fields: list[tuple[int, int]]) -> tuple[str, int]:
        """Return the name of an entry, and the number of its folder."""
        name, folder = "", 0
        for content, form in fields:
            value: str | int
            if form == _STRING:
                value = reader.text()
            elif form in _SECTIONS:
                value = self._string(_SECTIONS[form], reader.fixed(4))
            elif form == _UDATA:
                value = reader.unsigned()
            else:
                value = reader.fixed(_FIXED[form])
            if content == _PATH and isinstance(value, str):
                name = value
            elif content == _FOLDER and isinstance(value, int):
                folder = value
        return name, folder

    @staticmethod
    def _files_before_5(reader: _Reader) -> dict[int, str]:
        folders, files = [""], {}
        while name := reader.text():
            folders.append(name)
        number = 1
        while name := reader.text():
            folder, _, _ = reader.unsigned(), reader.unsigned(), reader.unsigned()
            files[number] = _in_tree(posixpath.join(folders[folder] if folder < len(folders) else "", name))
            number += 1
        return files

    @cache  # noqa: B019 - the process ends with the object
    def _string(self, section: str, at: int) -> str:
        return _Reader(self._sections[section], at).text()

    def _rows(  # noqa: PLR0917 - the fields of the header
        self, reader: _Reader, wanted: dict[int, str], least: int, base: int, span: int, lengths: list[int]
    ) -> Iterator[tuple[str, int, int, int]]:
        """Execute the program (DWARF 5, 6.2.5) and yield the wanted lines."""
        address, file, line = 0, 1, 1
        before: tuple[int, int, int] | None = None

        def row(*, ends: bool = False) -> Iterator[tuple[str, int, int, int]]:
            nonlocal before
            if before and before[1] in wanted and before[0] < address:
                path = wanted[before[1]]
                self.files.add(path)
                if before[2] in self._lines[path]:
                    yield path, before[2], before[0] - self._start, address - self._start
            before = None if ends else (address, file, line)

        while reader.at < len(reader.data):
            code = reader.fixed(1)
            if code > len(lengths):
                address += (code - len(lengths) - 1) // span * least
                line += base + (code - len(lengths) - 1) % span
                yield from row()
            elif code == 0:
                size = reader.unsigned()
                end = reader.at + size
                extended = reader.fixed(1)
                if extended == _END_SEQUENCE:
                    yield from row(ends=True)
                    address, file, line = 0, 1, 1
                elif extended == _SET_ADDRESS:
                    address = reader.fixed(size - 1)
                reader.at = end
            elif code == _COPY:
                yield from row()
            elif code == _ADVANCE_PC:
                address += reader.unsigned() * least
            elif code == _ADVANCE_LINE:
                line += reader.signed()
            elif code == _SET_FILE:
                file = reader.unsigned()
            elif code == _CONST_ADD_PC:
                address += (255 - len(lengths) - 1) // span * least
            elif code == _FIXED_ADVANCE_PC:
                address += reader.fixed(2)
            else:
                for _ in range(lengths[code - 1]):
                    reader.unsigned()


def _content(elf: ELFFile, name: str) -> bytes:
    section = elf.get_section_by_name(name)
    return b"" if section is None else bytes(section.data())


def _address_of(elf: ELFFile, name: bytes) -> int:
    """Return the address of a symbol, without reading all of them. Raises ValueError if there is none."""
    table, names = (_content(elf, section) for section in (".symtab", ".strtab"))
    size, at = len(name), names.find(name + b"\0")
    while at >= 0:
        # The linker lets a name be the end of a longer one.
        entry = table.find(pack("<I", at))
        while entry >= 0:
            if entry % _SYMBOL_BYTES == 0:
                return int(unpack_from("<Q", table, entry + 8)[0])
            entry = table.find(pack("<I", at), entry + 1)
        at = names.find(name + b"\0", at + size)
    raise ValueError("vmlinux has no symbol _text")


def _in_tree(name: str) -> str:
    """Return a file's path in the source tree; empty if it is outside."""
    path = posixpath.normpath(posixpath.join("/build", name))
    root = next((root for root in ROOTS if path.startswith(root)), None)
    return path.removeprefix(root) if root else ""


def find_lines(vmlinux: str, wanted: dict[str, list[list[int]]]) -> dict[str, Any]:
    table = _LineTable(vmlinux, wanted)
    found = list(islice(table.ranges(), RANGES_LIMIT))
    return {"ranges": found, "files": sorted(table.files)}


if __name__ == "__main__":
    try:
        with open(sys.argv[3], "rb") as request:  # noqa: PTH123 - no import that is not needed
            print(json.dumps(find_lines(sys.argv[1], json.load(request))))
    except Exception as error:  # whatever is in the file, the report is shown without lines
        print(json.dumps({"error": f"{error}"[:200]}))
