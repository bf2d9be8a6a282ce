"""Choose the subsystems and functions that a report shows, and sum the others. Pure.

The sums keep as much of their place as there is room for: file, then subsystem. Whatever a lab sends, a cell has at
most MAX_FUNCTIONS + MAX_FILES + MAX_REST_SUBSYSTEMS + 1 functions and MAX_SUBSYSTEMS + 1 subsystems.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from wqlab_contracts.api.instrument import FunctionChange, PerOperation, SubsystemChange
from wqlab_contracts.enums import Arm
from wqlab_contracts.instrument import OTHER, USER_SPACE

from .instrument_sums import CellSums, Repetitions, Seeds, Sums

MAX_CHANGED = 10
MAX_SUBSYSTEMS = 20
MAX_FUNCTIONS = 80
MAX_FILES = 60
"""Sums of functions by file."""
MAX_REST_SUBSYSTEMS = 40
"""Sums of functions by subsystem, of files without a sum of their own."""
CLEARLY_LARGER = 10.0
"""A function that some boots do not list is compared only if it has at least so many times the share that they can have
left out: the error of its change is then a tenth at most."""

Place = TypeVar("Place", SubsystemChange, FunctionChange)


@dataclass(frozen=True)
class Basis:
    """What the means of a cell are taken over, and its totals."""

    seeds: Seeds
    repetitions: Repetitions
    totals: Mapping[Arm, PerOperation]

    def counted(self, place: Place, sums: Sums[PerOperation]) -> Place:
        """Return a subsystem or function with its means and the number of seeds that agree."""
        return place.model_copy(
            update={
                "per_op": sums.means(self.seeds, self.repetitions),
                "instruction_seeds": sums.agreeing(self.seeds, self.repetitions, "instructions"),
                "transfer_seeds": sums.agreeing(self.seeds, self.repetitions, "transfers"),
            }
        )

    def size(self, place: SubsystemChange | FunctionChange) -> float:
        """Return the share of instructions plus the share of transfers, of the kernel with which it is larger."""
        return max(
            _share(place.per_op[arm].instructions, total.instructions)
            + _share(place.per_op[arm].transfers, total.transfers)
            for arm, total in self.totals.items()
        )

    def larger_share(self, place: SubsystemChange | FunctionChange) -> float:
        """Return the largest share of instructions or of transfers with any kernel."""
        return max(
            max(
                _share(place.per_op[arm].instructions, total.instructions),
                _share(place.per_op[arm].transfers, total.transfers),
            )
            for arm, total in self.totals.items()
        )

    def change(self, place: SubsystemChange | FunctionChange) -> float:
        """Return the change of instructions and transfers, each as a share of the baseline's total; with one arm the
        size."""
        if len(self.totals) < 2:
            return self.size(place)
        before, after = place.per_op[Arm.BASELINE], place.per_op[Arm.CANDIDATE]
        total = self.totals[Arm.BASELINE]
        return _share(abs(after.instructions - before.instructions), total.instructions) + _share(
            abs(after.transfers - before.transfers), total.transfers
        )


@dataclass(frozen=True)
class _Counted:
    """A function with its means, and the sums behind them."""

    function: FunctionChange
    sums: Sums[PerOperation]


def choose_subsystems(cell: CellSums, basis: Basis) -> tuple[SubsystemChange | None, list[SubsystemChange]]:
    """Return the sum of the kernel's subsystems, and the subsystems to show, the largest change first, with OTHER last.

    Half of them are those that changed most, the others the largest. User space is always among them.
    """
    counted = [basis.counted(entry.change, entry.sums) for entry in cell.subsystems]
    found = [each for each in counted if _has_counts(each)]
    user = [each for each in found if each.name == USER_SPACE]
    by_change = sorted(found, key=lambda each: (-basis.change(each), -basis.size(each), each.name))
    by_size = sorted(found, key=lambda each: (-basis.size(each), each.name))
    chosen = list({each.name: each for each in [*user, *by_change[:MAX_CHANGED], *by_size]}.values())[:MAX_SUBSYSTEMS]
    names = {each.name for each in chosen}
    kernel, rest = Sums(PerOperation), Sums(PerOperation)
    for entry in cell.subsystems:
        if entry.change.name != USER_SPACE:
            kernel.add_all(entry.sums)
        if entry.change.name not in names:
            rest.add_all(entry.sums)
    for sums in (kernel, rest):
        sums.add_all(cell.other_subsystems)
    whole = basis.counted(SubsystemChange(name="kernel", per_op={}), kernel)
    other = basis.counted(SubsystemChange(name=OTHER, per_op={}), rest)
    order = [each for each in by_change if each.name in names]
    shown = [each for each in [*order, other] if _has_counts(each)]
    return (whole if shown else None), shown


def choose_functions(cell: CellSums, basis: Basis) -> tuple[list[FunctionChange], list[FunctionChange]]:
    """Return the functions that can be compared, largest first, and those to show: the largest, then sums of the rest.

    A sum is of a file; of a subsystem, for files that are not among the largest; of all others, for the rest. It has
    the functions that cannot be compared, because some boots have them in that sum.
    """
    found = [_Counted(basis.counted(entry.change, entry.sums), entry.sums) for entry in cell.functions]
    named = [each for each in found if _is_comparable(each, cell, basis)]
    names = {id(each) for each in named}
    named.sort(key=lambda each: (-basis.size(each.function), each.function.name, each.function.file))
    functions = [each.function for each in named]
    rest = [*named[MAX_FUNCTIONS:], *(each for each in found if id(each) not in names)]
    return functions, [*functions[:MAX_FUNCTIONS], *_sums_of_rest(rest, cell.other_functions, basis)]


def _is_comparable(counted: _Counted, cell: CellSums, basis: Basis) -> bool:
    """Return True if a function that a boot does not list has no, or next to no, counts in that boot.

    Boots list all functions that the series changes, and the largest.
    """
    function = counted.function
    if function.name == OTHER:
        return False
    complete = function.touched or counted.sums.are_complete(basis.seeds, basis.repetitions)
    return complete or basis.larger_share(function) >= CLEARLY_LARGER * cell.least_listed


def _sums_of_rest(rest: Iterable[_Counted], others: Sums[PerOperation], basis: Basis) -> list[FunctionChange]:
    unknown = Sums(PerOperation)
    unknown.add_all(others)
    files: dict[tuple[str, str], Sums[PerOperation]] = defaultdict(lambda: Sums(PerOperation))
    for each in rest:
        place = (each.function.subsystem, each.function.file)
        (files[place] if any(place) else unknown).add_all(each.sums)
    by_file = _by_size([_summed(subsystem, file, sums, basis) for (subsystem, file), sums in files.items()], basis)
    small: dict[str, list[_Counted]] = defaultdict(list)
    for each in by_file[MAX_FILES:]:
        small[each.function.subsystem].append(each)
    by_subsystem = _by_size([_merged(name, parts, basis) for name, parts in small.items() if name], basis)
    for each in [*small.get("", ()), *by_subsystem[MAX_REST_SUBSYSTEMS:]]:
        unknown.add_all(each.sums)
    kept = [*by_file[:MAX_FILES], *by_subsystem[:MAX_REST_SUBSYSTEMS], _summed("", "", unknown, basis)]
    return [each.function for each in kept if _has_counts(each.function)]


def _merged(subsystem: str, parts: Sequence[_Counted], basis: Basis) -> _Counted:
    """Return the sum of some files of a subsystem; of one file, the file itself."""
    if len(parts) == 1:
        return parts[0]
    sums = Sums(PerOperation)
    for part in parts:
        sums.add_all(part.sums)
    return _summed(subsystem, "", sums, basis)


def _summed(subsystem: str, file: str, sums: Sums[PerOperation], basis: Basis) -> _Counted:
    entry = FunctionChange(name=OTHER, subsystem=subsystem, file=file, touched=False, per_op={})
    return _Counted(basis.counted(entry, sums), sums)


def _by_size(counted: list[_Counted], basis: Basis) -> list[_Counted]:
    return sorted(counted, key=lambda each: (-basis.size(each.function), each.function.subsystem, each.function.file))


def _has_counts(place: SubsystemChange | FunctionChange) -> bool:
    return any(each.instructions or each.transfers or each.locked for each in place.per_op.values())


def _share(part: float, total: float) -> float:
    return part / total if total else 0.0
