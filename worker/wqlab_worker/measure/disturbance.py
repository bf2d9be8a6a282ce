"""Measure how much the monitor changes a workload: monitored against plain repetitions of a boot. Pure functions.

Only A/A comparisons on hardware measure it, in the same boots, alternating. Monitored repetitions are not compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean

from wqlab_contracts.enums import TraceMode
from wqlab_contracts.specs import TestPlan

FACT_PREFIX = "monitor's effect "
METRIC_LIMIT = 4
"""Metrics of which a fact gives the difference, those with a verdict first."""


def effect_text(
    plan: TestPlan, plain: Sequence[Mapping[str, float]], monitored: Sequence[Mapping[str, float]]
) -> str | None:
    """Return the differences as in `bandwidth -0.31 %, iops -0.30 % (5 monitored, 5 plain repetitions)`.

    Both are values by metric of untraced repetitions of one cell and boot. None if nothing can be compared.
    """
    differences = []
    # Metrics with a role first; the sort keeps the plan's order.
    for metric in sorted(plan.metrics, key=lambda metric: metric.delta is None):
        without = [values[metric.name] for values in plain if metric.name in values]
        beside = [values[metric.name] for values in monitored if metric.name in values]
        if metric.taken_from is TraceMode.UNTRACED and without and beside and mean(without):
            change = 100 * (mean(beside) / mean(without) - 1)
            differences.append(f"{metric.name} {change:+.2f} %")
    if not differences:
        return None
    shown = ", ".join(differences[:METRIC_LIMIT])
    return f"{shown} ({len(monitored)} monitored, {len(plain)} plain repetitions)"
