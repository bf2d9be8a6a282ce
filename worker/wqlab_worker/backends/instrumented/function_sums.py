"""Sum the counts of a window by function, file and subsystem."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from typing import TypeVar

from wqlab_bench.instrument.stream import Moved, Window
from wqlab_contracts.instrument import (
    FILE_LIMIT,
    FUNCTION_LIMIT,
    OTHER,
    SUBSYSTEM_LIMIT,
    USER_SPACE,
    FunctionCounts,
    LevelCounts,
    SubsystemCounts,
    shorten_symbol,
)

from ...stacks.counted_code import KERNEL_SPACE, CountedCode, Function

PS_PER_NS = 1000
PROGRAMS = Function("(user space)")
UNKNOWN = Function("(unknown)")
_OWN_FILES = frozenset({"", "kernel"})
"""Folders whose files are subsystems of their own: kernel/workqueue.c has little to do with kernel/fork.c."""
_NO_LEVELS = (0, 0, 0, 0)

_Counted = TypeVar("_Counted", FunctionCounts, SubsystemCounts)


@dataclass
class _Counts:
    instructions: int = 0
    locked: int = 0
    picoseconds: int = 0
    moved: list[Moved] = field(default_factory=list)


def functions_of(window: Window, code: CountedCode, touched: Set[str]) -> list[FunctionCounts]:
    """Return the counts by function: the FUNCTION_LIMIT with the most instructions or transfers (those in `touched`
    first), then the sums of the others by file, at most FILE_LIMIT. All entries together are the whole window."""
    counted = [
        FunctionCounts(
            name=shorten_symbol(function.name),
            subsystem=subsystem(function),
            file=function.file,
            touched=function.name in touched,
            instructions=counts.instructions,
            transfers=levels_of(counts.moved),
            locked=counts.locked,
            virtual_ns=round(counts.picoseconds / PS_PER_NS),
        )
        for function, counts in _by_function(window, code).items()
    ]
    counted = _by_size(counted)
    counted.sort(key=lambda each: not each.touched)
    return [*counted[:FUNCTION_LIMIT], *_by_file(counted[FUNCTION_LIMIT:])]


def subsystems_of(window: Window, code: CountedCode) -> list[SubsystemCounts]:
    """Return the sums by subsystem: user space, then most instructions first; the smallest are summed if there are too
    many."""
    sums: dict[str, _Counts] = defaultdict(_Counts)
    for function, counts in _by_function(window, code).items():
        own = sums[subsystem(function)]
        own.instructions += counts.instructions
        own.locked += counts.locked
        own.moved += counts.moved
    counted = [
        SubsystemCounts(
            name=shorten_symbol(name),
            instructions=own.instructions,
            transfers=levels_of(own.moved),
            locked=own.locked,
        )
        for name, own in sums.items()
    ]
    counted.sort(key=lambda each: (each.name != USER_SPACE, -each.instructions, each.name))
    kept, rest = counted[: SUBSYSTEM_LIMIT - 1], counted[SUBSYSTEM_LIMIT - 1 :]
    return [*kept, SubsystemCounts(name=OTHER, **_summed(rest))] if len(rest) > 1 else counted


def subsystem(function: Function) -> str:
    """Return the folder of a function's source, two levels deep (`fs/xfs`); for a file in `kernel/` or at the top the
    file itself."""
    if function == PROGRAMS:
        return USER_SPACE
    folder = "/".join(function.file.split("/")[:-1][:2])
    return function.file if folder in _OWN_FILES else folder


def function_at(code: CountedCode, pc: int) -> Function:
    """Return the function that has the code at an address, or one that stands for user space or unknown code."""
    if pc < KERNEL_SPACE:
        return PROGRAMS
    return code.functions.get(pc) or UNKNOWN


def levels_of(moved: Iterable[Moved]) -> LevelCounts:
    """Return the transfers by level."""
    counts = Counter[str]()
    for each in moved:
        counts[each.level] += each.count
    return LevelCounts(smt=counts["smt"], l3=counts["l3"], node=counts["node"], remote=counts["remote"])


def sum_levels(counts: Iterable[LevelCounts]) -> LevelCounts:
    smt, l3, node, remote = (
        sum(level) for level in zip(_NO_LEVELS, *((c.smt, c.l3, c.node, c.remote) for c in counts), strict=True)
    )
    return LevelCounts(smt=smt, l3=l3, node=node, remote=remote)


def _by_function(window: Window, code: CountedCode) -> dict[Function, _Counts]:
    found: dict[Function, _Counts] = defaultdict(_Counts)
    for pc, count in window.code.items():
        found[function_at(code, pc)].instructions += count
    for pc, count in window.locked_code.items():
        found[function_at(code, pc)].locked += count
    for pc, picoseconds in window.times.items():
        found[function_at(code, pc)].picoseconds += picoseconds
    for each in window.moved:
        found[function_at(code, each.pc)].moved.append(each)
    return found


def _by_file(rest: Sequence[FunctionCounts]) -> list[FunctionCounts]:
    """Return the sums of functions by file; the smallest files are summed if there are too many."""
    files: dict[tuple[str, str], list[FunctionCounts]] = defaultdict(list)
    for each in rest:
        files[each.subsystem, each.file].append(each)
    counted = [
        FunctionCounts(name=OTHER, subsystem=name, file=file, virtual_ns=_time(functions), **_summed(functions))
        for (name, file), functions in files.items()
    ]
    counted = _by_size(counted)
    kept, smallest = counted[: FILE_LIMIT - 1], counted[FILE_LIMIT - 1 :]
    if len(smallest) < 2:
        return counted
    return [*kept, FunctionCounts(name=OTHER, virtual_ns=_time(smallest), **_summed(smallest))]


def _time(functions: Sequence[FunctionCounts]) -> int:
    return sum(each.virtual_ns for each in functions)


def _by_size(counted: list[FunctionCounts]) -> list[FunctionCounts]:
    """Return the entries ordered by their share of instructions or of transfers, whichever is larger."""
    all_instructions = max(1, sum(each.instructions for each in counted))
    all_moved = max(1, sum(each.transfers.total for each in counted))

    def size(each: FunctionCounts) -> tuple[float, str, str]:
        share = max(each.instructions / all_instructions, each.transfers.total / all_moved)
        return -share, each.name, each.file

    return sorted(counted, key=size)


def _summed(counted: Sequence[_Counted]) -> dict[str, int | LevelCounts]:
    return {
        "instructions": sum(each.instructions for each in counted),
        "transfers": sum_levels(each.transfers for each in counted),
        "locked": sum(each.locked for each in counted),
    }
