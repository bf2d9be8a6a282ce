"""The table of a target in a letter: every boot, or mean and standard deviation; and what is left out. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from wqlab_comparison import words
from wqlab_contracts.api.report import Comparison, TargetReport
from wqlab_contracts.enums import SEEDED, VERDICT_ORDER, Arm, Question, Role, Verdict

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
    shown = sorted(told, key=_importance)[:most]
    rows = [_row(target, cell, told) for cell in told if any(cell is each for each in shown)]
    sides = ["baseline", "candidate"] if told[0].question is Question.KERNEL else ["reference", "setting"]
    header = ["", *sides, "change", INTERVAL]
    if all(row[4] in {"", "exact"} for row in rows):
        header, rows = header[:4], [row[:4] for row in rows]
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


def _importance(cell: Comparison) -> tuple[bool, int]:
    """Return the rank of a row: primary metrics and every regression first."""
    severity = VERDICT_ORDER.index(cell.verdict) if cell.verdict else len(VERDICT_ORDER)
    return cell.role is not Role.PRIMARY and cell.verdict is not Verdict.REGRESSION, severity


def _title(target: TargetReport, told: Sequence[Comparison]) -> str:
    numbers = sorted({cell.candidate.n for cell in told if cell.candidate})
    n = "" if not numbers else f", n={numbers[0]}" if len(numbers) == 1 else f", n={numbers[0]} to {numbers[-1]}"
    boots = " boots of each kernel" if told[0].question is Question.KERNEL else " boots"
    unit = " seeds" if told[0].evidence in SEEDED else boots
    shape = "mean and standard deviation"
    if numbers and numbers[-1] <= EVERY_BOOT and told[0].question is Question.KERNEL:
        shape = "every boot"
    scenarios = {cell.scenario for cell in told}
    scenario = f" {scenarios.pop()}" if len(scenarios) == 1 else ""
    return f"{target.plan.name}{scenario} on {target.device_type}{n}{unit}; {shape}:"


def _row(target: TargetReport, cell: Comparison, told: Sequence[Comparison]) -> list[str]:
    name = [
        cells.metric(cell) if len({each.metric for each in told}) > 1 or len(told) == 1 else "",
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
        f"not decided: {_names(undecided)}" if undecided else "",
        f"of the emulated clock, no evidence: {_names(values)}" if values else "",
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
