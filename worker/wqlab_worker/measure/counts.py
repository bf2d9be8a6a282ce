"""Divide what an instrumented device counted in a window by the operations of the workload that ran in it.

A modelled device has the plan's own metrics beside these counts, from the script's output.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import replace

from wqlab_contracts.enums import MetricClass, NotMeasuredCause
from wqlab_contracts.messages import MeasuredTopology
from wqlab_contracts.specs import TestPlan

from . import parsers
from .collect import Measurement, NotMeasured, Operations, Records, Unsupported, collect, read_records

PER_OPERATION = "_per_op"
POOL_LOCKS = "pool_lock_transfers_per_op"


def operations(records: Records, plan: TestPlan) -> Operations:
    """Return the operations of one repetition by which the plan's counts are divided.

    Raises NotMeasured if the parser counts none, or the workload completed none.
    """
    module = importlib.import_module(f"{parsers.__name__}.{plan.parser}")
    count = getattr(module, "operations", None)
    if count is None:
        raise NotMeasured(f"parser {plan.parser} of plan {plan.name} counts no operations")
    found: Mapping[str, Operations] = count(records)
    name = plan.operations or next(iter(found), "")
    if name not in found:
        raise NotMeasured(f"parser {plan.parser} counts {', '.join(found) or 'nothing'}, not {name or 'operations'}")
    if found[name].number < 1:
        raise NotMeasured(f"the workload completed no {found[name].unit}")
    return found[name]


def collect_counts(
    text: str,
    plan: TestPlan,
    topology: MeasuredTopology,
    counts: Mapping[str, int] | None,
    traced: bool = False,
    *,
    setting: str,
) -> Measurement:
    """Turn the script's output and the counts of its window into a measurement.

    `counts` has the count of each metric, without its ending `_per_op`; None if the script marked no window. A traced
    repetition, which only modelled devices have, has metrics of the plan only.
    """
    own = [metric for metric in plan.metrics if metric.metric_class is not MetricClass.INSTRUMENTED]
    found = collect(text, plan.parser, plan.model_copy(update={"metrics": own}), topology, traced, setting=setting)
    if found.failure or any(metric is None for metric, _ in found.unsupported):
        unsupported = [each for each in found.unsupported if each[0] is None]
        return replace(found, values={}, unsupported=unsupported, empty=frozenset())
    known = {metric.name for metric in own}
    values = {name: value for name, value in found.values.items() if name in known}
    lacking = [each for each in found.unsupported if each[0] in known]
    counted, uncounted = ({}, []) if traced else _counts(text, plan, counts)
    empty = frozenset(known & found.empty)
    return replace(found, values=values | counted, unsupported=lacking + uncounted, empty=empty)


def _counts(
    text: str, plan: TestPlan, counts: Mapping[str, int] | None
) -> tuple[dict[str, float], list[tuple[str | None, Unsupported]]]:
    """Return the counts for each operation by metric, and why others are missing."""
    names = [metric.name for metric in plan.metrics if metric.metric_class is MetricClass.INSTRUMENTED]
    if counts is None:
        reason = Unsupported(f"plan {plan.name} marks no window, so nothing is counted")
        return {}, [(name, reason) for name in names]
    try:
        divisor = operations(read_records(text), plan).number
    except NotMeasured as error:
        reason = Unsupported(str(error), NotMeasuredCause.NO_SAMPLES)
        return {}, [(name, reason) for name in names]
    values = {name: counts[count] / divisor for name in names if (count := name.removesuffix(PER_OPERATION)) in counts}
    return values, [(name, _why_absent(name)) for name in names if name not in values]


def _why_absent(name: str) -> Unsupported:
    """Return why a window has no count of this metric; all other counts are in every window."""
    reason = "the series changes no function whose name is known"
    if name == POOL_LOCKS:
        reason = "the kernel's debug information does not tell where its worker pools are"
    return Unsupported(reason, NotMeasuredCause.NO_SAMPLES)
