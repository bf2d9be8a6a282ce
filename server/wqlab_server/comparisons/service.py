"""Compare a submission's samples with `wqlab_comparison`, and store the comparisons and boot values."""

from __future__ import annotations

from sqlalchemy import delete, insert, select
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.orm import Session

from wqlab_comparison import Samples, TargetFacts, boot_values, compare
from wqlab_comparison.runs import facts_of_run
from wqlab_contracts.api.report import UnsupportedView
from wqlab_contracts.enums import PAIR, RunPurpose

from ..models import BlockAttempt, Boot, BootValue, Comparison, Run, Unsupported
from ..storage.db import clock
from ..views.conclusion import recorded_run
from ..views.samples_table import samples_of

_BATCH = 5_000


def store(session: Session, submission_id: int) -> list[Comparison]:
    """Compare all targets of the submission together, because they share the families of tests, and store the result.

    Runs of recipes with `figures: false` (debug kernels) are left out, because their boots give findings only, and runs
    of byte-identical kernels, which have no boots. Rows stored before are replaced. Raises SamplesError if the samples
    are inconsistent.
    """
    runs = session.scalars(
        select(Run)
        .where(Run.submission_id == submission_id, Run.purpose == RunPurpose.MEASURE)
        .order_by(Run.target, Run.id)
    ).all()
    measured = [run for run in runs if run.recipe.figures and not run.byte_identical]
    run_ids = [run.id for run in runs]
    session.execute(delete(Comparison).where(Comparison.run_id.in_(run_ids)))
    session.execute(delete(BootValue).where(BootValue.run_id.in_(run_ids)))
    tables = {run.id: samples_of(session, run) for run in measured}
    kept = [table for table in tables.values() if table is not None]
    comparisons = compare(Samples.concatenate(kept) if kept else None, [target_facts(session, run) for run in measured])
    by_target = {(run.plan_name, run.device_type): run.id for run in measured}
    for run in measured:
        run.rung_comparisons = [
            each
            for each in comparisons
            if each.patch is not None and (each.plan, each.device_type) == (run.plan_name, run.device_type)
        ]
    rows = [
        Comparison(
            run_id=by_target[each.plan, each.device_type],
            position=position,
            question=each.question,
            role=each.role,
            verdict=each.verdict,
            data=each,
        )
        for position, each in enumerate(each for each in comparisons if each.patch is None)
    ]
    session.add_all(rows)
    for run_id, table in tables.items():
        if table is not None:
            _store_values(session, run_id, table)
    now = clock(session)
    for run in runs:
        run.compared_at = now
    session.flush()
    return rows


def store_boot_values(session: Session, run: Run) -> None:
    """Store the value of each boot of a run that belongs to no submission."""
    samples = samples_of(session, run)
    if samples is not None:
        _store_values(session, run.id, samples)


def target_facts(session: Session, run: Run) -> TargetFacts:
    """Return what the run was to measure, and the known reasons for missing measurements."""
    unsupported = session.execute(
        select(
            Unsupported.scenario,
            Unsupported.setting,
            Unsupported.metric,
            Unsupported.arm,
            Unsupported.cause,
            Unsupported.reason,
        )
        .ext(distinct_on(Unsupported.scenario, Unsupported.setting, Unsupported.metric, Unsupported.arm))
        .join(Boot, Boot.id == Unsupported.boot_id)
        .where(Unsupported.run_id == run.id)
        .order_by(Unsupported.scenario, Unsupported.setting, Unsupported.metric, Unsupported.arm, Unsupported.reason)
    ).all()
    discards = session.scalars(
        select(BlockAttempt.arm).where(BlockAttempt.run_id == run.id, BlockAttempt.finished.is_(False))
    )
    return facts_of_run(
        recorded_run(run),
        discards,
        [
            UnsupportedView(scenario=scenario, setting=setting, metric=metric, arm=arm, cause=cause, reason=reason)
            for scenario, setting, metric, arm, cause, reason in unsupported
        ],
    )


def _store_values(session: Session, run_id: int, samples: Samples) -> None:
    boots = {
        (block, arm): boot_id
        for boot_id, block, arm in session.execute(
            select(Boot.id, Boot.block, Boot.arm).where(Boot.run_id == run_id, Boot.valid)
        )
    }
    rows = [
        {
            "run_id": run_id,
            "boot_id": boots[value.block, value.arm],
            "scenario": value.scenario,
            "setting": value.setting,
            "metric": value.metric,
            "value": value.value,
        }
        for value in boot_values(samples)
        if value.arm in PAIR
    ]
    for start in range(0, len(rows), _BATCH):
        session.execute(insert(BootValue), rows[start : start + _BATCH])
