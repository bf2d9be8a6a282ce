"""Figure of an instrumented device as inline SVG: a heat map of CPUs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as xml

from wqlab_contracts.api.instrument import InstrumentCell
from wqlab_contracts.api.report import TargetReport
from wqlab_contracts.instrument import CpuPlace

from ..content import instrument_tables
from .figures import LEFT, RIGHT, Figure, canvas, label, markup

_BAND = 16.0


def instrument_figures(target: TargetReport) -> list[Figure]:
    """Return the heat map of each scenario and setting; those without data are left out."""
    return [figure for cell in target.instrument if cell.cpus and (figure := _heat_map(cell)).rows]


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
        + ("; of the change one colour is fewer, the other more." if len(matrices) > 1 else ".")
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
