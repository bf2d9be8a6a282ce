"""Time series of the HTML page as inline SVG: small multiples, one panel a workqueue, both arms in each."""

from __future__ import annotations

from xml.etree import ElementTree as xml

from wqlab_contracts.api.report import TargetReport
from wqlab_contracts.api.workqueues import WorkqueueCell, WorkqueueSeries
from wqlab_contracts.enums import Arm

from . import workqueues
from .figures import LEFT, RIGHT, Figure, canvas, label, markup, segment

_PANEL, _PLOT = 92, 56
"""Heights: of a panel, and of its drawing."""


def workqueue_figures(target: TargetReport) -> list[Figure]:
    """One for each scenario and setting that was watched."""
    return [_figure(target, cell) for cell in target.workqueues if cell.series]


def _figure(target: TargetReport, cell: WorkqueueCell) -> Figure:
    names = list(dict.fromkeys(each.workqueue for each in cell.series))
    arms = list(dict.fromkeys(each.arm for each in cell.series))
    longest = max((point[0] for each in cell.series for point in each.points), default=1.0)
    legend = 22
    height = legend + _PANEL * len(names) + 16
    svg = canvas(height, workqueues.title(cell))
    for index, arm in enumerate(arms):
        x = LEFT + 110 * index
        segment(svg, (x, 9), (x + 22, 9), _style(arm))
        label(svg, x + 28, 13, arm.value)
    for index, name in enumerate(names):
        top = legend + _PANEL * index
        _panel(svg, top, name, [each for each in cell.series if each.workqueue == name], longest)
    label(svg, LEFT, height - 3, "0 s", "start")
    label(svg, RIGHT, height - 3, f"{longest:.0f} s", "end")
    return Figure(
        workqueues.title(cell),
        workqueues.note(target, cell),
        markup(svg),
        workqueues.HEADER,
        workqueues.rows(cell),
    )


def _panel(svg: xml.Element, top: float, name: str, lines: list[WorkqueueSeries], longest: float) -> None:
    """From 0 up: a rate has a true zero, and panels of their own scales are compared by their shapes."""
    peak = max((rate for each in lines for _, rate in each.points), default=0.0)
    bottom = top + 18 + _PLOT
    label(svg, LEFT, top + 12, f"{name}: up to {peak:.4g} a second")
    segment(svg, (LEFT, bottom), (RIGHT, bottom), "axis")
    for each in lines:
        places = [
            (LEFT + (RIGHT - LEFT) * seconds / longest, bottom - _PLOT * (rate / peak if peak else 0.0))
            for seconds, rate in each.points
        ]
        if len(places) == 1:
            # One look is one rate over all of the time before it.
            places.insert(0, (LEFT, places[0][1]))
        drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        xml.SubElement(svg, "polyline", {"points": drawn, "class": _style(each.arm)})


def _style(arm: Arm) -> str:
    return f"series {arm.value}"
