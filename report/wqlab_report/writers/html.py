"""Render the report as a self-contained HTML page: no script, no external resources, all input escaped."""

from __future__ import annotations

import re
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from wqlab_comparison import tables, words
from wqlab_comparison.differences import NOT_CAUSES
from wqlab_comparison.reasons import reasons
from wqlab_contracts.api.report import Comparison, Report
from wqlab_contracts.enums import Question, Role

from ..content import (
    curve_tables,
    explanation_text,
    failures,
    instrument_tables,
    ladder_tables,
    shared_text,
    sweep_tables,
    system_text,
    thread_text,
    wait_tables,
)
from ..document.shell import shell_lines
from ..figures.figures import figures
from ..figures.instrument_figures import instrument_figures
from ..figures.sweep_figures import sweep_figures
from ..figures.workqueue_figures import workqueue_figures


def render_html(report: Report) -> str:
    return _template().render(report=report)


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("wqlab_report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["clean"] = _clean
    environment.filters["breakable"] = _breakable
    environment.filters["drawn"] = Markup  # SVG of figures.py, which escapes its input
    environment.globals.update(
        failures=failures,
        shared_text=shared_text,
        system_text=system_text,
        thread_text=thread_text,
        figures=figures,
        workqueue_figures=workqueue_figures,
        wait_tables=wait_tables,
        curve_tables=curve_tables,
        explanation_text=explanation_text,
        NOT_CAUSES=NOT_CAUSES,
        instrument_tables=instrument_tables,
        instrument_figures=instrument_figures,
        sweep_tables=sweep_tables,
        ladder_tables=ladder_tables,
        sweep_figures=sweep_figures,
        words=words,
        judged=_judged,
        values=_values,
        explanatory=_explanatory,
        reasons=reasons,
        shell_lines=shell_lines,
        Question=Question,
        kernels=shared_text.kernels,
    )
    return environment.get_template("report.html.j2")


def _clean(text: str) -> str:
    """Remove all control characters except line ends."""
    return "\n".join(tables.printable(line) for line in text.splitlines())


def _breakable(text: str) -> Markup:
    """Escape a text, and let long names and paths break behind `/` and `_` where the page's CSS shows `wbr`."""
    return Markup("<wbr>").join(re.split("(?<=[/_])", text))


def _judged(comparisons: list[Comparison], question: Question) -> list[Comparison]:
    return [
        cell
        for cell in comparisons
        if words.is_evidence(cell) and cell.role is not Role.EXPLANATORY and cell.question is question
    ]


def _explanatory(comparisons: list[Comparison]) -> list[Comparison]:
    return [c for c in comparisons if words.is_evidence(c) and c.role is Role.EXPLANATORY and c.candidate]


def _values(comparisons: list[Comparison]) -> list[Comparison]:
    return [cell for cell in comparisons if not words.is_evidence(cell)]
