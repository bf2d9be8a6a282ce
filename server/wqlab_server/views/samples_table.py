"""Load a run's samples as the table that comparisons, exports and figures are calculated from."""

from __future__ import annotations

from itertools import islice

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_comparison import Samples
from wqlab_contracts.specs import Metric

from ..models import Boot, Run, Sample


def samples_of(session: Session, run: Run) -> Samples | None:
    """Return all samples of the run's valid boots in boot order, or None if there are none.

    Metrics are described as in the run's own copy of its plan; samples of metrics that the plan does not define are
    left out. Columns are read in batches, since a run may have a million samples.
    """
    emulated = run.device_spec.emulated
    boots = {
        boot_id: (block, position, arm, device)
        for boot_id, block, position, arm, device in session.execute(
            select(Boot.id, Boot.block, Boot.position, Boot.arm, Boot.device_name).where(
                Boot.run_id == run.id, Boot.valid
            )
        )
    }
    metrics = {metric.name: metric for metric in run.plan.metrics}
    rows = session.execute(
        select(
            Sample.boot_id,
            Sample.scenario,
            Sample.setting,
            Sample.repetition,
            Sample.metric,
            Sample.value,
            Sample.warmup,
        )
        .join(Boot, Boot.id == Sample.boot_id)
        .where(Sample.run_id == run.id, Boot.valid, Sample.metric.in_(metrics))
        .order_by(Sample.boot_id, Sample.scenario, Sample.setting, Sample.metric, Sample.repetition)
        .execution_options(yield_per=50_000)
    )
    columns: list[list[object]] = [[] for _ in range(7)]
    iterator = iter(rows)
    while batch := list(islice(iterator, 50_000)):
        for column, values in zip(columns, zip(*batch, strict=True), strict=True):
            column.extend(values)
    boot_ids, scenario, setting, repetition, metric, value, warmup = columns
    if not value:
        return None
    boot_of_sample = [boots[boot_id] for boot_id in boot_ids]  # type: ignore[index]
    specs = [metrics[name] for name in metric]  # type: ignore[index]
    return Samples.from_columns(
        device_type=run.device_type,
        device=[device for _, _, _, device in boot_of_sample],
        plan=run.plan_name,
        scenario=scenario,
        setting=setting,
        block=np.array([block for block, _, _, _ in boot_of_sample]),
        position=np.array([position for _, position, _, _ in boot_of_sample]),
        arm=[arm.value for _, _, arm, _ in boot_of_sample],
        boot=boot_ids,
        repetition=np.array(repetition),
        warmup=np.array(warmup, dtype=np.bool_),
        metric=metric,
        unit=[spec.unit for spec in specs],
        scale=[spec.scale.value for spec in specs],
        direction=[spec.direction.value for spec in specs],
        role=[spec.role(emulated).value for spec in specs],
        evidence=[spec.evidence(emulated).value for spec in specs],
        delta=[_delta(spec) for spec in specs],
        value=np.array(value, dtype=np.float64),
    )


def _delta(metric: Metric) -> str:
    return "" if metric.delta is None else repr(metric.delta)
