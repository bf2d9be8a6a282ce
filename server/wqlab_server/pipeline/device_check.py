"""Advance a maintainer's device check: a health check, then a noise run.

A noise run boots one kernel ten times as two arms and compares the arms like any comparison; a difference is noise.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import datetime

import structlog
from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_comparison import ALPHA, LEAST_BLOCKS, boot_values, compare
from wqlab_comparison.block_order import block_plan
from wqlab_contracts.api.quotes import DetectableEffect
from wqlab_contracts.api.report import Comparison
from wqlab_contracts.enums import (
    DeviceHealth,
    DeviceStep,
    JobState,
    Outcome,
    Question,
    Role,
    RunPurpose,
    StepOutcome,
    TraceMode,
    Verdict,
)
from wqlab_contracts.loading import DataFolder
from wqlab_contracts.messages import CheckStep, Failure
from wqlab_contracts.specs import DeviceType, Metric, Profile, Repetitions, TestPlan

from ..comparisons.service import target_facts
from ..jobs.errors import infrastructure_failure
from ..jobs.state import change_state
from ..lab import checks, lease
from ..lab import service as lab_service
from ..models import Device, DeviceCheck, Run
from ..storage.db import clock
from ..submissions import detectable_effect, plan_runs
from ..views.samples_table import samples_of
from . import health_checks

log = structlog.get_logger(__name__)

BLOCKS = 5
"""Blocks of a noise run, with two boots each."""
REPETITIONS = 2
"""Most repetitions per boot, traced or untraced as the primary metric needs."""
_DIFFERENCE_VERDICTS = {Verdict.IMPROVEMENT, Verdict.REGRESSION, Verdict.BELOW_THRESHOLD}


def checks_to_advance(session: Session) -> Sequence[int]:
    """Return the ids of the unfinished device checks."""
    return session.scalars(
        select(DeviceCheck.id).where(DeviceCheck.finished_at.is_(None)).order_by(DeviceCheck.id)
    ).all()


def advance(session: Session, data: DataFolder, check_id: int) -> None:
    """Order the next run of the check when its previous run has finished; finish the check after the last run."""
    runs = session.execute(
        select(DeviceCheck.health_run_id, DeviceCheck.noise_run_id).where(DeviceCheck.id == check_id)
    ).one()
    # Lock order: runs before devices and checks.
    locked = {run.id: run for run in session.scalars(select(Run).where(Run.id.in_(runs)).with_for_update())}
    check = session.scalars(select(DeviceCheck).where(DeviceCheck.id == check_id).with_for_update()).one()
    device = session.get_one(Device, check.device_name)
    if check.finished_at is not None:
        return
    if check.health_run_id is None:
        _attach_health_check(session, data, check, device)
        return
    run = locked.get(check.noise_run_id or check.health_run_id)
    if run is None:  # another caller ordered the run since the ids were read
        return
    out_of_pool = device.health is DeviceHealth.QUARANTINED or device.retired_at is not None
    if out_of_pool and run.purpose is RunPurpose.NOISE and run.state is JobState.QUEUED:
        lease.finish_unclaimed(session, run, Outcome.CANCELED, lab_service.out_of_pool_failure(device))
    if run.state is not JobState.FINISHED or run.outcome is None:
        return
    if run.outcome is Outcome.PASSED and check.noise_run_id is None:
        if out_of_pool:
            checks.finish(session, check, Outcome.CANCELED, lab_service.out_of_pool_failure(device))
        else:
            _order_noise_run(session, data, check, device, run)
        return
    if run.outcome is Outcome.PASSED:
        check.steps = [*check.steps, evaluate_noise(session, run)]
    checks.finish(session, check, run.outcome, run.failure)


def _attach_health_check(session: Session, data: DataFolder, check: DeviceCheck, device: Device) -> None:
    """Attach an unclaimed health check run to the check, or order one.

    A running health check is not attached: it started before the check was requested.
    """
    run = session.scalar(
        select(Run)
        .where(
            Run.wanted_device == device.name,
            Run.purpose == RunPurpose.HEALTH_CHECK,
            Run.state.in_([JobState.WAITING, JobState.QUEUED]),
        )
        .limit(1)
    )
    if run is None:
        if not data.has_device_type(device.device_type) or device.retired_at is not None:
            check.outcome, check.failure = Outcome.CANCELED, lab_service.out_of_pool_failure(device)
            check.finished_at = clock(session)
            checks.notify_change(session, check)
            return
        run = health_checks.order_check(session, data, device.name)
    check.health_run_id = run.id
    checks.notify_change(session, check)


def _order_noise_run(session: Session, data: DataFolder, check: DeviceCheck, device: Device, health: Run) -> None:
    """Queue a noise run, or finish the check if no plan fits the device's type."""
    known = data.has_device_type(device.device_type)
    device_type = data.device_type(device.device_type) if known else None
    chosen = select_noise_plan(data, device_type) if device_type else None
    if device_type is None or chosen is None:
        reason = f"no plan has a primary metric for {device.device_type}"
        step = CheckStep(at=clock(session), step=DeviceStep.NOISE, outcome=StepOutcome.SKIPPED, text=reason)
        check.steps = [*check.steps, step]
        checks.finish(session, check, Outcome.PASSED, None)
        return
    plan, metric = chosen
    plan = plan.with_scenarios([plan.scenarios[0].name])
    seed = random.getrandbits(48)
    run = Run(
        submission_id=None,
        purpose=RunPurpose.NOISE,
        owner=check.by,
        priority=health_checks.HEALTH_CHECK_PRIORITY,
        seed=seed,
        blocks=block_plan(BLOCKS, series=True, seed=seed),
        profile=shorten_profile(plan.profile(device_type.emulated), metric, plan.reference_setting),
        wanted_device=device.name,
        baseline_build_id=health.baseline_build_id,
        candidate_build_id=health.baseline_build_id,
        **plan_runs.snapshot(data, device_type, plan),
    )
    session.add(run)
    session.flush()
    change_state(run, JobState.QUEUED)
    check.noise_run_id = run.id
    checks.notify_change(session, check)
    log.info("noise_run_ordered", device=device.name, run=run.id, plan=plan.name)


def select_noise_plan(data: DataFolder, device_type: DeviceType) -> tuple[TestPlan, Metric] | None:
    """Return a plan with a primary metric on the device type, and that metric.

    The type's own `noise_plan` is preferred, then the first plan by name. None if no plan has a primary metric. A plan
    with fragments of its own needs other kernels than the golden system's.
    """
    for _, plan in sorted(data.plans.items(), key=lambda item: (item[0] != device_type.noise_plan, item[0])):
        measured = plan.on(device_type)
        metric = detectable_effect.primary_metric(measured, device_type.emulated)
        if metric is not None and not plan.checks_health and not plan.fragments:
            return measured, metric
    return None


def shorten_profile(profile: Profile, metric: Metric, setting: str) -> Profile:
    """Return a profile with one setting, and only the repetitions that `metric` is measured in."""
    counts = profile.repetitions
    traced = metric.taken_from is TraceMode.TRACED
    return profile.model_copy(
        update={
            "settings": [setting],
            "blocks": BLOCKS,
            "repetitions": Repetitions(
                warmup=min(counts.warmup, 1),
                untraced=0 if traced else min(counts.untraced, REPETITIONS),
                traced=min(counts.traced, REPETITIONS) if traced else 0,
            ),
        }
    )


# --- evaluate the noise run -------------------------------------------------------------------------------------


def evaluate_noise(session: Session, run: Run) -> CheckStep:
    """Compare the two arms of a noise run, which are the same kernel.

    The step passes if no difference is seen, and its text gives the noise floor (the smallest detectable effect).
    """
    emulated = run.device_spec.emulated
    metric = detectable_effect.primary_metric(run.plan, emulated)
    samples = samples_of(session, run)
    comparisons = compare(samples, [target_facts(session, run)])
    comparison = next(
        (each for each in comparisons if each.role is Role.PRIMARY and each.question is Question.KERNEL), None
    )
    now = clock(session)
    if (
        metric is None
        or comparison is None
        or samples is None
        or comparison.baseline is None
        or comparison.candidate is None
    ):
        failure = infrastructure_failure(
            f"{run.plan_name} has no samples of its primary metric"
            + (f": {comparison.reason}" if comparison and comparison.reason else ""),
            advice=f"Look at the raw output and console of run {run.id}.",
        )
        return _failed_step(now, failure)
    planned = max(run.plan.profile(emulated).blocks, LEAST_BLOCKS)
    floor = detectable_effect.estimate(
        run.plan,
        metric,
        emulated=emulated,
        series=True,
        blocks=planned,
        past=[
            detectable_effect.PastValue(run.id, each.block, each.arm, each.scenario, each.setting, each.value)
            for each in boot_values(samples)
            if each.metric == metric.name
        ],
    )
    details = (
        f"{run.plan_name} {comparison.scenario}, {metric.name}: "
        f"{_describe_means(comparison)}; {_describe_noise_floor(floor, planned)}"
    )
    if _shows_difference(comparison):
        return _failed_step(
            now,
            infrastructure_failure(
                f"the two arms of the same kernel differ: {details}",
                advice=f"{ALPHA:.0%} of quiet devices fail this test by chance: check again. If the difference stays, "
                "look for drift (temperature, boost, governor, other work on the device) and for a setting that "
                "persists across boots.",
            ),
        )
    return CheckStep(at=now, step=DeviceStep.NOISE, outcome=StepOutcome.OK, text=f"no difference seen: {details}")


def _failed_step(now: datetime, failure: Failure) -> CheckStep:
    return CheckStep(at=now, step=DeviceStep.NOISE, outcome=StepOutcome.FAILED, text=failure.summary, failure=failure)


def _shows_difference(comparison: Comparison) -> bool:
    """Return True if the two arms differ.

    With five blocks only counts get a verdict, because no sign-flip test can reach significance; the t test alone
    decides here. A difference that is the same in every block has no noise to test against and counts as one.
    """
    if comparison.verdict in _DIFFERENCE_VERDICTS or (
        comparison.p_student is not None and comparison.p_student <= ALPHA
    ):
        return True
    return comparison.p_student is None and not comparison.exact and bool(comparison.effect)


def _describe_means(comparison: Comparison) -> str:
    baseline, candidate = comparison.baseline, comparison.candidate
    assert baseline and candidate  # noqa: S101 - checked by the caller
    means = f"{baseline.mean:.4g} and {candidate.mean:.4g} {comparison.unit} (n={baseline.n} each)"
    if comparison.exact or comparison.effect is None:
        return means
    p = "" if comparison.p_student is None else f", p {comparison.p_student:.2g}"
    return f"{means}, {comparison.effect:+.2g} {comparison.effect_unit}{p}"


def _describe_noise_floor(floor: DetectableEffect, blocks: int) -> str:
    if floor.exact:
        return f"noise floor 0: {floor.why}"
    if floor.effect is None:
        return f"noise floor unknown: {floor.why}"
    above = "" if floor.delta is None or floor.effect <= floor.delta else f", above its delta of {floor.delta:g}"
    return f"noise floor {floor.effect:.2g} {floor.effect_unit} with {blocks} blocks{above}"
