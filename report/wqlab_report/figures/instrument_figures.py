"""Figures of an instrumented device as inline SVG: flame graphs by place in the source tree, and a heat map of CPUs.

The emulator records no call stacks, so the levels of a flame graph are places in the source tree. A count that fell is
drawn in one colour and one that rose in the other; the sign in the text says the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from xml.etree import ElementTree as xml

from wqlab_contracts.api.instrument import FunctionChange, InstrumentCell
from wqlab_contracts.api.report import TargetReport
from wqlab_contracts.instrument import OTHER, CpuPlace

from ..content import instrument_tables
from ..parts.instrument_sentences import count
from ..plain_text import printable
from .figures import LEFT, RIGHT, WIDTH, Figure, canvas, label, markup

_ROW = 20.0
_LEAST_WIDTH = 0.8
"""Narrower boxes are left out: they would be invisible."""
_CHARACTER = 6.8
"""Width of a character of a label, in SVG units."""
_COLOURS = (
    "Boxes are coloured by the change from the baseline, a function only if its count changed in the same direction "
    "under every seed."
)
_REST = "Functions without a box of their own are summed by file, those of the smallest files by subsystem."
_LEGEND = (("less d3", "fewer"), ("less d1", ""), ("same", "same"), ("more d1", ""), ("more d3", "more"))
_STEPS = (0.02, 0.1, 0.3)
"""Relative changes from which a box has a stronger colour."""
_BAND = 16.0
_MAX_ROWS = 20
"""Functions in the table beside a flame graph."""


def instrument_figures(target: TargetReport) -> list[Figure]:
    """Return the flame graphs and the heat map of each scenario and setting; figures without data are left out."""
    found = []
    for cell in target.instrument:
        found += [_flame(cell, instructions=True), _flame(cell, instructions=False)]
        found += [_heat_map(cell)] if cell.cpus else []
    return [figure for figure in found if figure.rows]


# --- flame graphs -------------------------------------------------------------------------------------------------


@dataclass
class Box:
    """A box of a flame graph: a place in the source tree with the counts of all functions in it."""

    name: str
    before: float = 0.0
    after: float = 0.0
    agreed: bool = True
    """False for a function whose count did not change in the same direction under every seed."""
    parts: dict[str, Box] = field(default_factory=dict)

    @property
    def size(self) -> float:
        """Return the larger count, so that code which only one kernel executes is visible."""
        return max(self.before, self.after) if not self.parts else sum(part.size for part in self.parts.values())

    @property
    def change(self) -> float:
        """Return the change relative to the larger count, -1 to 1; 0 if the seeds do not agree."""
        largest = max(self.before, self.after)
        return (self.after - self.before) / largest if largest and self.agreed else 0.0


def tree(cell: InstrumentCell, *, instructions: bool) -> Box:
    """Return the root of the flame graph of instructions or transfers, with subsystems, files and functions below."""
    root = Box("all")
    for function in cell.functions:
        counts = list(instrument_tables.totals_of(function, instructions).values())
        before, after = counts[0], counts[-1]
        box = root
        for name in _path(function):
            box.before, box.after = box.before + before, box.after + after
            box = box.parts.setdefault(name, Box(name))
        box.before, box.after = box.before + before, box.after + after
        seeds = function.instruction_seeds if instructions else function.transfer_seeds
        box.agreed = seeds == len(cell.seeds)
    return root


def _path(function: FunctionChange) -> list[str]:
    """Return the names of the boxes from subsystem to function. A file that is a subsystem of its own has one box."""
    places = dict.fromkeys([instrument_tables.subsystem_of(function), function.file])
    return [*(place for place in places if place), instrument_tables.function_name(function)]


def _flame(cell: InstrumentCell, *, instructions: bool) -> Figure:
    root = tree(cell, instructions=instructions)
    what = "instructions" if instructions else "cache line transfers"
    title = f"{instrument_tables.where(cell)}: {what} by subsystem, file and function"
    svg = canvas(4 * _ROW + 24, f"Flame graph: {title}", 2 * WIDTH)
    for box, x, width, depth in _layout(root, 1.0, 2 * WIDTH - 2, 0):
        _draw_box(svg, box, (x, depth * _ROW, width), cell, what)
    if len(cell.totals) > 1:
        _legend(svg, 4 * _ROW + 8)
    colours = f" {_COLOURS}" if len(cell.totals) > 1 else ""
    rows = _flame_rows(cell, instructions=instructions)
    rest = f" {_REST}" if any(each.name == OTHER for each in cell.functions) else ""
    note = f"Width is the larger count of both kernels per {cell.operation}.{colours}{rest}"
    return Figure(title, note, markup(svg), ["subsystem", "file", "function", *cell.totals], rows, wide=True)


def _layout(box: Box, x: float, width: float, depth: int) -> Iterator[tuple[Box, float, float, int]]:
    """Yield each visible box with its left edge, width and depth; the largest parts are on the left."""
    if width < _LEAST_WIDTH:
        return
    yield box, x, width, depth
    for part in sorted(box.parts.values(), key=lambda each: (-each.size, each.name)):
        share = width * part.size / box.size if box.size else 0.0
        yield from _layout(part, x, share, depth + 1)
        x += share


def _draw_box(svg: xml.Element, box: Box, place: tuple[float, float, float], cell: InstrumentCell, what: str) -> None:
    x, y, width = place
    group = xml.SubElement(svg, "g")
    both = len(cell.totals) > 1
    counts = f"{count(box.before)} -> {count(box.after)}" if both else count(box.after)
    xml.SubElement(group, "title").text = printable(f"{box.name}: {counts} {what} per {cell.operation}")
    edges = {"x": f"{x:.1f}", "y": f"{y:.1f}", "width": f"{width:.1f}", "height": f"{_ROW - 1:.1f}"}
    xml.SubElement(group, "rect", {**edges, "class": f"box {style(box.change) if both else 'same'}"})
    change = instrument_tables.relative_change(box.before, box.after) if both and style(box.change) != "same" else ""
    text = _fitting(box.name, change, width)
    if text:
        label(group, x + 3, y + 14, text, "boxname")


def style(change: float) -> str:
    """Return the class of a relative change: `same`, or `less` or `more` with its strength 1 to 3."""
    strength = sum(abs(change) >= step for step in _STEPS)
    return "same" if not strength else f"{'less' if change < 0 else 'more'} d{strength}"


def _fitting(name: str, change: str, width: float) -> str:
    """Return the label of a box of `width` pixels.

    The first that fits: name and change, last part of the path and change, name, last part, the beginning of the last
    part; empty if the box is too narrow.
    """
    room = int((width - 4) / _CHARACTER)
    short = name.rpartition("/")[2] or name
    for text in (f"{name} {change}".strip(), f"{short} {change}".strip(), name, short):
        if len(text) <= room:
            return text
    return f"{short[: room - 1]}…" if room >= 4 else ""


def _flame_rows(cell: InstrumentCell, *, instructions: bool) -> list[list[str]]:
    """Return a row per function, largest first, as the text alternative of the flame graph."""
    counted = [(each, list(instrument_tables.totals_of(each, instructions).values())) for each in cell.functions]
    return [
        [instrument_tables.subsystem_of(each), each.file, instrument_tables.function_name(each), *map(count, counts)]
        for each, counts in sorted(counted, key=lambda pair: -max(pair[1]))[:_MAX_ROWS]
    ]


def _legend(svg: xml.Element, y: float) -> None:
    x = 1.0
    for style_name, text in _LEGEND:
        place = {"x": f"{x:.1f}", "y": f"{y:.1f}", "width": "14", "height": "12"}
        xml.SubElement(svg, "rect", {**place, "class": f"box {style_name}"})
        if text:
            label(svg, x + 18, y + 10, text)
        x += 60 if text else 18


# --- heat map -----------------------------------------------------------------------------------------------------


def _heat_map(cell: InstrumentCell) -> Figure:
    """Draw who holds (rows) and who takes (columns) cache lines: the first arm, and the change if there are two."""
    order = sorted(range(len(cell.topology)), key=lambda cpu: (*_nesting(cell.topology[cpu]), cpu))
    matrices = list(cell.cpus.values())
    names = list(cell.cpus)
    gap = 8.0
    size = (RIGHT - LEFT - gap - 2 * _BAND) / 2 if len(matrices) > 1 else RIGHT - LEFT - _BAND
    title = f"{instrument_tables.where(cell)}: cache lines that move from CPU to CPU"
    svg = canvas(size + _BAND + 20, f"Heat map: {title}")
    first = _Panel(svg, LEFT, size, cell.topology, order)
    first.draw(names[0], _levels(matrices[0]))
    if len(matrices) > 1:
        second = _Panel(svg, LEFT + size + _BAND + gap, size, cell.topology, order)
        second.draw("change with the candidate", _changes(matrices[0], matrices[-1]))
    note = (
        "Rows are the CPUs that hold a line, columns those that take it, in the order of the topology; boxes are "
        f"last-level cache domains and heavy lines NUMA nodes. A stronger colour is more transfers per {cell.operation}"
        + ("; the change has the colours of the flame graphs." if len(matrices) > 1 else ".")
    )
    header, rows = instrument_tables.domain_header(cell), instrument_tables.domain_rows(cell)
    return Figure(title, note, markup(svg), header, rows)


_Cells = Mapping[tuple[int, int], tuple[str, float]]
"""(from, to) -> class and opacity."""


def _levels(matrix: Sequence[Sequence[float]]) -> _Cells:
    largest = max((value for row in matrix for value in row), default=0.0) or 1.0
    return {
        (source, taker): ("level", (value / largest) ** 0.5)
        for source, row in enumerate(matrix)
        for taker, value in enumerate(row)
        if value
    }


def _changes(before: Sequence[Sequence[float]], after: Sequence[Sequence[float]]) -> _Cells:
    changes = {
        (source, taker): after[source][taker] - value
        for source, row in enumerate(before)
        for taker, value in enumerate(row)
    }
    largest = max(map(abs, changes.values()), default=0.0) or 1.0
    return {
        place: ("fewer" if change < 0 else "further", (abs(change) / largest) ** 0.5)
        for place, change in changes.items()
        if change
    }


@dataclass(frozen=True)
class _Panel:
    """A matrix of CPUs with the topology along both edges."""

    svg: xml.Element
    left: float
    size: float
    topology: Sequence[CpuPlace]
    order: Sequence[int]
    """CPUs in the order of the drawing."""

    def draw(self, name: str, cells: _Cells) -> None:
        x0, y0, step = self.left + _BAND, 14 + _BAND, self.size / len(self.order)
        label(self.svg, self.left, 11, name)
        _rect(self.svg, (x0, y0), (self.size, self.size), "matrix")
        for row, source in enumerate(self.order):
            for column, taker in enumerate(self.order):
                if (found := cells.get((source, taker))) is not None:
                    place = (x0 + column * step, y0 + row * step)
                    drawn = _rect(self.svg, place, (step, step), f"cell {found[0]}")
                    drawn.set("fill-opacity", f"{found[1]:.2f}")
        for start, end, first in _runs(self.topology, self.order):
            self._draw_domain(start * step, (end - start) * step, first)
        self._draw_nodes(step)

    def _draw_domain(self, at: float, length: float, place: CpuPlace) -> None:
        """Draw a last-level cache domain along both edges and its square on the diagonal."""
        x0, y0 = self.left + _BAND, 14 + _BAND
        _rect(self.svg, (x0 + at, y0 - _BAND), (length, _BAND - 2), "domain")
        _rect(self.svg, (self.left, y0 + at), (_BAND - 2, length), "domain")
        _rect(self.svg, (x0 + at, y0 + at), (length, length), "own")
        name = instrument_tables.domain(place) if length >= 34 else str(place.l3) if length >= 8 else ""
        if name:
            label(self.svg, x0 + at + length / 2, y0 - 5, name, "tick")

    def _draw_nodes(self, step: float) -> None:
        """Draw a heavy line between NUMA nodes."""
        x0, y0 = self.left + _BAND, 14 + _BAND
        nodes = [self.topology[cpu].node for cpu in self.order]
        for position in range(1, len(self.order)):
            if nodes[position] != nodes[position - 1]:
                at = position * step - 1
                _rect(self.svg, (x0 + at, y0 - _BAND), (2, self.size + _BAND), "border")
                _rect(self.svg, (self.left, y0 + at), (self.size + _BAND, 2), "border")


def _rect(svg: xml.Element, place: tuple[float, float], size: tuple[float, float], style_name: str) -> xml.Element:
    edges = zip(("x", "y", "width", "height"), (*place, *size), strict=True)
    return xml.SubElement(svg, "rect", {**{name: f"{value:.2f}" for name, value in edges}, "class": style_name})


def _runs(topology: Sequence[CpuPlace], order: Sequence[int]) -> Iterator[tuple[int, int, CpuPlace]]:
    """Yield first and last (exclusive) position of each last-level cache domain in the drawing."""
    start = 0
    for position in range(1, len(order) + 1):
        ends = position == len(order) or _domain(topology[order[position]]) != _domain(topology[order[start]])
        if ends:
            yield start, position, topology[order[start]]
            start = position


def _domain(place: CpuPlace) -> tuple[int, int]:
    return place.node, place.l3


def _nesting(place: CpuPlace) -> tuple[int, int, int]:
    return place.node, place.l3, place.core
