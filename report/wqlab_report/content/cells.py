"""Comparisons as all formats select, name and show them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wqlab_comparison import is_regression, words
from wqlab_contracts.api.report import ArmSummary, Comparison
from wqlab_contracts.enums import SEEDED, VERDICT_ORDER, Evidence, Question, Role, Scale, Verdict

from ..plain_text import INTERVAL, NOTHING

DECIDED = frozenset({Verdict.IMPROVEMENT, Verdict.REGRESSION, Verdict.EQUIVALENT, Verdict.BELOW_THRESHOLD})


def judged(cells: Iterable[Comparison]) -> list[Comparison]:
    """Return the comparisons that may have a verdict: evidence on their device, of primary and secondary metrics."""
    return [cell for cell in cells if words.is_evidence(cell) and cell.role is not Role.EXPLANATORY]


def explanatory(cells: Iterable[Comparison]) -> list[Comparison]:
    """Return the comparisons of metrics that only explain others."""
    return [cell for cell in cells if words.is_evidence(cell) and cell.role is Role.EXPLANATORY]


def values_only(cells: Iterable[Comparison]) -> list[Comparison]:
    """Return the comparisons that are no evidence on their device."""
    return [cell for cell in cells if not words.is_evidence(cell)]


def without_models(cells: Iterable[Comparison]) -> list[Comparison]:
    """Return the comparisons that may be findings: a model's is none, whatever its verdict."""
    return [cell for cell in cells if cell.evidence is not Evidence.MODELLED]


def is_measured(cell: Comparison) -> bool:
    """Return True if one side of the comparison has figures."""
    return cell.baseline is not None or cell.candidate is not None


def important(found: Sequence[Comparison], most: int) -> list[Comparison]:
    """Return at most `most` comparisons, in their order: primary ones and regressions, then severe verdicts."""

    def rank(cell: Comparison) -> tuple[bool, int]:
        order = VERDICT_ORDER.index(cell.verdict) if cell.verdict else len(VERDICT_ORDER)
        return cell.role is not Role.PRIMARY and not is_regression(cell), order

    chosen = sorted(found, key=rank)[:most]
    return [cell for cell in found if any(cell is each for each in chosen)]


def sample(found: Sequence[Comparison]) -> str:
    """Return the number of boots or seeds of the comparisons: `n=6 seeds`, `n=5 to 6`."""
    numbers = sorted({cell.candidate.n for cell in found if cell.candidate})
    n = "" if not numbers else f"n={numbers[0]}" if len(numbers) == 1 else f"n={numbers[0]} to {numbers[-1]}"
    return f"{n} seeds" if n and found[0].evidence in SEEDED else n


def sides(question: Question) -> list[str]:
    """Return the names of both sides of a comparison."""
    return ["baseline", "candidate"] if question is Question.KERNEL else ["reference", "setting"]


def columns(header: list[str], rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """Return a table without its column of intervals if there are none, as of exact counts."""
    at = header.index(INTERVAL)
    if all(row[at] in {"", "exact"} for row in rows):
        header, *rows = [row[:at] + row[at + 1 :] for row in (header, *rows)]
    return header, rows


def name(cell: Comparison) -> str:
    """Return scenario, setting and metric, which name the comparison in all reports."""
    return " ".join(filter(None, (cell.scenario, cell.setting, words.metric(cell))))


def metric(cell: Comparison) -> str:
    """Return the metric's name and its unit, such as `wait_p99 (ms)`."""
    shown = words.metric(cell)
    return f"{shown} ({cell.unit})" if cell.unit else shown


def figure(arm: ArmSummary | None, decimals: int, *, exact: bool) -> str:
    """Format the figure of one side in a column of `decimals` places, without a spread if it is exact."""
    if arm is None:
        return NOTHING
    return words.number(arm.mean, decimals) if exact else words.spread(arm, decimals)


def change(cell: Comparison) -> str:
    """Format the change in the unit of its column, or why there is none."""
    if cell.effect is None:
        return words.cause(cell) or NOTHING
    return words.effect(cell) if cell.scale is Scale.RATIO else words.change(cell)


def verdict(cell: Comparison) -> str:
    """Return the label of the verdict."""
    return words.VERDICT[cell.verdict] if cell.verdict else NOTHING
