"""Which comparisons traced boots are made for, and why a run gets none. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from wqlab_comparison import LEAST_BLOCKS
from wqlab_contracts.api.report import Comparison
from wqlab_contracts.api.submissions import RequestOptions
from wqlab_contracts.enums import Role, Verdict
from wqlab_contracts.specs import Backend

TRACER = "tracer.sh"
"""File of a plan that counts while the plan's script runs; a data folder may lack it."""
TRACED_BLOCKS = LEAST_BLOCKS
"""Blocks of traced boots: the fewest that can show a difference, as one family."""
MOST_COMPARISONS = 3
"""Primary comparisons of a run that are explained."""
_DIFFERS = frozenset({Verdict.IMPROVEMENT, Verdict.REGRESSION})


def differing(comparisons: Iterable[Comparison]) -> list[Comparison]:
    """Return the primary comparisons that found a difference, in the report's order, at most MOST_COMPARISONS."""
    found = [each for each in comparisons if each.role is Role.PRIMARY and each.verdict in _DIFFERS]
    return found[:MOST_COMPARISONS]


def why_not_traced(
    request: RequestOptions, files: Collection[str], backend: Backend | None, *, figures: bool = True
) -> str:
    """Return why a run that finds a difference gets no traced boots; empty if it gets them."""
    if not figures:
        return "the recipe gives no figures"
    if backend == "instrumented":
        return "an instrumented device counts in each boot"
    if not request.trace:
        return "the submission asks for no traced boots"
    if backend != "labgrid":
        return f"traced boots are made on labgrid devices, not on {backend or 'an unknown device'}"
    if TRACER not in files:
        return f"the plan has no {TRACER}"
    return ""
