"""Functions, lines and CPUs behind the counts of an instrumented device, from the profiles of its boots. Pure.

Profiles are read one after the other, because a run can have many and each can have megabytes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from statistics import fmean
from typing import Generic, TypeVar

from wqlab_contracts import instrument
from wqlab_contracts.api.instrument import (
    FunctionChange,
    InstrumentCell,
    LineChange,
    Moves,
    PairChange,
    PerOperation,
)
from wqlab_contracts.enums import Arm
from wqlab_contracts.instrument import OTHER, CpuPlace, InstrumentProfile, Window
from wqlab_contracts.specs import TestPlan

from .instrument_sentences import sentences

MAX_CELLS = 12
MAX_SEEDS = 16
MAX_FUNCTIONS = 80
MAX_CHANGED = 10
_DIGITS = 5
"""Number of significant digits to which counts per operation are rounded."""

Entry = TypeVar("Entry", FunctionChange, PairChange, LineChange)
Values = TypeVar("Values", bound=Moves)
_Repetitions = Mapping[tuple[Arm, int], int]
"""(arm, seed) -> number of repetitions of the cell in that boot."""


@dataclass(frozen=True)
class ProfileFile:
    """The profile that a boot uploaded. `read` returns its bytes, or None if the store no longer has it."""

    arm: Arm
    block: int
    read: Callable[[], bytes | None]


class _Sums(Generic[Values]):
    """Counts of one function, pair or line: per operation, by arm and seed."""

    def __init__(self, kind: type[Values]) -> None:
        self._kind = kind
        self._found: dict[Arm, dict[int, list[Values]]] = {arm: defaultdict(list) for arm in Arm}

    def add(self, arm: Arm, seed: int, values: Values) -> None:
        self._found[arm][seed].append(values)

    def means(self, seeds: Mapping[Arm, Sequence[int]], repetitions: _Repetitions) -> dict[Arm, Values]:
        """Return the mean over the seeds by arm; a seed without the entry counts as zero."""
        return {
            arm: self._kind.model_validate(
                {
                    name: _rounded(fmean(self._of_seed(arm, seed, repetitions, attrgetter(name)) for seed in own))
                    for name in self._kind.model_fields
                }
            )
            for arm, own in seeds.items()
        }

    def agreeing(
        self,
        seeds: Mapping[Arm, Sequence[int]],
        repetitions: _Repetitions,
        quantity: Callable[[Values], float],
    ) -> int:
        """Return the number of seeds under which the quantity changed in the direction of its mean change."""
        if len(seeds) < 2:
            return 0
        changes = [
            self._of_seed(Arm.CANDIDATE, seed, repetitions, quantity)
            - self._of_seed(Arm.BASELINE, seed, repetitions, quantity)
            for seed in seeds[Arm.BASELINE]
        ]
        mean = fmean(changes)
        return sum(change * mean > 0 for change in changes)

    def _of_seed(self, arm: Arm, seed: int, repetitions: _Repetitions, quantity: Callable[[Values], float]) -> float:
        return sum(map(quantity, self._found[arm].get(seed, ()))) / max(1, repetitions[arm, seed])


@dataclass
class _Cell:
    """Counts of one scenario and setting, while profiles are read."""

    operation: str = ""
    emulators: dict[str, None] = field(default_factory=dict)
    plugins: dict[str, None] = field(default_factory=dict)
    topology: list[CpuPlace] = field(default_factory=list)
    repetitions: dict[tuple[Arm, int], int] = field(default_factory=lambda: defaultdict(int))
    totals: _Sums[PerOperation] = field(default_factory=lambda: _Sums(PerOperation))
    functions: dict[Hashable, tuple[FunctionChange, _Sums[PerOperation]]] = field(default_factory=dict)
    pairs: dict[Hashable, tuple[PairChange, _Sums[Moves]]] = field(default_factory=dict)
    lines: dict[Hashable, tuple[LineChange, _Sums[Moves]]] = field(default_factory=dict)
    cpus: dict[tuple[Arm, int], list[list[float]]] = field(default_factory=dict)


def instrument_cells(plan: TestPlan, settings: Sequence[str], files: Iterable[ProfileFile]) -> list[InstrumentCell]:
    """Return where the counts of each scenario and setting come from, in the plan's order; at most MAX_CELLS.

    With two arms only the seeds that both have are used. A profile that cannot be read is ignored and noted.
    """
    cells: dict[tuple[str, str], _Cell] = {
        (scenario.name, setting): _Cell() for scenario in plan.scenarios for setting in settings
    }
    unread: list[str] = []
    for file in _paired(files):
        data = file.read()
        if data is None:
            unread.append(f"the profile of the {file.arm} under seed {file.block} is not in the store")
            continue
        try:
            profile = instrument.read(data)
            if profile.seed != file.block:
                raise ValueError(f"it is of seed {profile.seed}")
        except ValueError as error:
            unread.append(f"the profile of the {file.arm} under seed {file.block} was not read: {error}")
            continue
        for window in profile.windows:
            if (cell := cells.get((window.scenario, window.setting))) is not None:
                _add(cell, file.arm, profile, window)
    built = [_build(scenario, setting, cell, unread) for (scenario, setting), cell in cells.items()]
    found = [cell for cell in built if cell is not None]
    if len(found) > MAX_CELLS:
        left_out = f"{len(found) - MAX_CELLS} more scenarios and settings are not shown"
        found[MAX_CELLS - 1] = found[MAX_CELLS - 1].model_copy(
            update={"notes": [*found[MAX_CELLS - 1].notes, left_out]}
        )
    return found[:MAX_CELLS]


def _paired(files: Iterable[ProfileFile]) -> list[ProfileFile]:
    """Return the files of the first MAX_SEEDS seeds; with two arms, of those that both have."""
    blocks: dict[int, dict[Arm, ProfileFile]] = defaultdict(dict)
    for file in files:
        blocks[file.block].setdefault(file.arm, file)
    arms = {arm for block in blocks.values() for arm in block}
    complete = [block for _, block in sorted(blocks.items()) if block.keys() == arms]
    return [block[arm] for block in complete[:MAX_SEEDS] for arm in sorted(block)]


# --- add one window -----------------------------------------------------------------------------------------------


def _add(cell: _Cell, arm: Arm, profile: InstrumentProfile, window: Window) -> None:
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
    for each in window.functions:
        key = (each.name, each.file)
        if key not in cell.functions:
            function = FunctionChange(
                name=each.name, subsystem=each.subsystem, file=each.file, touched=each.touched, per_op={}
            )
            cell.functions[key] = (function, _Sums(PerOperation))
        elif each.touched and not cell.functions[key][0].touched:
            function, sums = cell.functions[key]
            cell.functions[key] = (function.model_copy(update={"touched": True}), sums)
        cell.functions[key][1].add(arm, seed, _per_operation(each, window))
    for pair in window.pairs:
        # The text of a line identifies it in both kernels: a series moves the lines behind its changes.
        taker = pair.taker_source or pair.taker_line
        writer = pair.writer_source or pair.writer_line
        pair_key = (pair.taker, taker, pair.writer, writer, pair.kind)
        if pair_key not in cell.pairs or arm is Arm.CANDIDATE:
            texts = pair.model_dump(exclude={"transfers"})
            sums_of_pair = cell.pairs[pair_key][1] if pair_key in cell.pairs else _Sums(Moves)
            cell.pairs[pair_key] = (PairChange(**texts, per_op={}), sums_of_pair)
        cell.pairs[pair_key][1].add(arm, seed, _moves(pair.transfers, window))
    for line in window.lines:
        symbol = line.symbol or line.address
        cell.lines.setdefault(symbol, (LineChange(symbol=symbol, per_op={}), _Sums(Moves)))
        cell.lines[symbol][1].add(arm, seed, _moves(line.transfers, window))
    if window.cpus:
        matrix = cell.cpus.setdefault((arm, seed), [[0.0] * len(window.cpus) for _ in window.cpus])
        for sums_of_row, row in zip(matrix, window.cpus, strict=True):
            for index, count in enumerate(row):
                sums_of_row[index] += count / window.operations


def _per_operation(counts: Window | instrument.FunctionCounts, window: Window) -> PerOperation:
    return PerOperation(
        **_moves(counts.transfers, window).model_dump(),
        instructions=counts.instructions / window.operations,
        locked=counts.locked / window.operations,
    )


def _moves(transfers: instrument.LevelCounts, window: Window) -> Moves:
    return Moves(transfers=transfers.total / window.operations, across_l3=transfers.across_l3 / window.operations)


# --- build the cell of the report ---------------------------------------------------------------------------------


def _build(scenario: str, setting: str, cell: _Cell, unread: Sequence[str]) -> InstrumentCell | None:
    """Return the cell of the report; None if no seed has a window of it (with two arms: of both)."""
    by_arm = {arm: sorted(seed for one, seed in cell.repetitions if one is arm) for arm in Arm}
    arms = [arm for arm in Arm if by_arm[arm]]
    if not arms:
        return None
    common = sorted(set.intersection(*(set(by_arm[arm]) for arm in arms)))
    if not common:
        return None
    seeds: dict[Arm, Sequence[int]] = dict.fromkeys(arms, common)
    totals = cell.totals.means(seeds, cell.repetitions)
    functions = [
        function.model_copy(
            update={
                "per_op": sums.means(seeds, cell.repetitions),
                "instruction_seeds": sums.agreeing(seeds, cell.repetitions, attrgetter("instructions")),
                "transfer_seeds": sums.agreeing(seeds, cell.repetitions, attrgetter("transfers")),
            }
        )
        for function, sums in cell.functions.values()
    ]
    pairs = [_with_moves(pair, sums, seeds, cell) for pair, sums in cell.pairs.values()]
    lines = [_with_moves(line, sums, seeds, cell) for line, sums in cell.lines.values()]
    built = InstrumentCell(
        scenario=scenario,
        setting=setting,
        operation=cell.operation,
        seeds=common,
        emulator=", ".join(cell.emulators),
        plugin=", ".join(cell.plugins),
        topology=cell.topology,
        totals=totals,
        functions=_largest(functions, totals),
        changed=_most(
            [each for each in functions if each.name != OTHER], lambda each: _change(each, totals), attrgetter("name")
        ),
        pairs=_most(pairs, lambda each: _moved(each.per_op), lambda each: (each.taker, each.taker_line)),
        lines=_most(lines, lambda each: _moved(each.per_op), attrgetter("symbol")),
        cpus={arm: matrix for arm in arms if (matrix := _mean_matrix(cell, arm, common))},
        notes=[*unread, *_notes(cell)],
    )
    return built.model_copy(update={"sentences": sentences(built)})


def _most(entries: Sequence[Entry], change: Callable[[Entry], float], name: Callable[[Entry], object]) -> list[Entry]:
    """Return the MAX_CHANGED entries with the largest change, without those that did not change."""
    ranked = sorted(entries, key=lambda each: (-change(each), name(each)))
    return [each for each in ranked[:MAX_CHANGED] if change(each)]


def _with_moves(entry: Entry, sums: _Sums[Moves], seeds: Mapping[Arm, Sequence[int]], cell: _Cell) -> Entry:
    return entry.model_copy(
        update={
            "per_op": sums.means(seeds, cell.repetitions),
            "seeds": sums.agreeing(seeds, cell.repetitions, attrgetter("transfers")),
        }
    )


def _notes(cell: _Cell) -> list[str]:
    notes = []
    if len(cell.emulators) > 1 or len(cell.plugins) > 1:
        notes.append("the boots were counted by different emulators or plugins, which can count differently")
    if any(function.name == OTHER for function, _ in cell.functions.values()):
        notes.append(
            f"a function that is not among the largest {instrument.FUNCTION_LIMIT} of a boot counts as zero in that "
            f"boot; its counts are in {OTHER}"
        )
    return notes


def _largest(functions: Sequence[FunctionChange], totals: Mapping[Arm, PerOperation]) -> list[FunctionChange]:
    """Return the MAX_FUNCTIONS functions with the largest share of instructions or transfers; the rest as OTHER."""
    named = sorted(
        (each for each in functions if each.name != OTHER), key=lambda each: (-_size(each, totals), each.name)
    )
    rest = [each for each in functions if each.name == OTHER] + named[MAX_FUNCTIONS:]
    if not rest:
        return named
    summed = {
        arm: PerOperation.model_validate(
            {
                name: _rounded(sum(getattr(each.per_op[arm], name) for each in rest))
                for name in PerOperation.model_fields
            }
        )
        for arm in totals
    }
    other = FunctionChange(name=OTHER, subsystem="", file="", touched=False, per_op=summed)
    return [*named[:MAX_FUNCTIONS], other]


def _size(function: FunctionChange, totals: Mapping[Arm, PerOperation]) -> float:
    return max(
        _share(function.per_op[arm].instructions, totals[arm].instructions)
        + _share(function.per_op[arm].transfers, totals[arm].transfers)
        for arm in totals
    )


def _change(function: FunctionChange, totals: Mapping[Arm, PerOperation]) -> float:
    """Return the change of instructions and transfers, each as a share of the baseline's total; with one arm the
    size."""
    if len(totals) < 2:
        return _size(function, totals)
    before, after = function.per_op[Arm.BASELINE], function.per_op[Arm.CANDIDATE]
    total = totals[Arm.BASELINE]
    return _share(abs(after.instructions - before.instructions), total.instructions) + _share(
        abs(after.transfers - before.transfers), total.transfers
    )


def _share(part: float, total: float) -> float:
    return part / total if total else 0.0


def _moved(per_op: Mapping[Arm, Moves]) -> float:
    counts = [each.transfers for each in per_op.values()]
    return abs(counts[-1] - counts[0]) if len(counts) > 1 else counts[0]


def _mean_matrix(cell: _Cell, arm: Arm, seeds: Sequence[int]) -> list[list[float]]:
    """Return the mean matrix over the seeds; empty if a seed has none."""
    matrices = [cell.cpus.get((arm, seed)) for seed in seeds]
    if not all(matrices):
        return []
    sizes = [cell.repetitions[arm, seed] for seed in seeds]
    known = [matrix for matrix in matrices if matrix]
    count = len(known[0])
    return [
        [
            _rounded(fmean(matrix[row][column] / size for matrix, size in zip(known, sizes, strict=True)))
            for column in range(count)
        ]
        for row in range(count)
    ]


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
