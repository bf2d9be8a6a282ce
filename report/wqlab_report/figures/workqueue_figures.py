"""Workqueue time series of the HTML page as inline SVG: one panel per workqueue (small multiples) with both arms."""

from __future__ import annotations

from xml.etree import ElementTree as xml

from wqlab_contracts.api.report import TargetReport
from wqlab_contracts.api.workqueues import WorkqueueCell, WorkqueueSeries
from wqlab_contracts.enums import Arm

from ..content import workqueue_tables
from .figures import LEFT, RIGHT, Figure, canvas, label, markup, segment

_PANEL_HEIGHT, _PLOT_HEIGHT = 92, 56
"""Heights of a panel and of the plot in it."""


def workqueue_figures(target: TargetReport) -> list[Figure]:
    """Return a figure for each scenario and setting with workqueue series."""
    return [_figure(target, cell) for cell in target.workqueues if cell.series]


def _figure(target: TargetReport, cell: WorkqueueCell) -> Figure:
    names = list(dict.fromkeys(each.workqueue for each in cell.series))
    arms = list(dict.fromkeys(each.arm for each in cell.series))
    longest = max((point[0] for each in cell.series for point in each.points), default=1.0)
    legend = 22
    height = legend + _PANEL_HEIGHT * len(names) + 16
    svg = canvas(height, workqueue_tables.title(cell))
    for index, arm in enumerate(arms):
        x = LEFT + 110 * index
        segment(svg, (x, 9), (x + 22, 9), _style(arm))
        label(svg, x + 28, 13, arm.value)
    for index, name in enumerate(names):
        top = legend + _PANEL_HEIGHT * index
        _panel(svg, top, name, [each for each in cell.series if each.workqueue == name], longest)
    label(svg, LEFT, height - 3, "0 s", "start")
    label(svg, RIGHT, height - 3, f"{longest:.0f} s", "end")
    return Figure(
        workqueue_tables.title(cell),
        workqueue_tables.note(target, cell),
        markup(svg),
        workqueue_tables.HEADER,
        workqueue_tables.rows(cell),
    )


def _panel(svg: xml.Element, top: float, name: str, lines: list[WorkqueueSeries], longest: float) -> None:
    """Draw a panel. Its scale starts at 0 and ends at the panel's own maximum, so panels are compared by shape."""
    peak = max((rate for each in lines for _, rate in each.points), default=0.0)
    bottom = top + 18 + _PLOT_HEIGHT
    label(svg, LEFT, top + 12, f"{name}: up to {peak:.4g} a second")
    segment(svg, (LEFT, bottom), (RIGHT, bottom), "axis")
    for each in lines:
        places = [
            (LEFT + (RIGHT - LEFT) * seconds / longest, bottom - _PLOT_HEIGHT * (rate / peak if peak else 0.0))
            for seconds, rate in each.points
        ]
        if len(places) == 1:
            # A single sample is the mean rate over all the time before it.
            places.insert(0, (LEFT, places[0][1]))
        drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        xml.SubElement(svg, "polyline", {"points": drawn, "class": _style(each.arm)})


def _style(arm: Arm) -> str:
    return f"series {arm.value}"
