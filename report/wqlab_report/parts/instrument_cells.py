"""Subsystems, functions, lines and CPUs behind the counts of an instrumented device, from its boots' profiles. Pure.

Profiles are read one after the other, because a run can have many and each can have megabytes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from statistics import fmean
from typing import TypeVar

from wqlab_contracts import instrument
from wqlab_contracts.api.instrument import (
    FunctionChange,
    InstrumentCell,
    LineChange,
    Moves,
    PairChange,
    SpinChange,
    SpinTimes,
)
from wqlab_contracts.enums import Arm
from wqlab_contracts.instrument import OTHER
from wqlab_contracts.specs import TestPlan

from .instrument_largest import MAX_CHANGED, Basis, choose_functions, choose_subsystems
from .instrument_sentences import sentences
from .instrument_sums import MAX_NAMES, CellSums, Entry, Seeds, add_window, rounded
from .time_sentences import time_sentences

MAX_CELLS = 12
MAX_SEEDS = 16

Ranked = TypeVar("Ranked", FunctionChange, PairChange, LineChange, SpinChange)
Line = TypeVar("Line", PairChange, LineChange)


@dataclass(frozen=True)
class ProfileFile:
    """The profile that a boot uploaded. `read` returns its bytes, or None if the store no longer has it."""

    arm: Arm
    block: int
    read: Callable[[], bytes | None]


def instrument_cells(plan: TestPlan, settings: Sequence[str], files: Iterable[ProfileFile]) -> list[InstrumentCell]:
    """Return where the counts of each scenario and setting come from, in the plan's order; at most MAX_CELLS.

    With two arms only the seeds that both have are used. A profile that cannot be read is ignored and noted.
    """
    cells: dict[tuple[str, str], CellSums] = {
        (scenario.name, setting): CellSums() for scenario in plan.scenarios for setting in settings
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
                add_window(cell, file.arm, profile, window)
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


def _build(scenario: str, setting: str, cell: CellSums, unread: Sequence[str]) -> InstrumentCell | None:
    """Return the cell of the report; None if no seed has a window of it (with two arms: of both)."""
    by_arm = {arm: sorted(seed for one, seed in cell.repetitions if one is arm) for arm in Arm}
    arms = [arm for arm in Arm if by_arm[arm]]
    if not arms:
        return None
    common = sorted(set.intersection(*(set(by_arm[arm]) for arm in arms)))
    if not common:
        return None
    seeds: Seeds = dict.fromkeys(arms, common)
    basis = Basis(seeds, cell.repetitions, cell.totals.means(seeds, cell.repetitions))
    kernel, subsystems = choose_subsystems(cell, basis)
    named, functions = choose_functions(cell, basis)
    pairs = [_with_moves(entry, cell, seeds) for entry in cell.pairs]
    lines = [_with_moves(entry, cell, seeds) for entry in cell.lines]
    built = InstrumentCell(
        scenario=scenario,
        setting=setting,
        operation=cell.operation,
        seeds=common,
        emulator=", ".join(cell.emulators),
        plugin=", ".join(cell.plugins),
        topology=cell.topology,
        totals=dict(basis.totals),
        kernel=kernel,
        subsystems=subsystems,
        functions=functions,
        changed=_most(named, basis.change, attrgetter("name", "file")),
        pairs=_most(pairs, lambda each: _moved(each.per_op), attrgetter("taker", "taker_line")),
        lines=_most(lines, lambda each: _moved(each.per_op), attrgetter("symbol")),
        spins=_most([_with_times(entry, cell, seeds) for entry in cell.spins], _waited, attrgetter("lock", "site")),
        cpus={arm: matrix for arm in arms if (matrix := _mean_matrix(cell, arm, common))},
        notes=[*unread, *_notes(cell)],
    )
    return built.model_copy(update={"sentences": [*time_sentences(built), *sentences(built)]})


def _most(
    entries: Sequence[Ranked], change: Callable[[Ranked], float], name: Callable[[Ranked], object]
) -> list[Ranked]:
    """Return the MAX_CHANGED entries with the largest change, without those that did not change."""
    ranked = sorted(entries, key=lambda each: (-change(each), name(each)))
    return [each for each in ranked[:MAX_CHANGED] if change(each)]


def _with_moves(entry: Entry[Line, Moves], cell: CellSums, seeds: Seeds) -> Line:
    return entry.change.model_copy(
        update={
            "per_op": entry.sums.means(seeds, cell.repetitions),
            "seeds": entry.sums.agreeing(seeds, cell.repetitions, "transfers"),
        }
    )


def _with_times(entry: Entry[SpinChange, SpinTimes], cell: CellSums, seeds: Seeds) -> SpinChange:
    return entry.change.model_copy(
        update={
            "per_op": entry.sums.means(seeds, cell.repetitions),
            "seeds": entry.sums.agreeing(seeds, cell.repetitions, "wait_ns"),
        }
    )


def _waited(spin: SpinChange) -> float:
    times = [each.wait_ns for each in spin.per_op.values()]
    return abs(times[-1] - times[0]) if len(times) > 1 else times[0]


def _notes(cell: CellSums) -> list[str]:
    notes = []
    if len(cell.emulators) > 1 or len(cell.plugins) > 1:
        notes.append("the boots were counted by different emulators or plugins, which can count differently")
    if any(entry.change.name == OTHER for entry in cell.functions):
        notes.append(
            f"a boot lists its {instrument.FUNCTION_LIMIT} largest functions and those that the series changes; a "
            "function that some boots do not list is summed with the others of its file, unless it is much larger "
            "where it is listed"
        )
    if cell.is_full:
        notes.append(
            f"the boots name more than {MAX_NAMES} different subsystems, functions or lines; the counts of the others "
            "are in the sums only"
        )
    return notes


def _moved(per_op: Mapping[Arm, Moves]) -> float:
    counts = [each.transfers for each in per_op.values()]
    return abs(counts[-1] - counts[0]) if len(counts) > 1 else counts[0]


def _mean_matrix(cell: CellSums, arm: Arm, seeds: Sequence[int]) -> list[list[float]]:
    """Return the mean matrix over the seeds; empty if a seed has none."""
    matrices = [cell.cpus.get((arm, seed)) for seed in seeds]
    if not all(matrices):
        return []
    sizes = [cell.repetitions[arm, seed] for seed in seeds]
    known = [matrix for matrix in matrices if matrix]
    count = len(known[0])
    return [
        [
            rounded(fmean(matrix[row][column] / size for matrix, size in zip(known, sizes, strict=True)))
            for column in range(count)
        ]
        for row in range(count)
    ]
