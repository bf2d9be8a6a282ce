"""Metrics of instrumented devices: the same for every plan, since the emulator counts them and not the workload.

Modelled devices have the plan's own metrics before them, in virtual time.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..enums import Direction, MetricClass, Role, Scale, TraceMode
from .metrics import Metric

RELEVANT_INSTRUCTIONS_PERCENT = 0.2
RELEVANT_TRANSFERS_PERCENT = 5.0


def _metric(
    name: str,
    summary: str,
    unit: str,
    role: Role = Role.EXPLANATORY,
    *,
    direction: Direction = Direction.LOWER_IS_BETTER,
    delta: float | None = None,
) -> Metric:
    return Metric(
        name=name,
        summary=summary,
        unit=unit,
        scale=Scale.RATIO,
        direction=direction,
        metric_class=MetricClass.INSTRUMENTED,
        taken_from=TraceMode.UNTRACED,
        role_emulated=role,
        delta=delta,
    )


INSTRUMENTED_METRICS = (
    _metric(
        "kernel_instructions_per_op",
        "Instructions executed in the kernel, per operation of the workload",
        "instructions",
        Role.PRIMARY,
        delta=RELEVANT_INSTRUCTIONS_PERCENT,
    ),
    _metric(
        "instructions_per_op",
        "Instructions executed in kernel and user space, per operation",
        "instructions",
        Role.SECONDARY,
        delta=RELEVANT_INSTRUCTIONS_PERCENT,
    ),
    _metric(
        "transfers_across_l3_per_op",
        "Cache lines that moved between last-level cache domains, per operation",
        "transfers",
        Role.SECONDARY,
        delta=RELEVANT_TRANSFERS_PERCENT,
    ),
    _metric(
        "transfers_within_l3_per_op",
        "Cache lines that moved between CPUs of one last-level cache domain, per operation; it rises if transfers "
        "across domains become local, so neither direction is better",
        "transfers",
        Role.SECONDARY,
        direction=Direction.NONE,
        delta=RELEVANT_TRANSFERS_PERCENT,
    ),
    _metric(
        "transfers_across_nodes_per_op",
        "Cache lines that moved between NUMA nodes, per operation",
        "transfers",
    ),
    _metric(
        "pool_lock_transfers_per_op",
        "Transfers of the cache lines that have the lock of a worker pool, per operation; a line has fields beside it",
        "transfers",
    ),
    _metric("locked_per_op", "Atomic instructions (lock prefix, xchg, exclusive, LSE), per operation", "instructions"),
    _metric(
        "touched_instructions_per_op",
        "Instructions executed in the functions that the series changes, per operation",
        "instructions",
    ),
    _metric(
        "touched_transfers_per_op",
        "Cache lines taken by the functions that the series changes, per operation",
        "transfers",
    ),
)
"""Each is the count of a window, divided by its operations. None is a time."""


LEAST_MODELLED_PERCENT = 3.0
"""Smallest ratio that is judged of modelled figures: docs/model.md has a scope that moved by this much although the
kernels do not differ in it."""


def modelled_metrics(metrics: Sequence[Metric], modes: Collection[TraceMode]) -> list[Metric]:
    """Return a plan's metrics as modelled devices judge them: with their roles on hardware, in virtual time.

    Those of repetitions that are not run there, such as traced ones, are left out: `modes` are those that are.
    """
    of_model = {"metric_class": MetricClass.MODELLED, "emulator_delta": None}
    return [
        metric.model_copy(update={**of_model, "role_emulated": metric.role_hardware, "delta": _modelled_delta(metric)})
        for metric in metrics
        if metric.taken_from in modes
    ]


def _modelled_delta(metric: Metric) -> float | None:
    if metric.scale is not Scale.RATIO or metric.delta is None:
        return metric.delta
    return max(metric.delta, LEAST_MODELLED_PERCENT)


def counts_beside(own: Sequence[Metric]) -> list[Metric]:
    """Return the emulator's metrics beside those of a plan, of which one may be primary: then no count is."""
    if not any(metric.role_emulated is Role.PRIMARY for metric in own):
        return list(INSTRUMENTED_METRICS)
    secondary = {"role_emulated": Role.SECONDARY}
    return [
        metric.model_copy(update=secondary) if metric.role_emulated is Role.PRIMARY else metric
        for metric in INSTRUMENTED_METRICS
    ]
