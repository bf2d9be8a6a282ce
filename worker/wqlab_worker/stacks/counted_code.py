"""Name the functions, source lines and data of addresses where an instrumented device counted something.

As in `decoder.py`, vmlinux and the sources are read in the sandbox only, and the answer is validated.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import structlog
from pydantic import Field, StringConstraints, ValidationError

from wqlab_contracts.linear_patterns import LinearPattern
from wqlab_contracts.messages import Artifact, Kernel, Message

from ..failures import InfrastructureError, JobError
from ..sandbox import GIB, MIB, Limits
from .decoder import run_in_sandbox

log = structlog.get_logger()

LIMITS = Limits(wall_s=180.0, disk_bytes=MIB, memory_bytes=2 * GIB, processes=16, log_bytes=32 * MIB, tmp_bytes=MIB)
ADDRESSES = 500_000
KERNEL_SPACE = 1 << 63
"""Lowest address of the kernel, on x86-64 and arm64."""
_KALLSYMS = LinearPattern(r"([0-9a-f]{8,16}) (\w) ([A-Za-z0-9_.$]{1,160})(?:\t\[([a-z0-9_-]{1,60})\])?")
MODULE_FUNCTION = 64 << 10
"""Longest function of a module: an address farther behind its last symbol belongs to none."""

_Text = Annotated[str, StringConstraints(pattern=r"^[ -~]*$", max_length=160)]
_Path = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.+,/-]*$", max_length=240)]


@dataclass(frozen=True)
class Function:
    """A function of the kernel or of a module, without the compiler's suffixes."""

    name: str
    file: str = ""
    """Path in the source tree; empty if it is not known."""


@dataclass(frozen=True)
class SourcePlace:
    """A line of the source."""

    file: str
    line: int
    source: str = ""


class _Answer(Message):
    functions: list[tuple[_Text, _Path]] = Field(default_factory=list, max_length=ADDRESSES)
    code: list[Annotated[int, Field(ge=-1)]] = Field(default_factory=list, max_length=ADDRESSES)
    lines: list[tuple[_Text, _Path, Annotated[int, Field(ge=0)], str] | tuple[()]] = Field(
        default_factory=list, max_length=ADDRESSES
    )
    data: list[tuple[_Text, Annotated[int, Field(ge=0)]] | tuple[()]] = Field(
        default_factory=list, max_length=ADDRESSES
    )
    per_cpu: list[tuple[_Text, Annotated[int, Field(ge=0)]] | tuple[()]] = Field(
        default_factory=list, max_length=ADDRESSES
    )
    error: Annotated[str, Field(max_length=300)] = ""


@dataclass
class CountedCode:
    """The addresses of one kernel, each looked up once. `fetch` returns the path of an artifact on this machine."""

    kernel: Kernel
    fetch: Callable[[Artifact], Path]
    lacking: str = ""
    """Why there are no names; empty while there are some."""
    functions: dict[int, Function] = field(default_factory=dict)
    lines: dict[int, SourcePlace] = field(default_factory=dict)
    data: dict[int, str] = field(default_factory=dict)
    """Address of a cache line -> `symbol + offset`."""
    per_cpu: dict[int, str] = field(default_factory=dict)
    """Offset of a cache line in the per-CPU memory of a CPU -> `symbol (per-CPU) + offset`."""
    _asked: set[tuple[str, int]] = field(default_factory=set)

    def look_up(
        self,
        symbols: str,
        code: Collection[int],
        lines: Collection[int],
        data: Collection[int],
        per_cpu: Collection[int] = (),
    ) -> None:
        """Look addresses of a boot up; those of user space are left out. Never raises.

        `symbols` are lines of the boot's /proc/kallsyms: `_text`, and the functions of modules. `data` are addresses of
        cache lines, `per_cpu` their offsets in the per-CPU memory of a CPU.
        """
        modules, text = _read_symbols(symbols)
        self.functions |= {
            address: Function(name) for address in code if (name := modules.name(address)) and address >= KERNEL_SPACE
        }
        request: dict[str, list[int] | int] = {
            "text": text,
            "code": self._new("code", code),
            "lines": self._new("lines", lines),
            "data": self._new("data", data),
            "per_cpu": self._new("per_cpu", per_cpu, least=0),
        }
        if not text:
            self.lacking = self.lacking or "the boot did not tell where its kernel is"
        if self.lacking or not any(request[kind] for kind in ("code", "lines", "data", "per_cpu")):
            return
        try:
            self._resolve(request)
        except JobError as error:
            self.lacking = str(error)
        except Exception as error:  # counts without names are better than none
            log.warning("counted addresses have no names", error=repr(error))
            self.lacking = "vmlinux could not be fetched"

    def _new(self, kind: str, addresses: Iterable[int], *, least: int = KERNEL_SPACE) -> list[int]:
        new = sorted(each for each in set(addresses) if each >= least and (kind, each) not in self._asked)
        self._asked |= {(kind, each) for each in new}
        return new[:ADDRESSES]

    def _resolve(self, request: dict[str, list[int] | int]) -> None:
        if self.kernel.vmlinux is None:
            self.lacking = "the server does not provide vmlinux"
            return
        files = {"/vmlinux": self.fetch(self.kernel.vmlinux)}
        if self.kernel.sources is not None:
            files["/sources.zip"] = self.fetch(self.kernel.sources)
        try:
            answer = _Answer.model_validate_json(run_in_sandbox(files, request, LIMITS))
        except ValidationError as error:
            raise InfrastructureError("the debug information of vmlinux is not usable") from error
        if answer.error:
            reason = answer.error if answer.error.isprintable() else "unreadable"
            raise InfrastructureError(f"the debug information of vmlinux cannot be read: {reason}")
        known = [Function(_base_name(name), file) for name, file in answer.functions]
        for address, index in zip(_list(request, "code"), answer.code, strict=False):
            if 0 <= index < len(known):
                self.functions.setdefault(address, known[index])
        for address, place in zip(_list(request, "lines"), answer.lines, strict=False):
            if place:
                source = place[3] if place[3].isprintable() else ""
                self.lines[address] = SourcePlace(place[1], place[2], source[:160])
        for address, found in zip(_list(request, "data"), answer.data, strict=False):
            if found:
                self.data[address] = with_offset(*found)
        for offset, found in zip(_list(request, "per_cpu"), answer.per_cpu, strict=False):
            if found:
                self.per_cpu[offset] = with_offset(f"{found[0]} (per-CPU)", found[1])


def with_offset(name: str, offset: int) -> str:
    """Return `name + 0x40`; only the name if the offset is zero."""
    return f"{name} + {offset:#x}" if offset else name


def address_of_text(symbols: str) -> int:
    """Return the address of `_text` in lines of /proc/kallsyms; 0 if it is not there."""
    return _read_symbols(symbols)[1]


def _list(request: dict[str, list[int] | int], kind: str) -> list[int]:
    found = request[kind]
    return found if isinstance(found, list) else []


def _base_name(name: str) -> str:
    """Return a function's name without the suffixes that the compiler gives to its parts (`.cold`, `.isra.0`)."""
    return name.partition(".")[0] or name


class _Modules:
    """Functions of modules, by address."""

    def __init__(self, symbols: Iterable[tuple[int, str]]) -> None:
        ordered = sorted(symbols)
        self._starts = [start for start, _ in ordered]
        self._names = [name for _, name in ordered]

    def name(self, address: int) -> str:
        at = bisect_right(self._starts, address) - 1
        return self._names[at] if at >= 0 and address - self._starts[at] < MODULE_FUNCTION else ""


def _read_symbols(text: str) -> tuple[_Modules, int]:
    """Return the functions of modules, and the address of `_text` (0 if it is not there)."""
    start = 0
    functions: list[tuple[int, str]] = []
    for line in text.split("\n")[:ADDRESSES]:
        if match := _KALLSYMS.fullmatch(line):
            address, kind, name, module = match.groups()
            if module and kind in "tT":
                functions.append((int(address, 16), _base_name(name)))
            elif name == "_text":
                start = int(address, 16)
    return _Modules(functions), start
