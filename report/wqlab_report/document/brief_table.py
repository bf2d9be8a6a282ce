"""The one table of a target in a mail: the metrics with a verdict. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wqlab_comparison import words
from wqlab_comparison.reasons import reasons as all_reasons
from wqlab_contracts.api.report import Comparison, TargetReport
from wqlab_contracts.enums import Evidence, Question

from .. import comparisons, plain_text
from ..content import cells
from .blocks import Block, Paragraph, Table


def judged(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Return the comparisons of the table: those with a verdict and figures, of kernels or, in a study, of settings."""
    found = cells.judged(comparisons)
    kernels = [c for c in found if c.question is Question.KERNEL]
    return list(filter(cells.is_measured, kernels or found))


def blocks(comparisons: Sequence[Comparison], most: int) -> list[Block]:
    """Return the table in at most `most` rows: regressions, then those of primary metrics and severe verdicts."""
    found = judged(comparisons)
    if not found:
        return []
    shown = cells.important(found, most)
    missing = len(found) - len(shown)
    return [
        Paragraph(_title(found)),
        _table(shown, found),
        *([Paragraph(f"and {words.count(missing, 'more comparison')} behind the link")] if missing else []),
    ]


def left_out(target: TargetReport, comparisons: Sequence[Comparison]) -> str:
    """Return which figures have no verdict and are only behind the link; empty if there are none."""
    shown = judged(comparisons)
    rest = [c for c in filter(cells.is_measured, comparisons) if not any(c is each for each in shown)]
    values = dict.fromkeys(words.metric_name(c.metric) for c in rest if c.evidence is Evidence.NONE)
    settings = [c for c in rest if c.question is Question.SETTING and words.metric_name(c.metric) not in values]
    others = dict.fromkeys(
        name for c in rest if (name := words.metric_name(c.metric)) not in values and c not in settings
    )
    parts = [
        f"values only, no evidence: {', '.join(values)}" if values else "",
        f"explanatory: {', '.join(others)}" if others else "",
        f"{words.count(len(settings), 'comparison')} of settings" if settings else "",
        words.count(len(target.curves), "curve") if target.curves else "",
    ]
    known = "; ".join(filter(None, parts))
    return f"Behind the link: {known}." if known else ""


def reasons(comparisons: Sequence[Comparison]) -> list[str]:
    """Return the reasons of the verdicts of the table, and why something was not measured."""
    kernels = any(c.question is Question.KERNEL for c in comparisons)
    about = [c for c in comparisons if not kernels or c.question is Question.KERNEL]
    return all_reasons(about)


def _table(shown: Sequence[Comparison], of: Sequence[Comparison]) -> Table:
    """Return the table of `shown`; its title has what all cells `of` have in common."""
    knobs, labels = comparisons.setting_labels([cell.setting for cell in of])
    names = [_name(cell, of, labels) for cell in shown]
    rows = [[name, *_figures(cell)] for name, cell in zip(names, shown, strict=True)]
    several = len({cell.setting for cell in of}) > 1
    header = [knobs if several else "", *cells.sides(of[0].question), "change", plain_text.INTERVAL, "verdict"]
    header, rows = cells.columns(header, rows)
    return Table(header, rows, left=(0, len(header) - 1))


def _title(of: Sequence[Comparison]) -> str:
    """Return the metric, scenario and reference that all cells have in common, and the number of boots or seeds."""
    first = of[0]
    setting = first.question is Question.SETTING and len({cell.reference for cell in of}) == 1
    parts = [
        first.scenario if len({cell.scenario for cell in of}) == 1 else "",
        cells.metric(first) if len({cell.metric for cell in of}) == 1 else "",
        f"against {first.reference}" if setting else "",
        cells.sample(of),
    ]
    return f"{', '.join(filter(None, parts))}:"


def _name(cell: Comparison, of: Sequence[Comparison], labels: Mapping[str, str]) -> str:
    """Return what tells the cell from the others."""
    parts = [
        cells.metric(cell) if len({each.metric for each in of}) > 1 else "",
        cell.scenario if len({each.scenario for each in of}) > 1 else "",
        labels[cell.setting] if len({each.setting for each in of}) > 1 else "",
        f"against {cell.reference}" if len({each.reference for each in of}) > 1 else "",
        f"on the {cell.kernel}" if cell.kernel and len({each.kernel for each in of}) > 1 else "",
    ]
    return " ".join(filter(None, parts))


def _figures(cell: Comparison) -> list[str]:
    decimals = words.decimals((cell.baseline, cell.candidate))
    sides = [cells.figure(arm, decimals, exact=cell.exact) for arm in (cell.baseline, cell.candidate)]
    return [*sides, cells.change(cell), words.interval(cell), cells.verdict(cell)]
