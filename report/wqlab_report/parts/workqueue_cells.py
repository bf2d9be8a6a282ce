"""Workqueue series of a report, from the tables that boots recorded. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from wqlab_contracts.api.workqueues import WorkqueueCell, WorkqueueSeries
from wqlab_contracts.enums import Arm
from wqlab_contracts.workqueue_series import COUNTERS, Row, read

MAX_WORKQUEUES = 4
"""Number of workqueues shown per scenario and setting: those with the most completed work items."""
MAX_POINTS = 120
"""Maximum points of a series; a longer repetition is shown in longer steps."""

SHORTEST_STEP_S = 0.001
"""A device can report any moments; a rate over a shorter time could be infinite."""


def workqueue_cells(tables: Mapping[Arm, tuple[int, str]]) -> list[WorkqueueCell]:
    """Return the series of each scenario and setting. `tables` has the block and table of one boot per arm.

    A table that cannot be read is ignored.
    """
    found: dict[tuple[str, str], dict[Arm, list[Row]]] = defaultdict(dict)
    for arm, (_, text) in sorted(tables.items()):
        try:
            rows = list(read(text))
        except ValueError:
            continue
        for cell, cell_rows in _last_repetitions(rows).items():
            found[cell][arm] = cell_rows
    blocks = {arm: block for arm, (block, _) in tables.items()}
    return [_cell(*cell, arms, blocks) for cell, arms in sorted(found.items())]


def _last_repetitions(rows: Iterable[Row]) -> dict[tuple[str, str], list[Row]]:
    """Return the rows of the last repetition by (scenario, setting); a traced repetition comes after the warm-ups."""
    last: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        cell_rows = last[row.scenario, row.setting]
        if cell_rows and cell_rows[0].repetition < row.repetition:
            cell_rows.clear()
        if not cell_rows or cell_rows[0].repetition == row.repetition:
            cell_rows.append(row)
    return last


def _cell(scenario: str, setting: str, arms: Mapping[Arm, list[Row]], blocks: Mapping[Arm, int]) -> WorkqueueCell:
    totals: dict[str, int] = defaultdict(int)
    for rows in arms.values():
        for name, workqueue_rows in _by_workqueue(rows).items():
            totals[name] += workqueue_rows[-1].values.get("completed", 0)
    busiest = sorted((name for name, total in totals.items() if total), key=lambda name: (-totals[name], name))[
        :MAX_WORKQUEUES
    ]
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
    """Return the series of one workqueue in one boot: completed work items per second over time."""
    workqueue_rows = _by_workqueue(rows).get(name, [])
    moments = sorted({row.seconds for row in rows if row.workqueue and row.seconds > 0})
    completed = {row.seconds: row.values.get("completed", 0) for row in workqueue_rows}
    step = -(-len(moments) // MAX_POINTS)
    points: list[tuple[float, float]] = []
    current, previous, previous_moment = 0, 0, 0.0
    for number, moment in enumerate(moments, start=1):
        current = completed.get(moment, current)  # a moment without a row means no change
        if (number % step == 0 or number == len(moments)) and moment - previous_moment >= SHORTEST_STEP_S:
            points.append((moment, max(0, current - previous) / (moment - previous_moment)))
            previous, previous_moment = current, moment
    last = workqueue_rows[-1].values if workqueue_rows else {}
    return WorkqueueSeries(
        arm=arm,
        block=block,
        workqueue=name,
        points=points,
        totals={counter: last[counter] for counter in COUNTERS if counter in last},
        in_flight_max=max((row.values.get("in_flight", 0) for row in workqueue_rows), default=0),
    )
