"""Workqueue tables of boots, to what a report shows."""

from __future__ import annotations

from xml.etree import ElementTree as xml

from report_examples import improvement

from wqlab_contracts.enums import Arm
from wqlab_contracts.workqueue_series import Row, write
from wqlab_server.reports.render import workqueues
from wqlab_server.reports.workqueue_series import POINTS, SHOWN, workqueue_cells


def row(seconds: float, workqueue: str, completed: int, **more: object) -> Row:
    own = {"scenario": "HIGH", "setting": "", "repetition": 1, "phase": "traced", "source": "stats"} | more
    values = {"started": completed + 1, "completed": completed, "in_flight": 1, "cpu_us": 2500}
    return Row.model_validate({**own, "seconds": seconds, "workqueue": workqueue, "values": values})


def test_rates_are_per_second_between_looks_and_a_pause_is_zero() -> None:
    """`events` says nothing at 2 s, where `mm` does: it completed nothing then."""
    table = write([row(1.0, "events", 10), row(2.0, "mm", 4), row(4.0, "events", 30)])
    (cell,) = workqueue_cells({Arm.BASELINE: (3, table)})
    series = {each.workqueue: each for each in cell.series}
    assert series["events"].points == [(1.0, 10.0), (2.0, 0.0), (4.0, 10.0)]
    assert series["mm"].points == [(1.0, 0.0), (2.0, 4.0), (4.0, 0.0)]
    assert (series["events"].block, series["events"].in_flight_max) == (3, 1)
    assert series["events"].totals == {"started": 31, "completed": 30, "cpu_us": 2500}


def test_the_last_repetition_of_each_cell_and_both_arms() -> None:
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


def test_a_note_behind_the_rows_of_a_warm_up_is_said_with_its_figures() -> None:
    """Where a boot's table was full before the traced repetition."""
    early = row(1.0, "events", 99, repetition=0, phase="warmup")
    full = Row.model_validate({**early.model_dump(), "workqueue": "", "values": {}, "note": "the table is full"})
    (cell,) = workqueue_cells({Arm.BASELINE: (0, write([early, full]))})
    assert [each.totals["completed"] for each in cell.series] == [99]
    said = workqueues.note(improvement().targets[0], cell)
    assert said.endswith(" Baseline: the table is full.")


def test_only_the_busiest_and_not_too_many_points() -> None:
    names = [f"wq{number}" for number in range(SHOWN + 3)]
    table = write(row(moment, name, moment * (at + 1)) for moment in range(1, 500) for at, name in enumerate(names))
    (cell,) = workqueue_cells({Arm.BASELINE: (0, table)})
    assert [each.workqueue for each in cell.series] == names[: -SHOWN - 1 : -1]
    assert all(len(each.points) <= POINTS and each.points[-1][0] == 499 for each in cell.series)


def test_a_table_that_cannot_be_read_takes_nothing_from_the_other() -> None:
    cells = workqueue_cells({Arm.BASELINE: (0, "rubbish"), Arm.CANDIDATE: (0, write([row(1.0, "events", 5)]))})
    assert [each.arm for each in cells[0].series] == [Arm.CANDIDATE]


def test_what_is_not_measured_is_not_zero() -> None:
    (cell,) = workqueue_cells({Arm.BASELINE: (0, write([row(1.0, "events", 5)]))})
    (shown,) = workqueues.rows(cell)
    assert dict(zip(workqueues.HEADER, shown, strict=True)) == {
        "workqueue": "events",
        "arm": "baseline",
        "started": "6",
        "completed": "5",
        "CPU ms": "2.5",
        **dict.fromkeys(("CPU-intensive", "managed wakeups", "repatriated", "mayday", "rescued"), "n/a"),
        "most in flight": "1",
    }


def test_the_html_page_draws_both_arms_and_escapes_names() -> None:
    from wqlab_server.reports.render.html import render_html

    report = improvement()
    tables = {arm: (0, write([row(1.0, "<b>&", 5), row(2.0, "<b>&", 9)])) for arm in Arm}
    target = report.targets[0].model_copy(update={"workqueues": workqueue_cells(tables), "emulated": True})
    page = render_html(report.model_copy(update={"targets": [target]}))
    assert "<b>&:" not in page
    figure = page[page.index("work items completed per second") :]
    svg = xml.fromstring(figure[figure.index("<svg") : figure.index("</svg>") + 6])
    assert [line.get("class") for line in svg.iter("polyline")] == ["series baseline", "series candidate"]
    assert "CPU time are not evidence" in page
