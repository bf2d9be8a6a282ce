"""What a dynamically linked program needs to run, read with binutils' readelf."""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

_NEEDED = re.compile(r"\(NEEDED\).*\[(.+)\]")
_INTERPRETER = re.compile(r"Requesting program interpreter: (.+)\]")
_SYMBOL = re.compile(r"\s*\d+: [0-9a-f]+\s+(\S+)\s+\w+\s+(\w+)\s+\w+\s+(\S+)\s+([^\s@]+)(?:@+(\S+))?")
_COPIED = re.compile(r"R_\w+_COPY\s+[0-9a-f]+\s+([^\s@]+)")


class ElfError(Exception):
    """A program cannot be made to run: the text names the program and what it lacks."""


@dataclass(frozen=True)
class Symbol:
    name: str
    version: str | None
    copied_bytes: int | None = None
    """Size of a variable that the program copies at start; None for what it only refers to."""


@dataclass
class Closure:
    """Everything that a set of programs loads at start, apart from the programs themselves."""

    libraries: dict[str, Path] = field(default_factory=dict)
    """soname -> file."""
    absent: dict[str, set[Path]] = field(default_factory=lambda: defaultdict(set))
    """soname that no folder holds -> who needs it."""


def needed(path: Path) -> list[str]:
    """Sonames that `path` names as DT_NEEDED; empty for a static program."""
    return _NEEDED.findall(_readelf("-d", path))


def interpreter(path: Path) -> str | None:
    """The absolute path of the program's dynamic loader; None for a static program or a library."""
    match = _INTERPRETER.search(_readelf("-l", path))
    return match[1] if match else None


def closure(programs: Iterable[Path], folders: Iterable[Path]) -> Closure:
    """Follows DT_NEEDED from `programs` through the libraries in `folders` (the first that has the soname wins)."""
    folders = list(folders)
    found = Closure()
    waiting = list(programs)
    while waiting:
        user = waiting.pop()
        for soname in needed(user):
            if soname in found.libraries:
                continue
            library = next((folder / soname for folder in folders if (folder / soname).exists()), None)
            if library is None:
                found.absent[soname].add(user)
            else:
                found.libraries[soname] = library
                waiting.append(library)
    return found


def undefined(path: Path) -> set[Symbol]:
    """What `path` takes from libraries (weak symbols may stay undefined and are left out)."""
    copied = set(_COPIED.findall(_readelf("-r", path)))
    return {
        symbol if section == "UND" else replace(symbol, copied_bytes=size)
        for symbol, section, binding, size in _symbols(path)
        if (section == "UND" and binding == "GLOBAL") or symbol.name in copied
    }


def defined(path: Path) -> set[str]:
    return {symbol.name for symbol, section, _, _ in _symbols(path) if section != "UND"}


def stand_in_sources(symbols: Iterable[Symbol]) -> Mapping[str, str]:
    """C source and linker version script of a library whose every function aborts.

    A program whose unused features pull in large libraries starts with this library in their place: the loader finds
    every symbol, with its version, and a call of one ends the program instead of doing something else.
    """
    names: dict[str | None, set[str]] = defaultdict(set)
    definitions: dict[str, str] = {}
    for symbol in symbols:
        names[symbol.version].add(symbol.name)
        is_variable = symbol.copied_bytes is not None
        declared = f"char {symbol.name}[{symbol.copied_bytes}];" if is_variable else f"void {symbol.name}(void) TRAP"
        definitions[symbol.name] = declared
    source = "".join(f"{definitions[name]}\n" for name in sorted(definitions)).replace("TRAP", "{ __builtin_trap(); }")
    script = "".join(
        f"{version} {{ global: {' '.join(f'{name};' for name in sorted(group))} }};\n"
        for version, group in sorted(names.items(), key=lambda item: item[0] or "")
        if version is not None
    )
    return {"stand-in.c": source, "stand-in.map": script}


def _symbols(path: Path) -> Iterable[tuple[Symbol, str, str, int]]:
    """(symbol, section, binding, size) of the dynamic symbol table."""
    for line in _readelf("--dyn-syms", path).splitlines():
        match = _SYMBOL.match(line)
        if match:
            size, binding, section, name, version = match.groups()
            yield Symbol(name, version), section, binding, int(size, 0)


def _readelf(option: str, path: Path) -> str:
    result = subprocess.run(["readelf", "-W", option, str(path)], capture_output=True, text=True, check=False)
    if result.returncode:
        raise ElfError(f"readelf {option} {path}: {result.stderr.strip()}")
    return result.stdout
