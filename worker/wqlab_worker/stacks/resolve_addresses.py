"""Print the source lines of addresses in a vmlinux. Runs inside the sandbox, because submitted code made the files.

Arguments: vmlinux, a zip archive of its source files (it need not exist) and a JSON list of [function, offset, size,
exact]. The output is one JSON object: `places`, a list of frames for each address; null if vmlinux has no debug
information; or `error`.
"""

from __future__ import annotations

import json
import posixpath
import sys
import zipfile
from collections.abc import Iterable
from functools import cache
from typing import Any

import drgn

ROOTS = ("/src/", "/build/")
"""Folders of the source tree and of the generated files in the sandbox of a build."""
PADDING = 128
"""Largest gap between functions: the kernel prints sizes up to the next function, the symbol table has them without the
space for its alignment and for patching its entry."""
FILE_LIMIT = 4 << 20
SOURCE_LIMIT = 120
INLINE_LIMIT = 8
"""Inlined functions shown for one address."""


def find_places(vmlinux: str, archive: str, addresses: Iterable[tuple[str, int, int, bool]]) -> list[list[Any]] | None:
    program = drgn.Program()
    module = program.extra_module("vmlinux", create=True)
    module.address_range = (0, (1 << 64) - 1)
    module.try_file(vmlinux, force=True)
    if module.debug_file_status is not drgn.ModuleFileStatus.HAVE:
        return None
    sources = _Sources(archive)
    return [_places(program, sources, address) for address in addresses]


def _places(program: drgn.Program, sources: _Sources, address: tuple[str, int, int, bool]) -> list[Any]:
    """Return the frames of an address, inlined functions first; empty if the function or its line is not known."""
    function, offset, size, exact = address
    start = _address(program, function, offset, size)
    if start is None:
        return []
    try:
        # A return address may already belong to the next line, or to the next function if the call never returns.
        locations = list(program.source_location(start + offset - (not exact)))
    except LookupError:
        return []
    frames = []
    for place in [*locations[:-1][:INLINE_LIMIT], *locations[-1:]]:
        file = _in_tree(place.filename)
        inlined = place is not locations[-1]
        frames.append(
            {
                "function": (place.name() or function) if inlined else function,
                "offset": offset,
                "file": file if place.line else "",
                "line": place.line,
                "source": sources.line(file, place.line),
                "inlined": inlined,
            }
        )
    return frames


def _address(program: drgn.Program, function: str, offset: int, size: int) -> int | None:
    """Return the address of the only function of this name and size; None if there is none, or several."""
    try:
        found = {
            symbol.address
            for symbol in program.symbols(function)
            if symbol.kind == drgn.SymbolKind.FUNC and offset <= symbol.size <= size < symbol.size + PADDING
        }
    except LookupError:
        return None
    return found.pop() if len(found) == 1 else None


def _in_tree(name: str) -> str:
    """Return a file's path in the source tree; empty if it is outside."""
    path = posixpath.normpath(posixpath.join("/build", name))
    root = next((root for root in ROOTS if path.startswith(root)), None)
    return path.removeprefix(root) if root else ""


class _Sources:
    def __init__(self, archive: str) -> None:
        try:
            self._archive: zipfile.ZipFile | None = zipfile.ZipFile(archive)
        except (OSError, zipfile.BadZipFile):
            self._archive = None

    def line(self, file: str, number: int) -> str:
        """Return a line without indentation and control characters; empty if it is not available."""
        lines = self._lines(file)
        if not 0 < number <= len(lines):
            return ""
        text = " ".join(lines[number - 1].decode(errors="replace").split())[:SOURCE_LIMIT]
        return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)[:SOURCE_LIMIT]

    @cache  # noqa: B019 - the process ends with the object
    def _lines(self, file: str) -> list[bytes]:
        if self._archive is None or not file:
            return []
        try:
            with self._archive.open(file) as content:
                return content.read(FILE_LIMIT).split(b"\n")
        except (KeyError, OSError, zipfile.BadZipFile, RuntimeError, NotImplementedError):
            return []


if __name__ == "__main__":
    try:
        with open(sys.argv[3], "rb") as request:  # noqa: PTH123 - no import that is not needed
            found = find_places(sys.argv[1], sys.argv[2], json.load(request))
        print(json.dumps({"places": found}))
    except Exception as error:  # whatever is in the file, the report is shown without lines
        print(json.dumps({"error": f"{error}"[:200]}))
