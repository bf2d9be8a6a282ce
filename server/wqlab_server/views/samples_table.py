"""Load a run's samples as the table that comparisons, exports and figures are calculated from."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_comparison import Samples
from wqlab_contracts.enums import Arm

from ..models import Boot, Run, Sample

ROWS_PER_READ = 50_000
_Boots = dict[int, tuple[int, int, Arm, str]]
"""Id of a valid boot -> block, position, arm, device."""


def samples_of(session: Session, run: Run, blocks: int | None = None) -> Samples | None:
    """Return all samples of the run's valid boots in boot order, or None if there are none.

    `blocks`: only those of its first blocks.

    Metrics are described as in the run's own copy of its plan; samples of metrics that the plan does not define are
    left out. Columns are read in batches, since a run may have a million samples.
    """
    columns: list[list[Any]] = [[] for _ in range(7)]
    for rows in _read(session, run):
        for column, values in zip(columns, zip(*rows, strict=True), strict=True):
            column.extend(values)
    if not columns[0]:
        return None
    table = _table(run, _valid_boots(session, run), columns)
    if blocks is None:
        return table
    kept = table.block < blocks
    return table.take(kept) if kept.any() else None


def sample_tables(session: Session, run: Run) -> Iterator[Samples]:
    """Yield the same samples in the same order, as tables of at most ROWS_PER_READ rows."""
    boots = _valid_boots(session, run)
    for rows in _read(session, run):
        yield _table(run, boots, list(zip(*rows, strict=True)))


def _valid_boots(session: Session, run: Run) -> _Boots:
    return {
        boot_id: (block, position, arm, device)
        for boot_id, block, position, arm, device in session.execute(
            select(Boot.id, Boot.block, Boot.position, Boot.arm, Boot.device_name).where(
                Boot.run_id == run.id, Boot.valid
            )
        )
    }


def _read(session: Session, run: Run) -> Iterator[Sequence[Sequence[Any]]]:
    """Yield the rows of samples, without empty sequences."""
    query = (
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
        .where(Sample.run_id == run.id, Boot.valid, Sample.metric.in_([metric.name for metric in run.plan.metrics]))
        .order_by(Sample.boot_id, Sample.scenario, Sample.setting, Sample.metric, Sample.repetition)
        .execution_options(yield_per=ROWS_PER_READ)
    )
    yield from session.execute(query).partitions()


def _table(run: Run, boots: _Boots, columns: Sequence[Sequence[Any]]) -> Samples:
    emulated = run.device_spec.emulated
    metrics = {metric.name: metric for metric in run.plan.metrics}
    boot_ids, scenario, setting, repetition, metric, value, warmup = columns
    boot_of_sample = [boots[boot_id] for boot_id in boot_ids]
    specs = [metrics[name] for name in metric]
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
        delta=[_text(spec.delta) for spec in specs],
        emulator_delta=[_text(spec.emulator_delta if emulated else None) for spec in specs],
        value=np.array(value, dtype=np.float64),
    )


def samples_csv(session: Session, run: Run, boot: Boot) -> str:
    """Return the samples of one boot, valid or not, as rows of `wqlab_comparison.csvfile`, without the header.

    The rows of all valid boots in the order of their ids are those that `csvfile.write_csv` writes for `samples_of`.
    """
    emulated = run.device_spec.emulated
    metrics = {
        metric.name: (
            metric.name,
            metric.unit,
            metric.scale.value,
            metric.direction.value,
            metric.role(emulated).value,
            metric.evidence(emulated).value,
            _text(metric.delta),
            _text(metric.emulator_delta if emulated else None),
        )
        for metric in run.plan.metrics
    }
    rows = session.execute(
        select(Sample.scenario, Sample.setting, Sample.repetition, Sample.warmup, Sample.metric, Sample.value)
        .where(Sample.boot_id == boot.id, Sample.metric.in_(metrics))
        .order_by(Sample.scenario, Sample.setting, Sample.metric, Sample.repetition)
    )
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(
        (
            *(run.device_type, boot.device_name, run.plan_name, scenario, setting),
            *(boot.block, boot.position, boot.arm.value, boot.id, repetition, int(warmup)),
            *(*metrics[metric], repr(value)),
        )
        for scenario, setting, repetition, warmup, metric, value in rows
    )
    return text.getvalue()


def _text(delta: float | None) -> str:
    return "" if delta is None else repr(delta)
