"""Print the source lines of addresses in a vmlinux. Runs inside the sandbox, because submitted code made the files.

Arguments: vmlinux, a zip archive of its source files (it need not exist) and a JSON file. The output is one JSON
object, or `error`. The file is one of

- a list of [function, offset, size, exact], the addresses of a kernel report. Output: `places`, a list of frames for
  each; null if vmlinux has no debug information.
- `text` (address of `_text` in the running kernel), `code`, `lines` and `data` (addresses there, `data` of cache
  lines), and `per_cpu` (offsets of cache lines in the per-CPU memory of a CPU).
  Output: `functions`, a list of [name, file]; `code`, for each address an index in that list or -1; `lines`, for each
  address [function, file, line, source] of the innermost code that is not in a header; `data` and
  `per_cpu`, for each cache line [symbols, offset in the first]. Empty entries are not known.
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
_UNSIZED = 4096
"""Size of a symbol for which the symbol table has none."""
FILE_LIMIT = 4 << 20
SOURCE_LIMIT = 120
LINE_BYTES = 64
_LEAST_VARIABLE = 4
NAMES_LIMIT = 3
"""Variables that are named for one cache line."""
INLINE_LIMIT = 8
"""Inlined functions shown for one address."""


def find_places(vmlinux: str, archive: str, addresses: Iterable[tuple[str, int, int, bool]]) -> list[list[Any]] | None:
    program = _load(vmlinux)
    if program is None:
        return None
    sources = _Sources(archive)
    return [_places(program, sources, address) for address in addresses]


def find_counted(vmlinux: str, archive: str, request: dict[str, Any]) -> dict[str, list[Any]]:
    """Return the functions, lines and data of the addresses where an instrumented device counted something."""
    program = _load(vmlinux)
    if program is None:
        return {"functions": [], "code": [], "lines": [], "data": [], "per_cpu": []}
    sources = _Sources(archive)
    # drgn numbers addresses from the start of the image.
    moved = request["text"] - program.symbol("_text").address
    functions: dict[tuple[str, str], int] = {}
    files: dict[int, str] = {}
    code = []
    for address in request["code"]:
        symbol = _symbol(program, address - moved)
        if symbol is None:
            code.append(-1)
            continue
        if symbol.address not in files:
            files[symbol.address] = _file_of(program, symbol.address)
        code.append(functions.setdefault((symbol.name, files[symbol.address]), len(functions)))
    data = [_variables(program, address - moved) for address in request["data"]]
    per_cpu = _per_cpu(program, request["per_cpu"])
    lines = [_line(program, sources, address - moved) for address in request["lines"]]
    return {"functions": [list(each) for each in functions], "code": code, "lines": lines, "data": data,
            "per_cpu": per_cpu}  # fmt: skip


def _variables(program: drgn.Program, line: int) -> list[Any]:
    """Return the names of the variables in a cache line, and the line's offset in the first one."""
    names: dict[str, None] = {}
    offset = 0
    for address in range(line, line + LINE_BYTES, _LEAST_VARIABLE):
        symbol = _symbol(program, address)
        if symbol is None or (symbol.size and address >= symbol.address + symbol.size):
            continue
        if not names:
            offset = max(0, line - symbol.address)
        names.setdefault(symbol.name)
    shown = list(names)[:NAMES_LIMIT]
    return [", ".join([*shown, *(["..."] if len(names) > len(shown) else [])])[:160], offset] if shown else []


def _per_cpu(program: drgn.Program, offsets: Iterable[int]) -> list[Any]:
    """Return the static per-CPU variables of cache lines; those that the kernel allocated have no names."""
    try:
        start, end = (program.symbol(f"__per_cpu_{edge}").address for edge in ("start", "end"))
    except LookupError:
        return [[] for _ in offsets]
    return [_variables(program, start + offset) if offset < end - start else [] for offset in offsets]


def _symbol(program: drgn.Program, address: int) -> drgn.Symbol | None:
    """Return the symbol that an address belongs to; symbols of assembly may have no size."""
    if address < 0:  # in front of the kernel's image
        return None
    try:
        symbol = program.symbol(address)
    except LookupError:
        return None
    return symbol if address - symbol.address < max(symbol.size, _UNSIZED) else None


def _file_of(program: drgn.Program, address: int) -> str:
    try:
        return _in_tree(program.source_location(address)[-1].filename)
    except LookupError:
        return ""


def _line(program: drgn.Program, sources: _Sources, address: int) -> list[Any]:
    if address < 0:
        return []
    try:
        locations = list(program.source_location(address))
    except LookupError:
        return []
    chosen = next((each for each in locations if each.line and not each.filename.endswith(".h")), locations[0])
    file = _in_tree(chosen.filename)
    return [chosen.name() or "", file, chosen.line, sources.line(file, chosen.line)]


def _load(vmlinux: str) -> drgn.Program | None:
    """Return a program with the debug information of vmlinux, or None if it has none."""
    program = drgn.Program()
    module = program.extra_module("vmlinux", create=True)
    module.address_range = (0, (1 << 64) - 1)
    module.try_file(vmlinux, force=True)
    return program if module.debug_file_status is drgn.ModuleFileStatus.HAVE else None


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
            asked = json.load(request)
        if isinstance(asked, dict):
            print(json.dumps(find_counted(sys.argv[1], sys.argv[2], asked)))
        else:
            print(json.dumps({"places": find_places(sys.argv[1], sys.argv[2], asked)}))
    except Exception as error:  # whatever is in the file, the report is shown without lines
        print(json.dumps({"error": f"{error}"[:200]}))
