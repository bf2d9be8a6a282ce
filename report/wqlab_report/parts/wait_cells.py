"""How long work items waited and where they started, from the tables that measured boots recorded. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from wqlab_comparison.differences import Sides, TracedBoot, differences
from wqlab_contracts.api.waits import WaitCell, WaitedWork
from wqlab_contracts.enums import PAIR, Arm
from wqlab_contracts.traced_counts import PLACES, Row, TracedTopic, parse_buckets, percentile, read

MAX_FUNCTIONS = 6
"""Work functions shown per scenario and setting: of those that differ, the ones with the most work items."""


@dataclass
class _Function:
    """Sums over repetitions of one work function."""

    items: int = 0
    total_us: int = 0
    buckets: Counter[int] = field(default_factory=Counter)
    places: Counter[str] = field(default_factory=Counter)
    has_places: bool = True

    def add(self, row: Row) -> None:
        self.items += row.count
        self.total_us += row.total_us or 0
        self.buckets.update(parse_buckets(row.buckets))
        self.places.update({place: getattr(row, place) or 0 for place in PLACES})
        self.has_places = self.has_places and row.on_cpu is not None

    def merge(self, other: _Function) -> None:
        self.items += other.items
        self.buckets.update(other.buckets)
        self.places.update(other.places)

    def row(self, cell: tuple[str, str], name: str) -> Row:
        """Return the sums as a row, for the judgement of what differs."""
        places = {place: self.places[place] for place in PLACES} if self.has_places else {}
        return Row.model_validate(
            {
                "scenario": cell[0],
                "setting": cell[1],
                "topic": TracedTopic.QUEUED,
                "name": name,
                "count": self.items,
                "total_us": self.total_us,
                **places,
            }
        )


@dataclass
class _Cell:
    boots: dict[Arm, dict[int, dict[str, _Function]]] = field(default_factory=lambda: defaultdict(dict))
    """Arm -> block -> work function."""
    repetitions: Counter[Arm] = field(default_factory=Counter)
    notes: dict[str, None] = field(default_factory=dict)
    """Notes in order; the keys of a dictionary, because each is shown once."""

    def add(self, arm: Arm, block: int, row: Row) -> None:
        self.boots[arm].setdefault(block, {}).setdefault(row.name, _Function()).add(row)

    def sides(self, place: tuple[str, str], blocks: Sequence[int]) -> Sides:
        left, right = (
            [
                TracedBoot.of(of.row(place, name) for name, of in self.boots[arm].get(block, {}).items())
                for block in blocks
            ]
            for arm in PAIR
        )
        return Sides(left, right)

    def total(self, name: str, arm: Arm) -> _Function:
        """Return the sums over all boots of an arm."""
        found = _Function()
        for functions in self.boots[arm].values():
            if name in functions:
                found.merge(functions[name])
        return found


def wait_cells(tables: Iterable[tuple[Arm, int, str]], *, times: bool) -> list[WaitCell]:
    """Return the waits of the work functions that differ between both kernels, by scenario and setting.

    `tables` has the arm, the block and the table of each valid boot; one that cannot be read is ignored. What differs
    is judged by `differences`, all cells as one family; `times`: judge times too. Cells without a difference and
    without a note are left out.
    """
    cells: dict[tuple[str, str], _Cell] = defaultdict(_Cell)
    for arm, block, text in tables:
        try:
            rows = list(read(text))
            for row in rows:
                if row.topic is TracedTopic.QUEUED:
                    percentile(parse_buckets(row.buckets), 50)
        except ValueError:
            continue
        counted = set()
        for row in rows:
            cell = cells[row.scenario, row.setting]
            if row.topic is TracedTopic.NOTE:
                cell.notes[f"{arm}: {row.name}"] = None
            elif row.topic is TracedTopic.QUEUED:
                cell.add(arm, block, row)
                counted.add((row.scenario, row.setting, row.repetition))
        for scenario, setting, _ in counted:
            cells[scenario, setting].repetitions[arm] += 1
    blocks = _common_blocks(cells.values())
    places = sorted(cells)
    judged = differences([cells[place].sides(place, blocks) for place in places], times=times)
    shown = [
        _cell(place, cells[place], {each.name for each in of_cell})
        for place, of_cell in zip(places, judged, strict=True)
    ]
    return [cell for cell in shown if cell.works or cell.notes]


def _common_blocks(cells: Iterable[_Cell]) -> list[int]:
    """Return the blocks in which both kernels counted in every cell that counted at all."""
    counted = [set(cell.boots[arm]) for cell in cells for arm in PAIR if cell.boots]
    return sorted(set.intersection(*counted)) if counted else []


def _cell(place: tuple[str, str], cell: _Cell, differing: Collection[str]) -> WaitCell:
    names = {name for blocks in cell.boots.values() for functions in blocks.values() for name in functions}
    sums = {(name, arm): cell.total(name, arm) for name in names for arm in sorted(cell.repetitions)}
    totals = {name: sum(sums[name, arm].items / times for arm, times in cell.repetitions.items()) for name in differing}
    busiest = sorted(totals, key=lambda name: (-totals[name], name))[:MAX_FUNCTIONS]
    return WaitCell(
        scenario=place[0],
        setting=place[1],
        repetitions=dict(cell.repetitions),
        works=[
            _work(name, arm, sums[name, arm], cell.repetitions[arm])
            for name in busiest
            for arm in sorted(cell.repetitions)
            if sums[name, arm].items
        ],
        functions=len(names),
        notes=list(cell.notes),
    )


def _work(name: str, arm: Arm, function: _Function, repetitions: int) -> WaitedWork:
    same_cpu, same_l3, same_node = _shares([function.places[place] for place in PLACES])
    return WaitedWork(
        function=name,
        arm=arm,
        items=function.items / repetitions,
        p50_us=percentile(function.buckets, 50),
        p99_us=percentile(function.buckets, 99),
        same_cpu=same_cpu,
        same_l3=same_l3,
        same_node=same_node,
    )


def _shares(places: Sequence[int]) -> tuple[float | None, float | None, float | None]:
    """Return the percentages that started on the CPU, in its last-level cache domain and on its node."""
    if not (counted := sum(places)):
        return None, None, None
    on_cpu, on_l3, on_node, _ = places
    on_l3 += on_cpu
    return 100 * on_cpu / counted, 100 * on_l3 / counted, 100 * (on_node + on_l3) / counted
