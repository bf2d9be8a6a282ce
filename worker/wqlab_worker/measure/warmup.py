"""Judge by the figures of a cell's warm-up repetitions whether they have become stable. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wqlab_contracts.enums import MetricClass, Role, Scale, TraceMode
from wqlab_contracts.specs import TestPlan

FACT_PREFIX = "warm-up "
_TIMED = frozenset({MetricClass.PERFORMANCE, MetricClass.MODELLED})
MOST_CHANGE = 0.02
"""Largest change between two stable repetitions, relative to their mean. Georges, Buytaert and Eeckhout, "Statistically
Rigorous Java Performance Evaluation", OOPSLA 2007, take 2 % as the bound of the variation in a steady state."""


def is_stable(plan: TestPlan, warmups: Sequence[Mapping[str, float]]) -> bool:
    """Return True if no primary figure changed by more than MOST_CHANGE between the last two warm-up repetitions.

    `warmups` has the values by metric of each repetition so far. A plan without a timed primary metric has nothing to
    judge: its warm-ups are stable.
    """
    return len(warmups) > 1 and all(change <= MOST_CHANGE for change in _changes(plan, warmups).values())


def stability_text(plan: TestPlan, warmups: Sequence[Mapping[str, float]]) -> str:
    """Return how the warm-up of a cell ended, as in `stable after 3 repetitions: bandwidth 0.4 %`."""
    verdict = "stable" if is_stable(plan, warmups) else "not stable"
    last = ", ".join(f"{name} {100 * change:.1f} %" for name, change in _changes(plan, warmups).items())
    return f"{verdict} after {len(warmups)} repetitions: {last or 'no timed primary metric'}"


def _changes(plan: TestPlan, warmups: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the relative changes between the last two repetitions, by metric."""
    if len(warmups) < 2:
        return {}
    before, last = warmups[-2:]
    found = {}
    for metric in plan.metrics:
        timed = metric.metric_class in _TIMED and metric.scale is Scale.RATIO
        if not timed or metric.role_hardware is not Role.PRIMARY or metric.taken_from is not TraceMode.UNTRACED:
            continue
        if metric.name in before and metric.name in last and (total := before[metric.name] + last[metric.name]):
            found[metric.name] = 2 * abs(last[metric.name] - before[metric.name]) / total
    return found
