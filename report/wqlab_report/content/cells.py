"""Comparisons as all formats select, name and show them. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from wqlab_comparison import words
from wqlab_contracts.api.report import ArmSummary, Comparison
from wqlab_contracts.enums import Evidence, Role, Scale

from ..plain_text import NOTHING


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
