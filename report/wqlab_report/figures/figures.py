"""Render the figures of the HTML report as inline SVG. Pure functions.

Figures are 360 SVG units wide, so that they are readable on a phone. Metrics that are no evidence on the device, such
as the throughput of an emulated one, are not drawn. Colours come from the page's style sheet by class; a shape and a
word always carry the same information as the colour.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as xml

from wqlab_comparison import words
from wqlab_contracts.api.curves import MetricCurve
from wqlab_contracts.api.report import BootValue, Comparison, TargetReport
from wqlab_contracts.enums import Arm, Question, Role, Scale, Verdict

from .. import comparisons
from ..content import cells, curve_tables
from ..plain_text import printable

WIDTH = 360.0
LEFT, RIGHT = 10.0, 350.0


@dataclass(frozen=True)
class Figure:
    """A drawing with its title, note and data."""

    title: str
    note: str
    svg: str
    header: list[str]
    rows: list[list[str]]
    """The figure's data as a table, for readers who cannot see the drawing or prefer numbers."""


def figures(target: TargetReport) -> list[Figure]:
    """Return the figures of a target; figures without data are left out."""
    judged = cells.judged(target.comparisons)
    drawn = _forests(judged) + _boots(target, judged) + _shares(target) + _curves(target)
    return [figure for figure in drawn if figure.rows]


# --- effects ------------------------------------------------------------------------------------------------------


def _forests(judged: Sequence[Comparison]) -> list[Figure]:
    groups: dict[str, list[Comparison]] = {}
    for cell in judged:
        if cell.effect is not None:
            groups.setdefault(cell.effect_unit, []).append(cell)
    return [_forest(unit, cells) for unit, cells in groups.items()]


def _forest(unit: str, compared: list[Comparison]) -> Figure:
    ends = [0.0]
    for cell in compared:
        ends += [cell.effect or 0.0, *(cell.ci95 or ())]
    axis = _Axis(min(ends), max(ends))
    height = 30 + 38 * len(compared)
    svg = canvas(height, f"Effects with 95 % intervals in {unit}")
    bottom = height - 22
    for row, cell in enumerate(compared):
        top = 16 + 38 * row
        segment(svg, (axis.at(0), top + 5), (axis.at(0), top + 22), "zero")
        label(svg, LEFT, top, f"{cells.name(cell)}: {_verdict(cell)}")
        if cell.ci95:
            low, high = map(axis.at, cell.ci95)
            segment(svg, (low, top + 13), (high, top + 13), f"interval {_class(cell)}")
        draw_mark(svg, axis.at(cell.effect or 0.0), top + 13, cell.verdict)
    _ticks(svg, axis, bottom)
    rows = [[cells.name(c), words.effect(c), words.interval(c), _verdict(c)] for c in compared]
    return Figure(
        f"Effects ({unit})",
        "Marks are Hodges-Lehmann estimates, horizontal lines their 95 % intervals; the vertical line marks no "
        "difference.",
        markup(svg),
        ["", "effect", "95 % interval", "verdict"],
        rows,
    )


def draw_mark(svg: xml.Element, x: float, y: float, verdict: Verdict | None) -> None:
    """Draw the mark of a verdict: triangle up for better, down for worse, square for equal, ring for undecided."""
    style = f"mark {verdict or 'none'}"
    points = {
        Verdict.IMPROVEMENT: f"{x:.1f},{y - 6:.1f} {x + 6:.1f},{y + 5:.1f} {x - 6:.1f},{y + 5:.1f}",
        Verdict.REGRESSION: f"{x:.1f},{y + 6:.1f} {x + 6:.1f},{y - 5:.1f} {x - 6:.1f},{y - 5:.1f}",
        Verdict.EQUIVALENT: " ".join(f"{x + a:.1f},{y + b:.1f}" for a, b in ((-5, -5), (5, -5), (5, 5), (-5, 5))),
    }
    if verdict in points:
        xml.SubElement(svg, "polygon", {"points": points[verdict], "class": style})
    else:
        xml.SubElement(svg, "circle", {"cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": "5", "class": f"{style} ring"})


# --- boots ----------------------------------------------------------------------------------------------------------


def _boots(target: TargetReport, judged: Sequence[Comparison]) -> list[Figure]:
    primary = dict.fromkeys((c.scenario, c.metric, c.unit) for c in judged if c.role is Role.PRIMARY)
    return [_boot_figure(target, *each) for each in primary]


def _boot_figure(target: TargetReport, scenario: str, metric: str, unit: str) -> Figure:
    values = [v for v in target.values if (v.scenario, v.metric) == (scenario, metric)]
    series = list(dict.fromkeys((value.setting, value.arm) for value in values))
    numbers = [value.value for value in values] or [0.0]
    axis = _Axis(min(numbers), max(numbers))
    blocks = sorted({value.block for value in values})
    legend = 16 * len(series)
    height = 44 + 22 * len(blocks) + legend
    svg = canvas(height, f"{words.metric_name(metric)} of each boot in {scenario}, by block")
    names = _series_names(series)
    for row, name in enumerate(names):
        _dot(svg, LEFT + 6, 12 + 16 * row, row)
        label(svg, LEFT + 18, 16 + 16 * row, name)
    for row, block in enumerate(blocks):
        y = legend + 22 + 22 * row
        segment(svg, (LEFT, y), (RIGHT, y), "rule")
        label(svg, LEFT, y - 4, str(block + 1))
        # Hollow marks are drawn last, so that the marks under them stay visible.
        for kind, (setting, arm) in enumerate(series):
            for value in values:
                if (value.block, value.setting, value.arm) == (block, setting, arm):
                    _dot(svg, axis.at(value.value), y, kind)
    _ticks(svg, axis, height - 22)
    rows = [[str(block + 1), *(_value_of(values, block, setting, arm) for setting, arm in series)] for block in blocks]
    return Figure(
        f"{scenario}: {words.metric_name(metric)} of every boot" + (f" ({unit})" if unit else ""),
        "One line per block, one mark per boot: the median of its repetitions.",
        markup(svg),
        ["block", *names],
        rows,
    )


def _dot(svg: xml.Element, x: float, y: float, kind: int) -> None:
    """Draw the mark of series number `kind`: disc, hollow diamond, ring, square or cross, as on the lab's pages."""
    style = f"dot s{kind % 5}"
    shape = kind % 5
    if shape in {0, 2}:
        radius = "4" if shape == 0 else "6"
        xml.SubElement(svg, "circle", {"cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": radius, "class": style})
    elif shape == 1:
        points = f"{x:.1f},{y - 7:.1f} {x + 7:.1f},{y:.1f} {x:.1f},{y + 7:.1f} {x - 7:.1f},{y:.1f}"
        xml.SubElement(svg, "polygon", {"points": points, "class": style})
    elif shape == 3:
        xml.SubElement(
            svg, "rect", {"x": f"{x - 4:.1f}", "y": f"{y - 4:.1f}", "width": "8", "height": "8", "class": style}
        )
    else:
        path = f"M{x - 4:.1f} {y - 4:.1f}L{x + 4:.1f} {y + 4:.1f}M{x - 4:.1f} {y + 4:.1f}L{x + 4:.1f} {y - 4:.1f}"
        xml.SubElement(svg, "path", {"d": path, "class": style})


def _series_names(series: Sequence[tuple[str, Arm]]) -> list[str]:
    """Return the shortest unambiguous names of the series: arms only, settings only, or both."""
    if len({setting for setting, _ in series}) == 1:
        return [str(arm) for _, arm in series]
    _, labels = comparisons.setting_labels([setting for setting, _ in series])
    both = len({arm for _, arm in series}) > 1
    return [f"{arm} {labels[setting]}" if both else labels[setting] for setting, arm in series]


def _value_of(values: Sequence[BootValue], block: int, setting: str, arm: Arm) -> str:
    found = [v.value for v in values if (v.block, v.setting, v.arm) == (block, setting, arm)]
    return words.number(found[0]) if found else "n/a"


def draw_pairs(pairs: Sequence[tuple[str, float, float]]) -> str:
    """Return a drawing of pairs of values, each on a line of its own under its label: a disc joined to a diamond."""
    values = [value for _, *both in pairs for value in both]
    axis = _Axis(min(values), max(values))
    decimals = words.places(values)
    said = (f"{name}: {words.number(a, decimals)} to {words.number(b, decimals)}" for name, a, b in pairs)
    height = 30 * len(pairs) + 24
    svg = canvas(height, "; ".join(said))
    for row, (name, before, after) in enumerate(pairs):
        y = 30.0 * row + 22
        label(svg, LEFT, y - 10, name)
        segment(svg, (axis.at(before), y), (axis.at(after), y), "pair")
        _dot(svg, axis.at(after), y, 1)
        _dot(svg, axis.at(before), y, 0)  # the smaller mark, visible where both are equal
    _ticks(svg, axis, height - 22)
    return markup(svg)


# --- shares ---------------------------------------------------------------------------------------------------------


def _shares(target: TargetReport) -> list[Figure]:
    """Draw where work was executed: bars from 0 to 100 % per scenario, kernel and setting."""
    bars: dict[tuple[str, Arm | None], dict[str, dict[str, float]]] = {}
    for cell in target.comparisons:
        share = (
            cell.unit == "%" and cell.scale is Scale.DIFFERENCE and words.is_evidence(cell) and "share" in cell.metric
        )
        if not share or cell.question is not Question.SETTING:
            continue
        group = bars.setdefault((cell.scenario, cell.kernel), {})
        for setting, arm in ((cell.reference, cell.baseline), (cell.setting, cell.candidate)):
            if arm is not None:
                group.setdefault(setting, {})[cell.metric] = arm.mean
    return [_bars(scenario, kernel, group) for (scenario, kernel), group in bars.items()]


def _bars(scenario: str, kernel: Arm | None, group: dict[str, dict[str, float]]) -> Figure:
    metrics = list(dict.fromkeys(metric for shares in group.values() for metric in shares))
    height = 10 + len(group) * (22 + 20 * len(metrics))
    svg = canvas(height, f"Share of work executed near the CPU that queued it, {scenario}")
    y = 16.0
    for setting, shares in group.items():
        label(svg, LEFT, y, setting)
        y += 6
        for index, metric in enumerate(metrics):
            if metric not in shares:
                continue
            share = min(100.0, max(0.0, shares[metric]))
            length = (RIGHT - LEFT) * share / 100
            _rect(svg, LEFT, y, RIGHT - LEFT, "track")
            _rect(svg, LEFT, y, length, f"bar b{index % 4}")
            label(svg, LEFT + 5, y + 12, f"{metric} {words.number(shares[metric])} %", "onbar")
            y += 20
        y += 16
    rows = [[setting, *(words.number(v[m]) if m in v else "n/a" for m in metrics)] for setting, v in group.items()]
    return Figure(
        f"{scenario}: locality of work items",
        "Share of work items executed near the CPU that queued them; the full width is 100 %. Means over the boots of "
        f"the {kernel} kernel.",
        markup(svg),
        ["setting", *(f"{metric} (%)" for metric in metrics)],
        rows,
    )


def _rect(svg: xml.Element, x: float, y: float, width: float, style: str) -> None:
    place = {"x": f"{x:.1f}", "y": f"{y:.1f}", "width": f"{width:.1f}", "height": "16", "rx": "2"}
    xml.SubElement(svg, "rect", {**place, "class": style})


# --- curves ---------------------------------------------------------------------------------------------------------

_PLOT_HEIGHT = 180.0


def _curves(target: TargetReport) -> list[Figure]:
    return [_curve(target, curve) for curve in target.curves]


def _curve(target: TargetReport, curve: MetricCurve) -> Figure:
    """Draw a metric (vertical) over the ordered quantity (horizontal, logarithmic), with crossings shaded."""
    points = [point for line in curve.lines for point in line.points]
    across = _Axis(math.log(min(point.x for point in points)), math.log(max(point.x for point in points)))
    up = _Axis(min(point.mean for point in points), max(point.mean for point in points))
    legend = 16 * len(curve.lines) + 10
    bottom = legend + _PLOT_HEIGHT
    svg = canvas(bottom + 40, curve_tables.title(target, curve))

    def height(value: float) -> float:
        return bottom - _PLOT_HEIGHT * (up.at(value) - LEFT) / (RIGHT - LEFT)

    for crossing in curve.crossings:
        low, high = across.at(math.log(crossing.low)), across.at(math.log(crossing.high))
        place = {"x": f"{low:.1f}", "y": f"{legend:.1f}", "width": f"{high - low:.1f}", "height": f"{_PLOT_HEIGHT:.1f}"}
        xml.SubElement(svg, "rect", {**place, "class": "crossing"})
    for tick in up.ticks():
        segment(svg, (LEFT, height(tick)), (RIGHT, height(tick)), "rule")
        label(svg, LEFT, height(tick) - 3, f"{tick:g} {curve.unit}".rstrip())
    for kind, line in enumerate(curve.lines):
        places = [(across.at(math.log(point.x)), height(point.mean)) for point in line.points]
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        xml.SubElement(svg, "polyline", {"points": joined, "class": f"line s{kind % 5}"})
        for x, y in places:
            _dot(svg, x, y, kind)
        _dot(svg, LEFT + 6, 8 + 16 * kind, kind)
        label(svg, LEFT + 18, 12 + 16 * kind, line.setting)
    segment(svg, (LEFT, bottom), (RIGHT, bottom), "axis")
    for x in sorted({point.x for point in points}):
        label(svg, across.at(math.log(x)), bottom + 16, f"{x:g}", "tick")
    label(svg, (LEFT + RIGHT) / 2, bottom + 32, curve.over, "tick")
    shaded = " Shaded: the range in which two settings change order." if curve.crossings else ""
    return Figure(
        curve_tables.title(target, curve),
        f"Means over the boots, one line per setting.{shaded} {'; '.join(curve.says)}".rstrip(),
        markup(svg),
        curve_tables.header(curve),
        curve_tables.rows(curve),
    )


# --- drawing --------------------------------------------------------------------------------------------------------


class _Axis:
    """A linear scale with a margin at both ends."""

    def __init__(self, low: float, high: float) -> None:
        room = (high - low) * 0.06 or abs(high) * 0.1 or 1.0
        self.low, self.high = low - room, high + room

    def at(self, value: float) -> float:
        return LEFT + (RIGHT - LEFT) * (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        step = 10.0 ** math.floor(math.log10((self.high - self.low) / 3))
        step *= next(times for times in (1, 2, 5, 10) if (self.high - self.low) / (step * times) <= 5)
        first = math.ceil(self.low / step)
        return [index * step for index in range(first, math.floor(self.high / step) + 1)]


def linear_axis(low: float, high: float) -> _Axis:
    """Return a linear scale from `low` to `high` with a margin at both ends."""
    return _Axis(low, high)


def canvas(height: float, description: str, width: float = WIDTH) -> xml.Element:
    box = f"0 0 {width:.0f} {height:.0f}"
    return xml.Element("svg", {"viewBox": box, "role": "img", "aria-label": printable(description)})


def _ticks(svg: xml.Element, axis: _Axis, y: float) -> None:
    segment(svg, (LEFT, y), (RIGHT, y), "axis")
    for tick in axis.ticks():
        segment(svg, (axis.at(tick), y), (axis.at(tick), y + 4), "axis")
        label(svg, axis.at(tick), y + 16, f"{tick:g}", "tick")


def segment(svg: xml.Element, start: tuple[float, float], end: tuple[float, float], style: str) -> None:
    ends = {"x1": start[0], "y1": start[1], "x2": end[0], "y2": end[1]}
    xml.SubElement(svg, "line", {**{name: f"{place:.1f}" for name, place in ends.items()}, "class": style})


def label(svg: xml.Element, x: float, y: float, text: str, style: str = "label") -> None:
    shown = printable(text)
    shown = shown if len(shown) <= 58 else f"{shown[:57]}…"
    xml.SubElement(svg, "text", {"x": f"{x:.1f}", "y": f"{y:.1f}", "class": style}).text = shown


def markup(svg: xml.Element) -> str:
    return xml.tostring(svg, encoding="unicode")


def _verdict(cell: Comparison) -> str:
    return words.VERDICT[cell.verdict] if cell.verdict else "no verdict"


def _class(cell: Comparison) -> str:
    return str(cell.verdict or "none")
