"""Find the shared libraries and symbols that a dynamically linked program needs, with pyelftools.

Only for programs of Debian packages: nothing here bounds what a hostile file may cost.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.enums import ENUM_RELOC_TYPE_AARCH64, ENUM_RELOC_TYPE_x64
from elftools.elf.gnuversions import GNUVerNeedSection, GNUVerSymSection
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import SymbolTableSection
from elftools.elf.segments import InterpSegment

_COPY = {"EM_X86_64": ENUM_RELOC_TYPE_x64["R_X86_64_COPY"], "EM_AARCH64": ENUM_RELOC_TYPE_AARCH64["R_AARCH64_COPY"]}
"""Machine -> relocation type with which a program copies a library's variable at start."""
_VERSION_INDEX = 0x7FFF
"""Bits of an entry of .gnu.version that hold the index; the remaining bit marks a hidden symbol."""


class ElfError(Exception):
    """A file is not a readable ELF file; the message names it."""


@dataclass(frozen=True)
class Symbol:
    name: str
    version: str | None
    copied_bytes: int | None = None
    """Size of a variable that the program copies at start; None for a symbol that it only refers to."""


@dataclass
class Closure:
    """All libraries that a set of programs loads at start, without the programs themselves."""

    libraries: dict[str, Path] = field(default_factory=dict)
    """soname -> file."""
    absent: dict[str, set[Path]] = field(default_factory=lambda: defaultdict(set))
    """soname that no folder holds -> files that need it."""


def needed(path: Path) -> list[str]:
    """Return the sonames of the file's DT_NEEDED entries; empty for a static program. Raises ElfError."""
    with _opened(path) as elf:
        return [
            tag.needed  # type: ignore[attr-defined]
            for segment in elf.iter_segments("PT_DYNAMIC")
            if isinstance(segment, DynamicSegment)
            for tag in segment.iter_tags("DT_NEEDED")
        ]


def interpreter(path: Path) -> str | None:
    """Return the absolute path of the program's dynamic loader; None for a static program or a library."""
    with _opened(path) as elf:
        segments = elf.iter_segments("PT_INTERP")
        return next((segment.get_interp_name() for segment in segments if isinstance(segment, InterpSegment)), None)


def closure(programs: Iterable[Path], folders: Iterable[Path]) -> Closure:
    """Follow DT_NEEDED from `programs` through the libraries in `folders`; the first folder with the soname wins."""
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
    """Return the symbols that the file takes from libraries, without weak ones, which may stay undefined."""
    with _opened(path) as elf:
        copied = _copied_symbols(elf)
        return {
            replace(symbol, copied_bytes=size) if is_defined else symbol
            for index, symbol, is_defined, binding, size in _symbols(elf)
            if (not is_defined and binding == "STB_GLOBAL") or index in copied
        }


def defined(path: Path) -> set[str]:
    """Return the names of the dynamic symbols that the file defines."""
    with _opened(path) as elf:
        return {symbol.name for _, symbol, is_defined, _, _ in _symbols(elf) if is_defined}


def stand_in_sources(symbols: Iterable[Symbol]) -> Mapping[str, str]:
    """Write the C source and the linker version script of a library whose every function aborts.

    A program whose unused features pull in large libraries starts with this library in their place: the loader finds
    every symbol with its version, and a call of one ends the program.
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


@contextmanager
def _opened(path: Path) -> Iterator[ELFFile]:
    """Open an ELF file. Raises ElfError, also for errors in the body of the `with` statement."""
    with path.open("rb") as file:
        try:
            yield ELFFile(file)
        except ELFError as error:
            raise ElfError(f"{path}: {error}") from error


def _symbols(elf: ELFFile) -> Iterator[tuple[int, Symbol, bool, str, int]]:
    """Yield index, symbol, whether the file defines it, binding and size of each named dynamic symbol."""
    indices = next((section for section in elf.iter_sections() if isinstance(section, GNUVerSymSection)), None)
    versions = _needed_versions(elf)
    for section in elf.iter_sections("SHT_DYNSYM"):
        if not isinstance(section, SymbolTableSection):
            continue
        for index, entry in enumerate(section.iter_symbols()):
            if not entry.name:
                continue
            version_index = indices.get_symbol(index)["ndx"] if indices else 0
            # "VER_NDX_LOCAL" and "VER_NDX_GLOBAL" are strings.
            version = versions.get(version_index & _VERSION_INDEX) if isinstance(version_index, int) else None
            is_defined = entry["st_shndx"] != "SHN_UNDEF"
            yield index, Symbol(entry.name, version), is_defined, entry["st_info"]["bind"], entry["st_size"]


def _needed_versions(elf: ELFFile) -> dict[int, str]:
    """Return the names of the symbol versions that the file requires of libraries, by their index in .gnu.version."""
    return {
        auxiliary["vna_other"] & _VERSION_INDEX: auxiliary.name
        for section in elf.iter_sections()
        if isinstance(section, GNUVerNeedSection)
        for _, auxiliaries in section.iter_versions()
        for auxiliary in auxiliaries
    }


def _copied_symbols(elf: ELFFile) -> set[int]:
    """Return the indices of the variables that the program copies from libraries at start."""
    copy = _COPY.get(elf["e_machine"])
    return {
        relocation["r_info_sym"]
        for section in elf.iter_sections()
        if isinstance(section, RelocationSection)
        for relocation in section.iter_relocations()
        if relocation["r_info_type"] == copy
    }
