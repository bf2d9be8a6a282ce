"""Write the means of a report in the layout of MMTests' compare-mmtests.

The layout is that of `Compare.pm` and `PrintGeneric.pm`: operations in rows, `%12.2f` and ` (%7.2f%%)`, which becomes
` *%7.2f%%*` for a significant change.
"""

from __future__ import annotations

from wqlab_comparison import words
from wqlab_contracts.api.report import Report

from ..document.means import MeanTable, Row, Value, means
from ..plain_text import printable, wrapped
from .text import lines_of

_VALUE_WIDTH = 12
"""Columns of a value, as in MMTests; more if a heading or a value is longer."""
_CHANGE_WIDTH = len(" (   0.00%)")


def render_mmtests(report: Report) -> str:
    """Render the verdicts and tables, each with an empty line below it."""
    lines: list[str] = []
    for block in means(report):
        lines += ["", *(_lines(block) if isinstance(block, MeanTable) else lines_of([block]))]
    return "\n".join(printable(line.rstrip()) for line in lines[1:]) + "\n"


def _lines(table: MeanTable) -> list[str]:
    statistic = max(len(row.statistic) for row in table.rows)
    operation = max(len(printable(row.operation)) for row in table.rows)
    rows = [(row, [_figure(value, row) for value in row.values]) for row in table.rows]
    fields = [
        max(
            _VALUE_WIDTH,
            *(len(figures[at]) + 1 for _, figures in rows),
            *(len(line) + 1 - _CHANGE_WIDTH for line in heading),
        )
        for at, heading in enumerate(table.columns)
    ]
    lines = [*wrapped(table.title, indent="  ")]
    for line in (0, 1):
        cells = (
            heading[line].rjust(field + _CHANGE_WIDTH) for heading, field in zip(table.columns, fields, strict=True)
        )
        lines.append(" " * (statistic + 1 + operation) + "".join(cells))
    for row, figures in rows:
        pairs = zip(figures, fields, row.values, strict=True)
        cells = (f"{figure:>{field}}{_percent(value)}" for figure, field, value in pairs)
        lines.append(f"{row.statistic:<{statistic}} {printable(row.operation):<{operation}}{''.join(cells)}")
    return lines


def _figure(value: Value, row: Row) -> str:
    """Format a value with two decimals as in MMTests, or more if the row's figures are too small for that."""
    if value.value is None:
        return "n/a"
    known = [each.value for each in row.values if each.value is not None]
    return f"{value.value:.{max(2, words.places(known))}f}"


def _percent(value: Value) -> str:
    if value.change is None:
        return " " * _CHANGE_WIDTH
    return f" *{value.change:7.2f}%*" if value.significant else f" ({value.change:7.2f}%)"
