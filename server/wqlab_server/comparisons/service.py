"""Compare a submission's samples with `wqlab_comparison`, and store the comparisons and boot values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import delete, insert, select
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.orm import Session

from wqlab_comparison import Samples, TargetFacts, boot_values, compare
from wqlab_comparison.exercised import lines_of_boots, why_not_exercised
from wqlab_comparison.runs import facts_of_run
from wqlab_contracts.api.report import UnsupportedView
from wqlab_contracts.enums import PAIR, MetricClass, RunPurpose
from wqlab_contracts.specs import Validation, why_withheld
from wqlab_contracts.specs.validation import FACT as COST_PROFILE

from ..estimates.noise_floors import noise_floors
from ..models import Apply, BlockAttempt, Boot, BootValue, Comparison, Run, Unsupported
from ..storage.db import clock
from ..views.conclusion import recorded_run
from ..views.samples_table import samples_of

_BATCH = 5_000


def store(session: Session, submission_id: int, validations: Sequence[Validation] = ()) -> list[Comparison]:
    """Compare all targets of the submission together, because they share the families of tests, and store the result.

    `validations`: what modelled verdicts are stated for; all others are withheld.

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
    comparisons = compare(
        Samples.concatenate(kept) if kept else None, [target_facts(session, run, validations) for run in measured]
    )
    by_target = {(run.plan_name, run.device_type): run.id for run in measured}
    rows = [
        Comparison(
            run_id=by_target[each.plan, each.device_type],
            position=position,
            patch=each.patch,
            question=each.question,
            role=each.role,
            verdict=each.verdict,
            data=each,
        )
        for position, each in enumerate(comparisons)
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


def target_facts(session: Session, run: Run, validations: Sequence[Validation] | None = None) -> TargetFacts:
    """Return what the run was to measure, and the known reasons for missing measurements.

    Without `validations`, modelled figures are judged as if the model was validated for all of them.
    """
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
    recorded = replace(recorded_run(run), not_exercised=_not_exercised(session, run))
    if run.plan.is_modelled:
        recorded = replace(
            recorded, not_validated=_not_validated(session, run, validations), floors=_floors(session, run)
        )
    return facts_of_run(
        recorded,
        discards,
        [
            UnsupportedView(scenario=scenario, setting=setting, metric=metric, arm=arm, cause=cause, reason=reason)
            for scenario, setting, metric, arm, cause, reason in unsupported
        ],
    )


def _not_exercised(session: Session, run: Run) -> str:
    """Return the reason for the verdict `not_exercised`; empty if a line ran, or boots do not report lines."""
    boots = session.scalars(select(Boot.ran).where(Boot.run_id == run.id, Boot.valid, Boot.arm.in_(PAIR)))
    if not (lines := lines_of_boots(boots)):
        return ""
    result = session.scalar(select(Apply.result).where(Apply.submission_id == run.submission_id))
    return why_not_exercised(lines, {each.arm for each in result.changed} if result else set())


def _not_validated(session: Session, run: Run, validations: Sequence[Validation] | None) -> dict[str, str]:
    """Return modelled metric -> why its verdicts are withheld, by the cost profiles that the valid boots report."""
    boots = session.scalars(select(Boot.environment).where(Boot.run_id == run.id, Boot.valid))
    facts = {environment[COST_PROFILE] for environment in boots if COST_PROFILE in environment}
    return {
        metric.name: "" if validations is None else why_withheld(validations, facts, run.plan_name, metric.name)
        for metric in run.plan.metrics
        if metric.metric_class is MetricClass.MODELLED
    }


def _floors(session: Session, run: Run) -> dict[tuple[str, str, str], float]:
    floors = noise_floors(session, run.plan_name, run.device_type, run.profile)
    return {(each.scenario, each.setting, each.metric): each.floor for each in floors}


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
