"""Add up the windows of instrument profiles by subsystem, function, pair of lines, line of data and CPU. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import fmean
from typing import Generic, TypeVar

from wqlab_contracts import instrument
from wqlab_contracts.api.instrument import (
    FunctionChange,
    LineChange,
    Moves,
    PairChange,
    PerOperation,
    SpinChange,
    SpinTimes,
    SubsystemChange,
)
from wqlab_contracts.enums import Arm
from wqlab_contracts.instrument import OTHER, CpuPlace, InstrumentProfile, SubsystemCounts, Window
from wqlab_contracts.messages import Message

MAX_NAMES = 4_000
"""Entries of each kind that a cell keeps. Boots name about a thousand functions; a lab can send more."""
_DIGITS = 5
"""Number of significant digits to which counts per operation are rounded."""

Change = TypeVar("Change", SubsystemChange, FunctionChange, PairChange, LineChange, SpinChange)
Values = TypeVar("Values", bound=Message)
Seeds = Mapping[Arm, Sequence[int]]
Repetitions = Mapping[tuple[Arm, int], int]
"""(arm, seed) -> number of repetitions of the cell in that boot."""


class Sums(Generic[Values]):
    """Counts of one subsystem, function, pair or line: per operation, by arm and seed."""

    def __init__(self, kind: type[Values]) -> None:
        self._kind = kind
        self._names = list(kind.model_fields)
        self._found: dict[tuple[Arm, int], list[float]] = {}
        self._windows: dict[tuple[Arm, int], int] = defaultdict(int)

    def add(self, arm: Arm, seed: int, values: Values) -> None:
        """Add the counts of a window."""
        self._add((arm, seed), [getattr(values, name) for name in self._names])
        self._windows[arm, seed] += 1

    def add_all(self, other: Sums[Values]) -> None:
        """Add the counts of other sums, seed by seed."""
        for boot, counts in other._found.items():
            self._add(boot, counts)

    def means(self, seeds: Seeds, repetitions: Repetitions) -> dict[Arm, Values]:
        """Return the mean over the seeds by arm; a seed without counts counts as zero."""
        return {
            arm: self._kind.model_validate(
                {
                    name: rounded(fmean(self._of_seed(arm, seed, repetitions, name) for seed in own))
                    for name in self._names
                }
            )
            for arm, own in seeds.items()
        }

    def agreeing(self, seeds: Seeds, repetitions: Repetitions, quantity: str) -> int:
        """Return the number of seeds whose count changed in the direction of the mean change; 0 with one arm."""
        if len(seeds) < 2:
            return 0
        changes = [
            self._of_seed(Arm.CANDIDATE, seed, repetitions, quantity)
            - self._of_seed(Arm.BASELINE, seed, repetitions, quantity)
            for seed in seeds[Arm.BASELINE]
        ]
        mean = fmean(changes)
        return sum(change * mean > 0 for change in changes)

    def are_complete(self, seeds: Seeds, repetitions: Repetitions) -> bool:
        """Return True if every window of the seeds has counts."""
        boots = [(arm, seed) for arm, own in seeds.items() for seed in own]
        return all(self._windows.get(boot, 0) >= repetitions[boot] for boot in boots)

    def _add(self, boot: tuple[Arm, int], counts: Sequence[float]) -> None:
        found = self._found.setdefault(boot, [0.0] * len(self._names))
        for index, count in enumerate(counts):
            found[index] += count

    def _of_seed(self, arm: Arm, seed: int, repetitions: Repetitions, quantity: str) -> float:
        found = self._found.get((arm, seed))
        return found[self._names.index(quantity)] / max(1, repetitions[arm, seed]) if found else 0.0


@dataclass
class Entry(Generic[Change, Values]):
    """What a report says about one subsystem, function, pair or line, and its counts."""

    change: Change
    sums: Sums[Values]


class Table(Generic[Change, Values]):
    """Entries of one kind by key, at most MAX_NAMES."""

    def __init__(self, kind: type[Values]) -> None:
        self._kind = kind
        self._entries: dict[tuple[str, ...], Entry[Change, Values]] = {}
        self.is_full = False
        """True if there was no room for an entry."""

    def find(self, key: tuple[str, ...], make: Callable[[], Change]) -> Entry[Change, Values] | None:
        """Return the entry of a key, a new one if there is none; None if there is no room for it."""
        if key not in self._entries:
            if len(self._entries) >= MAX_NAMES:
                self.is_full = True
                return None
            self._entries[key] = Entry(make(), Sums(self._kind))
        return self._entries[key]

    def __iter__(self) -> Iterator[Entry[Change, Values]]:
        return iter(self._entries.values())


@dataclass
class CellSums:
    """Counts of one scenario and setting, while profiles are read."""

    operation: str = ""
    emulators: dict[str, None] = field(default_factory=dict)
    plugins: dict[str, None] = field(default_factory=dict)
    topology: list[CpuPlace] = field(default_factory=list)
    repetitions: dict[tuple[Arm, int], int] = field(default_factory=lambda: defaultdict(int))
    totals: Sums[PerOperation] = field(default_factory=lambda: Sums(PerOperation))
    subsystems: Table[SubsystemChange, PerOperation] = field(default_factory=lambda: Table(PerOperation))
    other_subsystems: Sums[PerOperation] = field(default_factory=lambda: Sums(PerOperation))
    """Sums of subsystems without an entry."""
    functions: Table[FunctionChange, PerOperation] = field(default_factory=lambda: Table(PerOperation))
    other_functions: Sums[PerOperation] = field(default_factory=lambda: Sums(PerOperation))
    """Sums of functions without an entry."""
    least_listed: float = 0.0
    """Largest share of instructions or of transfers that a function can have and be missing in a window."""
    pairs: Table[PairChange, Moves] = field(default_factory=lambda: Table(Moves))
    lines: Table[LineChange, Moves] = field(default_factory=lambda: Table(Moves))
    spins: Table[SpinChange, SpinTimes] = field(default_factory=lambda: Table(SpinTimes))
    cpus: dict[tuple[Arm, int], list[list[float]]] = field(default_factory=dict)

    @property
    def is_full(self) -> bool:
        """True if the profiles name more than is kept."""
        return any(table.is_full for table in (self.subsystems, self.functions, self.pairs, self.lines, self.spins))


def add_window(cell: CellSums, arm: Arm, profile: InstrumentProfile, window: Window) -> None:
    """Add the counts of a window. Windows of another operation or topology than the first are left out."""
    if not cell.operation:
        cell.operation, cell.topology = window.unit, profile.topology
    if (window.unit, profile.topology) != (cell.operation, cell.topology):
        return
    cell.emulators.setdefault(profile.emulator)
    cell.plugins.setdefault(profile.plugin)
    seed = profile.seed
    cell.repetitions[arm, seed] += 1
    cell.totals.add(arm, seed, _per_operation(window, window))
    _add_subsystems(cell, arm, seed, window)
    _add_functions(cell, arm, seed, window)
    _add_pairs(cell, arm, seed, window)
    _add_lines(cell, arm, seed, window)
    _add_spins(cell, arm, seed, window)
    if window.cpus:
        matrix = cell.cpus.setdefault((arm, seed), [[0.0] * len(window.cpus) for _ in window.cpus])
        for sums_of_row, row in zip(matrix, window.cpus, strict=True):
            for index, count in enumerate(row):
                sums_of_row[index] += count / window.operations


def rounded(value: float) -> float:
    """Return a count per operation as reports have it."""
    return float(f"{value:.{_DIGITS}g}")


def _add_subsystems(cell: CellSums, arm: Arm, seed: int, window: Window) -> None:
    for each in window.subsystems or _subsystems_of(window.functions):
        entry = None
        if each.name != OTHER:
            entry = cell.subsystems.find((each.name,), partial(SubsystemChange, name=each.name, per_op={}))
        sums = entry.sums if entry is not None else cell.other_subsystems
        sums.add(arm, seed, _per_operation(each, window))


def _subsystems_of(functions: Iterable[instrument.FunctionCounts]) -> Iterator[SubsystemCounts]:
    """Yield each function as a part of its subsystem, for profiles without sums by subsystem."""
    for each in functions:
        # The sum of all other functions is of several subsystems.
        name = OTHER if each.name == OTHER and not each.subsystem else each.subsystem
        yield SubsystemCounts(name=name, instructions=each.instructions, transfers=each.transfers, locked=each.locked)


def _add_functions(cell: CellSums, arm: Arm, seed: int, window: Window) -> None:
    for each in window.functions:
        fields = each.model_dump(include={"name", "subsystem", "file", "touched"})
        key = (each.name, each.subsystem, each.file)
        entry = cell.functions.find(key, partial(FunctionChange, **fields, per_op={}))
        if entry is not None and each.touched and not entry.change.touched:
            entry.change = entry.change.model_copy(update={"touched": True})
        sums = entry.sums if entry is not None else cell.other_functions
        sums.add(arm, seed, _per_operation(each, window))
    cell.least_listed = max(cell.least_listed, _least_listed(window))


def _least_listed(window: Window) -> float:
    """Return the share of instructions or of transfers, whichever is larger, of the smallest function that the window
    lists because of its size; 0 if it lists all."""
    if all(each.name != OTHER for each in window.functions):
        return 0.0
    return min(
        (
            max(each.instructions / max(1, window.instructions), each.transfers.total / max(1, window.transfers.total))
            for each in window.functions
            if each.name != OTHER and not each.touched
        ),
        default=0.0,
    )


def _add_pairs(cell: CellSums, arm: Arm, seed: int, window: Window) -> None:
    for pair in window.pairs:
        # The text of a line identifies it in both kernels: a series moves the lines behind its changes.
        taker = pair.taker_source or pair.taker_line
        writer = pair.writer_source or pair.writer_line
        texts = pair.model_dump(exclude={"transfers"})
        key = (pair.taker, taker, pair.writer, writer, pair.kind)
        entry = cell.pairs.find(key, partial(PairChange, **texts, per_op={}))
        if entry is None:
            continue
        if arm is Arm.CANDIDATE:
            entry.change = PairChange(**texts, per_op={})
        entry.sums.add(arm, seed, _moves(pair.transfers, window))


def _add_lines(cell: CellSums, arm: Arm, seed: int, window: Window) -> None:
    addresses: dict[str, set[str]] = defaultdict(set)
    for line in window.lines:
        symbol = line.symbol or line.address
        addresses[symbol].add(line.address)
        entry = cell.lines.find((symbol,), partial(LineChange, symbol=symbol, per_op={}))
        if entry is None:
            continue
        entry.sums.add(arm, seed, _moves(line.transfers, window))
        if len(addresses[symbol]) > entry.change.addresses:
            entry.change = entry.change.model_copy(update={"addresses": len(addresses[symbol])})


def _add_spins(cell: CellSums, arm: Arm, seed: int, window: Window) -> None:
    for each in window.time.spins if window.time else []:
        texts = each.model_dump(include={"lock", "site", "site_line"})
        entry = cell.spins.find((each.lock, each.site), partial(SpinChange, **texts, per_op={}))
        if entry is None:
            continue
        if arm is Arm.CANDIDATE:
            entry.change = SpinChange(**texts, per_op={})
        waits = SpinTimes(count=each.count / window.operations, wait_ns=each.wait_ns / window.operations)
        entry.sums.add(arm, seed, waits)


def _per_operation(counts: Window | instrument.FunctionCounts | SubsystemCounts, window: Window) -> PerOperation:
    return PerOperation(
        **_moves(counts.transfers, window).model_dump(),
        instructions=counts.instructions / window.operations,
        locked=counts.locked / window.operations,
        virtual_ns=_virtual_ns(counts) / window.operations,
    )


def _virtual_ns(counts: Window | instrument.FunctionCounts | SubsystemCounts) -> int:
    """Return the virtual time; a subsystem has none of its own."""
    if isinstance(counts, Window):
        return counts.time.busy_ns if counts.time else 0
    return counts.virtual_ns if isinstance(counts, instrument.FunctionCounts) else 0


def _moves(transfers: instrument.LevelCounts, window: Window) -> Moves:
    return Moves(transfers=transfers.total / window.operations, across_l3=transfers.across_l3 / window.operations)
