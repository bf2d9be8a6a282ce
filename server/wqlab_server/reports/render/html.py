"""The report as one self-contained HTML page: no script, nothing loaded, everything from outside escaped."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from wqlab_comparison import tables, words
from wqlab_comparison.reasons import reasons
from wqlab_contracts.api.report import Comparison, Report, TargetReport
from wqlab_contracts.enums import Question, Role

from . import curves, facts
from .figures import figures
from .series import workqueue_figures
from .shell import shell_lines


def render_html(report: Report) -> str:
    return _template("report.html.j2").render(report=report)


def render_notice(title: str, text: str, href: str, label: str) -> str:
    """A page that says one thing and leads on."""
    return _template("notice.html.j2").render(title=title, text=text, href=href, label=label)


@cache
def _template(name: str) -> Template:
    environment = Environment(
        loader=PackageLoader("wqlab_server.reports"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["clean"] = _clean
    environment.filters["drawn"] = Markup  # the SVG of render_figures, which escapes what it is given
    environment.globals.update(
        facts=facts,
        figures=figures,
        workqueue_figures=workqueue_figures,
        curves=curves,
        words=words,
        judged=_judged,
        values=_values,
        explaining=_explaining,
        reasons=reasons,
        shell_lines=shell_lines,
        Question=Question,
        kernels=facts.kernels,
    )
    return environment.get_template(name)


def _clean(text: str) -> str:
    """Line ends stay; every other control character goes."""
    return "\n".join(tables.printable(line) for line in text.splitlines())


def _judged(target: TargetReport, question: Question) -> list[Comparison]:
    return [
        cell
        for cell in target.comparisons
        if words.is_evidence(cell) and cell.role is not Role.EXPLANATORY and cell.question is question
    ]


def _explaining(target: TargetReport) -> list[Comparison]:
    return [c for c in target.comparisons if words.is_evidence(c) and c.role is Role.EXPLANATORY and c.candidate]


def _values(target: TargetReport) -> list[Comparison]:
    return [cell for cell in target.comparisons if not words.is_evidence(cell)]
