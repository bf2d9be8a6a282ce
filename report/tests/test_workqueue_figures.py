"""Workqueue figures of the HTML page."""

from __future__ import annotations

from xml.etree import ElementTree as xml

from report_examples import improvement

from wqlab_contracts.enums import PAIR
from wqlab_contracts.workqueue_series import Row, write
from wqlab_report.parts.workqueue_cells import workqueue_cells


def row(seconds: float, workqueue: str, completed: int, **more: object) -> Row:
    own = {"scenario": "HIGH", "setting": "", "repetition": 1, "phase": "traced", "source": "stats"} | more
    values = {"started": completed + 1, "completed": completed, "in_flight": 1, "cpu_us": 2500}
    return Row.model_validate({**own, "seconds": seconds, "workqueue": workqueue, "values": values})


def test_html_page_draws_both_arms_and_escapes_names() -> None:
    from wqlab_report.writers.html import render_html

    report = improvement()
    tables = {arm: (0, write([row(1.0, "<b>&", 5), row(2.0, "<b>&", 9)])) for arm in PAIR}
    target = report.targets[0].model_copy(update={"workqueues": workqueue_cells(tables), "emulated": True})
    page = render_html(report.model_copy(update={"targets": [target]}))
    assert "<b>&:" not in page
    figure = page[page.index("work items completed per second") :]
    svg = xml.fromstring(figure[figure.index("<svg") : figure.index("</svg>") + 6])
    assert [line.get("class") for line in svg.iter("polyline")] == ["series baseline", "series candidate"]
    assert "CPU time are not evidence" in page
