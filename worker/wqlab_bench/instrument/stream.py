"""Read the plugin's output: frames that the guest sent, and windows.

The guest chooses names and contents of frames and may break the protocol, so everything is checked. The format is
described in plugin/channel.h and plugin/window.h.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, Literal, NoReturn

Level = Literal["smt", "l3", "node", "remote"]
LEVELS: tuple[Level, ...] = ("smt", "l3", "node", "remote")

FRAME_MAX_BYTES = 64 << 20
WINDOW_MAX_BYTES = 256 << 20
_HEADER_MAX_BYTES = 300
_KINDS: dict[str, Literal["load", "store"]] = {"load": "load", "store": "store"}
_LEVEL_NAMES: dict[str, Level] = {level: level for level in LEVELS}
_CPUS_MAX = 64
_HEX_DIGITS = frozenset("0123456789abcdef")
_ADDRESS_DIGITS = 16
_NAME_MAX = 63


class StreamError(Exception):
    """The output is incomplete or not of this format; the message says where and how."""


@dataclass(frozen=True)
class Frame:
    """Data that the guest sent."""

    name: str
    """1 to 200 printable ASCII characters without space."""
    data: bytes


@dataclass(frozen=True, slots=True)
class Moved:
    """Cache line transfers of one instruction."""

    level: Level
    kind: Literal["load", "store"]
    pc: int
    writer_pc: int
    """Instruction that wrote the line before; 0 if none is known."""
    count: int


@dataclass(frozen=True, slots=True)
class Slab:
    """The slab cache that contains a cache line."""

    cache: str
    """Printable ASCII without spaces."""
    size: int
    """Distance in bytes between two objects of the cache; 0 if it is unknown."""
    offset: int
    """Offset in bytes of the cache line from the start of its object."""


@dataclass(frozen=True, slots=True)
class PerCpu:
    """Per-CPU memory of one CPU."""

    address: int
    size: int
    """Size in bytes; 0 if it is unknown."""


@dataclass(frozen=True, slots=True)
class Pool:
    """A worker pool (kernel/workqueue.c), and the transfers by level of the cache line that has its lock."""

    address: int
    size: int
    cpu: int | None
    """None: unbound."""
    transfers: tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Line:
    """A cache line, and its transfers by level (in the order of LEVELS)."""

    physical: int
    """Address in QEMU's numbering of RAM; tells lines apart."""
    virtual: int
    """An address by which the line was accessed, the kernel's if there was one."""
    transfers: tuple[int, int, int, int]
    slab: Slab | None = None


@dataclass(frozen=True, slots=True)
class SpinWait:
    """Waits for a spinlock by one call."""

    line: int
    """Virtual address of the cache line that has the lock."""
    pc: int
    """An address in the instruction that called the function of the lock."""
    count: int
    picoseconds: int
    slab: Slab | None = None


@dataclass(frozen=True, slots=True)
class CpuClock:
    """Virtual time of one CPU in a window, in picoseconds."""

    begin: int
    end: int
    idle: int


@dataclass(frozen=True)
class Window:
    """Counts between two markers of the guest."""

    number: int
    """1 for the first window of a boot."""
    instructions: int = 0
    kernel_instructions: int = 0
    loads: int = 0
    stores: int = 0
    locked: int = 0
    """Number of executed atomic instructions (x86-64: lock prefix or `xchg`; arm64: store exclusive or LSE)."""
    code: dict[int, int] = field(default_factory=dict)
    """Address of a translated block -> executed instructions in it."""
    sizes: dict[int, int] = field(default_factory=dict)
    """Address of a translated block -> bytes of the longest executed block there: it may also be entered in parts."""
    moved: list[Moved] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    """The 200 lines that moved most, most first."""
    cpus: dict[tuple[int, int], int] = field(default_factory=dict)
    """(from, to) -> transfers between two CPUs, in QEMU's numbering."""
    locked_code: dict[int, int] = field(default_factory=dict)
    """Address of a locked instruction -> its executions."""
    per_cpu: dict[int, PerCpu] = field(default_factory=dict)
    """By the guest's number of the CPU; empty if the plugin had no layout."""
    pools: list[Pool] = field(default_factory=list)
    times: dict[int, int] = field(default_factory=dict)
    """Address of a translated block, or of an instruction that waited for a line -> virtual time in picoseconds. Empty
    if the device is not modelled."""
    clocks: dict[int, CpuClock] = field(default_factory=dict)
    """By QEMU's number of the CPU; empty if the device is not modelled."""
    spins: list[SpinWait] = field(default_factory=list)
    """Waits for spinlocks, by lock and call; empty if the device is not modelled, or is arm64."""


@dataclass(frozen=True)
class Blocks:
    """Blocks of the kernel that the boot executed, in windows or not."""

    sizes: dict[int, int]
    """Address -> bytes of the longest block there."""


def read(path: Path) -> Iterator[Frame | Window | Blocks]:
    """Yield the frames and windows in the order in which they ended, then the blocks. Raises StreamError."""
    try:
        with path.open("rb") as stream:
            yield from _records(stream)
    except OSError as error:
        raise StreamError(f"cannot read the plugin's output: {error}") from error


def _records(stream: BinaryIO) -> Iterator[Frame | Window | Blocks]:
    while header := stream.readline(_HEADER_MAX_BYTES):
        if not header.endswith(b"\n"):
            raise StreamError("the plugin's output ends within a header")
        words = header.decode("ascii", errors="replace").split()
        match words:
            case ["send", name, size]:
                yield Frame(name, _content(stream, size, FRAME_MAX_BYTES))
            case ["window", number, size]:
                yield _window(_decimal(number), _content(stream, size, WINDOW_MAX_BYTES))
            case ["blocks", "kernel", size]:
                yield Blocks(_sizes(_content(stream, size, WINDOW_MAX_BYTES)))
            case ["lost", *reason]:
                raise StreamError(f"the guest's results are incomplete: {' '.join(reason)}")
            case _:
                raise StreamError(f"the plugin's output has an unknown record: {header[:80]!r}")


def _content(stream: BinaryIO, size: str, limit: int) -> bytes:
    count = _decimal(size)
    if count > limit:
        raise StreamError(f"the plugin's output has a record of {count} bytes; the limit is {limit}")
    data = stream.read(count)
    if len(data) != count or stream.read(1) != b"\n":
        raise StreamError("the plugin's output ends within a record")
    return data


def _sizes(content: bytes) -> dict[int, int]:
    found: dict[int, int] = {}
    for text in content.decode("ascii", errors="replace").splitlines():
        pc, _, size = text.partition("\t")
        address = _address(pc)
        found[address] = max(found.get(address, 0), _decimal(size))
    return found


def _window(number: int, content: bytes) -> Window:
    totals: tuple[int, int, int, int, int] | None = None
    code: dict[int, int] = {}
    sizes: dict[int, int] = {}
    moved: list[Moved] = []
    lines: list[Line] = []
    cpus: dict[tuple[int, int], int] = {}
    locked: dict[int, int] = {}
    per_cpu: dict[int, PerCpu] = {}
    pools: list[Pool] = []
    times: dict[int, int] = {}
    clocks: dict[int, CpuClock] = {}
    spins: list[SpinWait] = []
    for text in content.decode("ascii", errors="replace").splitlines():
        match text.split("\t"):
            case ["code", pc, size, count]:
                address = _address(pc)
                code[address] = code.get(address, 0) + _decimal(count)
                sizes[address] = max(sizes.get(address, 0), _decimal(size))
            case ["moved", level, kind, pc, writer, count] if level in _LEVEL_NAMES and kind in _KINDS:
                moved.append(Moved(_LEVEL_NAMES[level], _KINDS[kind], _address(pc), _address(writer), _decimal(count)))
            case ["line", physical, virtual, smt, l3, node, remote]:
                counts = (_decimal(smt), _decimal(l3), _decimal(node), _decimal(remote))
                lines.append(Line(_address(physical), _address(virtual), counts))
            case ["spin", line, pc, count, picoseconds]:
                spins.append(SpinWait(_address(line), _address(pc), _decimal(count), _decimal(picoseconds)))
            case ["slab", virtual, size, offset, cache] if _is_name(cache):
                slab = Slab(cache, _decimal(size), _decimal(offset))
                if spins and spins[-1].line == _address(virtual):
                    spins[-1] = replace(spins[-1], slab=slab)
                elif lines and lines[-1].virtual == _address(virtual):
                    lines[-1] = replace(lines[-1], slab=slab)
                else:
                    _reject(text)
            case ["percpu", cpu, address, size]:
                per_cpu[_cpu(cpu)] = PerCpu(_address(address), _decimal(size))
            case ["pool", address, size, cpu, _, smt, l3, node, remote]:
                counts = (_decimal(smt), _decimal(l3), _decimal(node), _decimal(remote))
                own = None if cpu == "unbound" else _decimal(cpu)
                pools.append(Pool(_address(address), _decimal(size), own, counts))
            case ["cpus", source, target, count]:
                cpus[_cpu(source), _cpu(target)] = _decimal(count)
            case ["time", pc, picoseconds]:
                times[_address(pc)] = _decimal(picoseconds)
            case ["clock", cpu, begin, end, idle]:
                clocks[_cpu(cpu)] = CpuClock(_decimal(begin), _decimal(end), _decimal(idle))
            case ["locked", pc, count]:
                locked[_address(pc)] = _decimal(count)
            case ["total", instructions, kernel, loads, stores, locked_count] if totals is None:
                totals = (
                    _decimal(instructions), _decimal(kernel), _decimal(loads), _decimal(stores), _decimal(locked_count)
                )  # fmt: skip
            case _:
                _reject(text)
    if totals is None:
        raise StreamError(f"window {number} has no totals")
    return Window(number, *totals, code, sizes, moved, lines, cpus, locked, per_cpu, pools, times, clocks, spins)


def _is_name(text: str) -> bool:
    return 0 < len(text) <= _NAME_MAX and text.isascii() and text.isprintable() and " " not in text


def _decimal(text: str) -> int:
    return int(text) if len(text) <= 20 and text.isascii() and text.isdigit() else _reject(text)


def _address(text: str) -> int:
    valid = 0 < len(text) <= _ADDRESS_DIGITS and _HEX_DIGITS.issuperset(text)
    return int(text, 16) if valid else _reject(text)


def _cpu(text: str) -> int:
    cpu = _decimal(text)
    return cpu if cpu < _CPUS_MAX else _reject(text)


def _reject(text: str) -> NoReturn:
    raise StreamError(f"the plugin's output has an invalid value: {text[:80]!r}")
