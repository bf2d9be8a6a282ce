"""How long work items waited and where they started, from the tables that measured boots recorded. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from wqlab_contracts.api.waits import WaitCell, WaitedWork
from wqlab_contracts.enums import Arm
from wqlab_contracts.traced_counts import PLACES, Row, TracedTopic, parse_buckets, percentile, read

MAX_FUNCTIONS = 6
"""Work functions shown per scenario and setting: those with the most work items of both arms together."""


@dataclass
class _Function:
    """Sums over all repetitions, for one work function and one of the two kernels."""

    items: int = 0
    buckets: Counter[int] = field(default_factory=Counter)
    places: Counter[str] = field(default_factory=Counter)

    def add(self, row: Row) -> None:
        self.items += row.count
        self.buckets.update(parse_buckets(row.buckets))
        self.places.update({place: getattr(row, place) or 0 for place in PLACES})


@dataclass
class _Cell:
    functions: dict[tuple[str, Arm], _Function] = field(default_factory=lambda: defaultdict(_Function))
    repetitions: Counter[Arm] = field(default_factory=Counter)
    notes: dict[str, None] = field(default_factory=dict)
    """Notes in order; the keys of a dictionary, because each is shown once."""


def wait_cells(tables: Iterable[tuple[Arm, str]]) -> list[WaitCell]:
    """Return the waits of each scenario and setting. `tables` has the table of each valid boot.

    A table that cannot be read is ignored.
    """
    cells: dict[tuple[str, str], _Cell] = defaultdict(_Cell)
    for arm, text in tables:
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
                cell.functions[row.name, arm].add(row)
                counted.add((row.scenario, row.setting, row.repetition))
        for scenario, setting, _ in counted:
            cells[scenario, setting].repetitions[arm] += 1
    return [_cell(*place, cell) for place, cell in sorted(cells.items())]


def _cell(scenario: str, setting: str, cell: _Cell) -> WaitCell:
    totals: dict[str, float] = defaultdict(float)
    for (name, arm), function in cell.functions.items():
        totals[name] += function.items / cell.repetitions[arm]
    busiest = sorted(totals, key=lambda name: (-totals[name], name))[:MAX_FUNCTIONS]
    return WaitCell(
        scenario=scenario,
        setting=setting,
        repetitions=dict(cell.repetitions),
        works=[
            _work(name, arm, cell.functions[name, arm], cell.repetitions[arm])
            for name in busiest
            for arm in sorted(cell.repetitions)
            if (name, arm) in cell.functions
        ],
        functions=len(totals),
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
