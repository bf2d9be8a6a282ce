"""Draw the curves of a sweep as inline SVG: effect with 95 % interval over the topology, on an ordinal axis. Pure."""

from __future__ import annotations

from xml.etree import ElementTree as xml

from wqlab_comparison import words
from wqlab_contracts.api.report import Report
from wqlab_contracts.api.sweeps import SweepCurve, SweepReport

from ..content import sweep_tables
from .figures import LEFT, RIGHT, Figure, canvas, draw_mark, label, linear_axis, markup, segment

_TOP = 14.0
_HEIGHT = 170.0
_LEFT = LEFT + 46


def sweep_figures(report: Report) -> list[Figure]:
    """Return a figure per curve that has a point to draw."""
    sweep = report.sweep
    return [_figure(curve, sweep) for curve in sweep.curves if sweep_tables.has_figures(curve)] if sweep else []


def _figure(curve: SweepCurve, sweep: SweepReport) -> Figure:
    ends = [0.0]
    for point in curve.points:
        ends += [] if point.effect is None else [point.effect, *(point.ci95 or ())]
    axis = linear_axis(min(ends), max(ends))
    bottom = _TOP + _HEIGHT

    def height(value: float) -> float:
        return bottom - _HEIGHT * (value - axis.low) / (axis.high - axis.low)

    svg = canvas(bottom + 40, f"{sweep_tables.sentence(curve, sweep)}. Effect over {sweep.axis}, with 95 % intervals")
    if curve.delta:
        low, high = max(-curve.delta, axis.low), min(curve.delta, axis.high)
        place = {"x": f"{_LEFT:.1f}", "width": f"{RIGHT - _LEFT:.1f}", "class": "threshold"}
        xml.SubElement(
            svg, "rect", {**place, "y": f"{height(high):.1f}", "height": f"{height(low) - height(high):.1f}"}
        )
    for tick in axis.ticks():
        segment(svg, (_LEFT, height(tick)), (RIGHT, height(tick)), "zero" if tick == 0 else "rule")
        label(svg, _LEFT - 6, height(tick) + 4, f"{tick:g} {curve.effect_unit}".rstrip(), "end")
    step = (RIGHT - _LEFT) / len(curve.points)
    for number, point in enumerate(curve.points):
        x = _LEFT + step * (number + 0.5)
        label(svg, x, bottom + 16, f"{point.value}", "tick")
        if point.effect is None or point.verdict not in words.SIGN:
            label(svg, x, height(0.0) - 4, sweep_tables.verdict(point), "tick")
            continue
        if point.ci95 is not None:
            top, end = height(point.ci95[1]), height(point.ci95[0])
            segment(svg, (x, top), (x, end), f"interval {point.verdict}")
            for cap in (top, end):
                segment(svg, (x - 5, cap), (x + 5, cap), f"interval {point.verdict}")
        draw_mark(svg, x, height(point.effect), point.verdict)
    segment(svg, (_LEFT, bottom), (RIGHT, bottom), "axis")
    label(svg, (_LEFT + RIGHT) / 2, bottom + 32, sweep.axis, "tick")
    threshold = (
        f" Shaded: effects below the threshold of {words.amount(curve.delta, curve.effect_unit)}."
        if curve.delta
        else ""
    )
    return Figure(
        sweep_tables.sentence(curve, sweep),
        f"Marks are the changes at each topology, vertical lines their 95 % intervals; "
        f"{words.DIRECTION[curve.direction]}.{threshold}",
        markup(svg),
        sweep_tables.header(sweep),
        sweep_tables.rows(curve),
    )
