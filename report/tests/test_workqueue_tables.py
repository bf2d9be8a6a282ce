"""Notes and tables of workqueue series."""

from __future__ import annotations

from report_examples import improvement

from wqlab_contracts.enums import Arm
from wqlab_contracts.workqueue_series import Row, write
from wqlab_report.content import workqueue_tables
from wqlab_report.parts.workqueue_cells import workqueue_cells


def row(seconds: float, workqueue: str, completed: int, **more: object) -> Row:
    own = {"scenario": "HIGH", "setting": "", "repetition": 1, "phase": "traced", "source": "stats"} | more
    values = {"started": completed + 1, "completed": completed, "in_flight": 1, "cpu_us": 2500}
    return Row.model_validate({**own, "seconds": seconds, "workqueue": workqueue, "values": values})


def test_note_after_the_rows_of_a_warm_up_is_shown() -> None:
    """The boot's table was full before the traced repetition."""
    early = row(1.0, "events", 99, repetition=0, phase="warmup")
    full = Row.model_validate({**early.model_dump(), "workqueue": "", "values": {}, "note": "the table is full"})
    (cell,) = workqueue_cells({Arm.BASELINE: (0, write([early, full]))})
    assert [each.totals["completed"] for each in cell.series] == [99]
    note = workqueue_tables.note(improvement().targets[0], cell)
    assert note.endswith(" Baseline: the table is full.")


def test_unmeasured_counter_is_not_zero() -> None:
    (cell,) = workqueue_cells({Arm.BASELINE: (0, write([row(1.0, "events", 5)]))})
    (shown,) = workqueue_tables.rows(cell)
    assert dict(zip(workqueue_tables.HEADER, shown, strict=True)) == {
        "workqueue": "events",
        "arm": "baseline",
        "started": "6",
        "completed": "5",
        "CPU ms": "2.5",
        **dict.fromkeys(("CPU-intensive", "managed wakeups", "repatriated", "mayday", "rescued"), "n/a"),
        "most in flight": "1",
    }
