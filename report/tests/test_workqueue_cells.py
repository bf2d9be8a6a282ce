"""Workqueue series of a report, from the tables of boots."""

from __future__ import annotations

import math

import pytest

from wqlab_contracts.api.workqueues import WorkqueueSeries
from wqlab_contracts.enums import Arm
from wqlab_contracts.workqueue_series import COLUMNS, Row, write
from wqlab_report.parts.workqueue_cells import MAX_POINTS, MAX_WORKQUEUES, workqueue_cells


def row(seconds: float, workqueue: str, completed: int, **more: object) -> Row:
    own = {"scenario": "HIGH", "setting": "", "repetition": 1, "phase": "traced", "source": "stats"} | more
    values = {"started": completed + 1, "completed": completed, "in_flight": 1, "cpu_us": 2500}
    return Row.model_validate({**own, "seconds": seconds, "workqueue": workqueue, "values": values})


def test_rates_are_per_second_between_samples_and_zero_in_a_pause() -> None:
    """`events` has no row at 2 s, unlike `mm`: it completed nothing then."""
    table = write([row(1.0, "events", 10), row(2.0, "mm", 4), row(4.0, "events", 30)])
    (cell,) = workqueue_cells({Arm.BASELINE: (3, table)})
    series = {each.workqueue: each for each in cell.series}
    assert series["events"].points == [(1.0, 10.0), (2.0, 0.0), (4.0, 10.0)]
    assert series["mm"].points == [(1.0, 0.0), (2.0, 4.0), (4.0, 0.0)]
    assert (series["events"].block, series["events"].in_flight_max) == (3, 1)
    assert series["events"].totals == {"started": 31, "completed": 30, "cpu_us": 2500}


def test_cell_has_the_last_repetition_of_both_arms() -> None:
    early = row(1.0, "events", 99, repetition=0, phase="warmup")
    note = Row.model_validate({**row(1.0, "", 0).model_dump(), "values": {}, "note": "cut short"})
    cells = workqueue_cells(
        {
            Arm.BASELINE: (0, write([early, row(1.0, "events", 1), row(1.0, "events", 2, scenario="LOW")])),
            Arm.CANDIDATE: (0, write([early, row(1.0, "events", 5), note])),
        }
    )
    assert [
        (cell.scenario, cell.phase, [(each.arm, each.totals["completed"]) for each in cell.series]) for cell in cells
    ] == [
        ("HIGH", "traced", [(Arm.BASELINE, 1), (Arm.CANDIDATE, 5)]),
        ("LOW", "traced", [(Arm.BASELINE, 2)]),
    ]
    assert cells[0].notes == ["candidate: cut short"]


def test_cell_is_limited_to_the_busiest_workqueues_and_a_number_of_points() -> None:
    names = [f"wq{number}" for number in range(MAX_WORKQUEUES + 3)]
    table = write(row(moment, name, moment * (at + 1)) for moment in range(1, 500) for at, name in enumerate(names))
    (cell,) = workqueue_cells({Arm.BASELINE: (0, table)})
    assert [each.workqueue for each in cell.series] == names[: -MAX_WORKQUEUES - 1 : -1]
    assert all(len(each.points) <= MAX_POINTS and each.points[-1][0] == 499 for each in cell.series)


def test_unreadable_table_does_not_affect_the_other() -> None:
    cells = workqueue_cells({Arm.BASELINE: (0, "rubbish"), Arm.CANDIDATE: (0, write([row(1.0, "events", 5)]))})
    assert [each.arm for each in cells[0].series] == [Arm.CANDIDATE]


@pytest.mark.parametrize(("seconds", "completed"), [("5e-324", "10"), ("1.0", "9" * 400)])
def test_figures_of_a_hostile_table_are_finite(seconds: str, completed: str) -> None:
    """A report with an infinite number could not be read again once it is stored."""
    row = dict.fromkeys(COLUMNS, "") | {
        "scenario": "flush", "repetition": "0", "phase": "traced", "source": "stats", "seconds": seconds,
        "workqueue": "events", "completed": completed,
    }  # fmt: skip
    table = "\n".join([",".join(COLUMNS), ",".join(row.values()), ""])
    for cell in workqueue_cells({Arm.BASELINE: (0, table)}):
        for series in cell.series:
            assert all(math.isfinite(value) for point in series.points for value in point)
            assert WorkqueueSeries.model_validate_json(series.model_dump_json()) == series
