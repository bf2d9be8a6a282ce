"""The table of a target in a letter: every boot, or mean and standard deviation; and what is left out. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from wqlab_comparison import words
from wqlab_contracts.api.report import Comparison, TargetReport
from wqlab_contracts.enums import SEEDED, Arm, Question

from ..content import cells
from ..plain_text import INTERVAL
from . import lines
from .audience import Audience, is_told

EVERY_BOOT = 3
"""Most boots of each kernel whose values are listed one by one."""
LEFT_OUT_LINES = 4


def table(target: TargetReport, audience: Audience, most: int) -> list[str]:
    """Return the table with at most `most` rows, what is left out of it, and what its counts depend on."""
    told = _told(target, audience)
    if not told:
        return []
    shown = cells.important(told, most)
    rows = [_row(target, cell, told) for cell in shown]
    header, rows = cells.columns(["", *cells.sides(told[0].question), "change", INTERVAL], rows)
    return [
        *lines.paragraph(_title(target, told)),
        *lines.table(header, rows),
        *lines.paragraph(_left_out(target, told, len(told) - len(shown)), LEFT_OUT_LINES),
        *lines.paragraph(_dependence(target, shown)),
    ]


def _told(target: TargetReport, audience: Audience) -> list[Comparison]:
    """Return the comparisons of kernels, or in a study of settings, that a letter has the figures of."""
    judged = [cell for cell in cells.judged(target.comparisons) if cells.is_measured(cell)]
    kernels = [cell for cell in judged if cell.question is Question.KERNEL]
    return [cell for cell in kernels or judged if is_told(cell, audience)]


def _title(target: TargetReport, told: Sequence[Comparison]) -> str:
    kernels = told[0].question is Question.KERNEL
    n = "" if told[0].evidence in SEEDED else " boots of each kernel" if kernels else " boots"
    few = kernels and all(cell.candidate is None or cell.candidate.n <= EVERY_BOOT for cell in told)
    shape = "every value" if few else "mean and standard deviation"
    scenarios = {cell.scenario for cell in told}
    scenario = f" {scenarios.pop()}" if len(scenarios) == 1 and len(target.plan.scenarios) > 1 else ""
    per_op = f"; op: {target.instrument[0].operation}" if target.instrument else ""
    return f"{target.plan.name}{scenario} on {target.device_type}, {cells.sample(told)}{n}{per_op}; {shape}:"


def _row(target: TargetReport, cell: Comparison, told: Sequence[Comparison]) -> list[str]:
    name = [
        cells.metric(cell),
        cell.scenario if len({each.scenario for each in told}) > 1 else "",
        cell.setting if len({each.setting for each in told}) > 1 else "",
    ]
    decimals = words.decimals((cell.baseline, cell.candidate))
    sides = [_side(target, cell, arm, decimals) for arm in (Arm.BASELINE, Arm.CANDIDATE)]
    return [" ".join(filter(None, name)), *sides, cells.change(cell), words.interval(cell)]


def _side(target: TargetReport, cell: Comparison, arm: Arm, decimals: int) -> str:
    """Return the value of every boot if there are few, else mean and standard deviation."""
    summary = cell.baseline if arm is Arm.BASELINE else cell.candidate
    if summary is not None and summary.n <= EVERY_BOOT and cell.question is Question.KERNEL:
        key = (arm, cell.scenario, cell.setting, cell.metric)
        values = [v.value for v in target.values if (v.arm, v.scenario, v.setting, v.metric) == key]
        if len(values) == summary.n:
            return " ".join(words.number(value, decimals) for value in values)
    return cells.figure(summary, decimals, exact=cell.exact)


def _left_out(target: TargetReport, told: Sequence[Comparison], rows: int) -> str:
    """Return what the table does not have: more rows, what is not decided, values without evidence."""
    measured = [cell for cell in target.comparisons if cells.is_measured(cell)]
    rest = [cell for cell in measured if not any(cell is each for each in told)]
    judged = [cell for cell in cells.judged(rest) if cell.question is told[0].question]
    metrics = {cell.metric for cell in told}
    undecided = dict.fromkeys(cells.name(c) if c.metric in metrics else words.metric(c) for c in judged)
    values = dict.fromkeys(words.metric_name(cell.metric) for cell in cells.values_only(rest))
    explaining = dict.fromkeys(cell.metric for cell in cells.explanatory(rest))
    parts = [
        words.count(rows, "more row") if rows > 0 else "",
        f"{_names(undecided)} (not decided)" if undecided else "",
        f"{_names(values)} (no evidence: the clock is emulated)" if values else "",
        words.count(len(explaining), "explanatory metric") if explaining else "",
    ]
    known = "; ".join(filter(None, parts))
    return f"Left out: {known}." if known else ""


def _names(names: Sequence[str] | dict[str, None], most: int = 3) -> str:
    known = list(names)
    more = f" and {len(known) - most} more" if len(known) > most else ""
    return f"{', '.join(known[:most])}{more}"


def _dependence(target: TargetReport, shown: Sequence[Comparison]) -> str:
    """Return what the counts depend on besides the kernel."""
    known = {metric.name: metric.depends_on for metric in target.plan.metrics}
    found = {known[cell.metric]: None for cell in shown if known.get(cell.metric)}
    return f"Depends on {'; on '.join(found)}." if found else ""
