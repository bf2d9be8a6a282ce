"""What the boots' workqueues did, from their tables to what a report draws. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from wqlab_contracts.api.workqueues import WorkqueueCell, WorkqueueSeries
from wqlab_contracts.enums import Arm
from wqlab_contracts.workqueue_series import COUNTERS, Row, read

SHOWN = 4
"""Workqueues of a cell that are shown: the busiest, by work items completed."""
POINTS = 120
"""Of one line; a longer repetition is shown in wider steps."""


def workqueue_cells(tables: Mapping[Arm, tuple[int, str]]) -> list[WorkqueueCell]:
    """`tables`: of each arm, a boot's block and its table. A table that cannot be read shows nothing."""
    found: dict[tuple[str, str], dict[Arm, list[Row]]] = defaultdict(dict)
    for arm, (_, text) in sorted(tables.items()):
        try:
            rows = list(read(text))
        except ValueError:
            continue
        for cell, own in _watched(rows).items():
            found[cell][arm] = own
    blocks = {arm: block for arm, (block, _) in tables.items()}
    return [_cell(*cell, arms, blocks) for cell, arms in sorted(found.items())]


def _watched(rows: Iterable[Row]) -> dict[tuple[str, str], list[Row]]:
    """Of each cell the rows of its last repetition: a traced one comes after the warm-ups."""
    last: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        own = last[row.scenario, row.setting]
        if own and own[0].repetition < row.repetition:
            own.clear()
        if not own or own[0].repetition == row.repetition:
            own.append(row)
    return last


def _cell(scenario: str, setting: str, arms: Mapping[Arm, list[Row]], blocks: Mapping[Arm, int]) -> WorkqueueCell:
    totals: dict[str, int] = defaultdict(int)
    for rows in arms.values():
        for name, own in _by_workqueue(rows).items():
            totals[name] += own[-1].values.get("completed", 0)
    busiest = sorted((name for name, total in totals.items() if total), key=lambda name: (-totals[name], name))[:SHOWN]
    first = next(iter(arms.values()))[0]
    notes = [f"{arm}: {row.note}" for arm, rows in arms.items() for row in rows if row.note]
    return WorkqueueCell(
        scenario=scenario,
        setting=setting,
        phase=first.phase,
        source=first.source,
        series=[_series(name, arm, blocks[arm], rows) for name in busiest for arm, rows in arms.items()],
        notes=list(dict.fromkeys(notes)),
    )


def _by_workqueue(rows: Iterable[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row.seconds):
        if row.workqueue:
            found[row.workqueue].append(row)
    return found


def _series(name: str, arm: Arm, block: int, rows: list[Row]) -> WorkqueueSeries:
    own = _by_workqueue(rows).get(name, [])
    moments = sorted({row.seconds for row in rows if row.workqueue and row.seconds > 0})
    completed = {row.seconds: row.values.get("completed", 0) for row in own}
    step = -(-len(moments) // POINTS)
    points: list[tuple[float, float]] = []
    known, before, at = 0, 0, 0.0
    for number, moment in enumerate(moments, start=1):
        known = completed.get(moment, known)  # without a line nothing changed
        if number % step == 0 or number == len(moments):
            points.append((moment, max(0, known - before) / (moment - at)))
            before, at = known, moment
    last = own[-1].values if own else {}
    return WorkqueueSeries(
        arm=arm,
        block=block,
        workqueue=name,
        points=points,
        totals={counter: last[counter] for counter in COUNTERS if counter in last},
        in_flight_max=max((row.values.get("in_flight", 0) for row in own), default=0),
    )
