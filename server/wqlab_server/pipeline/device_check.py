"""A maintainer's check of a device, from step to step: its health check, then ten boots of the same kernel called two
arms, which the lab compares as it compares everything. What it finds there is noise."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import datetime

import structlog
from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_comparison import ALPHA, LEAST_BLOCKS, boot_values, compare
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
    Scale,
    StepOutcome,
    TraceMode,
    Verdict,
)
from wqlab_contracts.loading import DataFolder
from wqlab_contracts.messages import CheckStep, Failure
from wqlab_contracts.specs import DeviceType, Metric, Profile, Repetitions, TestPlan

from ..comparisons.service import target_facts
from ..jobs.errors import infrastructure
from ..jobs.state import move
from ..lab import checks, lease
from ..lab import service as lab
from ..models import Device, DeviceCheck, Run
from ..storage.db import clock
from ..submissions import detectable
from ..submissions import service as submissions
from ..views.samples_table import samples_of
from . import health_checks

log = structlog.get_logger(__name__)

BLOCKS = 5
"""Two boots each."""
REPETITIONS = 2
"""Of the kind that the primary metric is taken from; fewer where the plan has fewer."""
_DIFFERS = {Verdict.IMPROVEMENT, Verdict.REGRESSION, Verdict.BELOW_THRESHOLD}


def to_advance(session: Session) -> Sequence[int]:
    return session.scalars(
        select(DeviceCheck.id).where(DeviceCheck.finished_at.is_(None)).order_by(DeviceCheck.id)
    ).all()


def advance(session: Session, data: DataFolder, check_id: int) -> None:
    """Orders what comes next, once what was before has ended; ends the check when nothing does."""
    runs = session.execute(
        select(DeviceCheck.health_run_id, DeviceCheck.noise_run_id).where(DeviceCheck.id == check_id)
    ).one()
    # Runs before devices and checks, as everywhere.
    locked = {run.id: run for run in session.scalars(select(Run).where(Run.id.in_(runs)).with_for_update())}
    check = session.scalars(select(DeviceCheck).where(DeviceCheck.id == check_id).with_for_update()).one()
    device = session.get_one(Device, check.device_name)
    if check.finished_at is not None:
        return
    if check.health_run_id is None:
        _order_health_check(session, data, check, device)
        return
    run = locked.get(check.noise_run_id or check.health_run_id)
    if run is None:  # ordered a moment ago by another round
        return
    gone = device.health is DeviceHealth.QUARANTINED or device.retired_at is not None
    if gone and run.purpose is RunPurpose.NOISE and run.state is JobState.QUEUED:
        lease.end_unclaimed(session, run, Outcome.CANCELED, lab.uncheckable(device))
    if run.state is not JobState.FINISHED or run.outcome is None:
        return
    if run.outcome is Outcome.PASSED and check.noise_run_id is None:
        if gone:
            checks.end(session, check, run, Outcome.CANCELED, lab.uncheckable(device))
        else:
            _order_noise(session, data, check, device, run)
        return
    if run.outcome is Outcome.PASSED:
        run.steps = [noise(session, run)]
    checks.end(session, check, run, run.outcome, run.failure)


def _order_health_check(session: Session, data: DataFolder, check: DeviceCheck, device: Device) -> None:
    """One that nobody has begun yet takes the check's first steps; one under way began before anybody asked."""
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
        if device.device_type not in data.device_types or device.retired_at is not None:
            check.outcome, check.failure = Outcome.CANCELED, lab.uncheckable(device)
            check.finished_at = clock(session)
            checks.told(session, check)
            return
        run = health_checks.order(session, data, device.name)
    check.health_run_id = run.id
    checks.told(session, check)


def _order_noise(session: Session, data: DataFolder, check: DeviceCheck, device: Device, health: Run) -> None:
    device_type = data.device_types.get(device.device_type)
    chosen = noise_plan(data, device_type) if device_type else None
    if device_type is None or chosen is None:
        why = f"no plan has a primary metric for {device.device_type}"
        step = CheckStep(at=clock(session), step=DeviceStep.NOISE, outcome=StepOutcome.SKIPPED, text=why)
        health.steps = [*health.steps, step]
        checks.end(session, check, health, Outcome.PASSED, None)
        return
    plan, metric = chosen
    plan = plan.narrowed([plan.scenarios[0].name])
    seed = random.getrandbits(48)
    run = Run(
        submission_id=None,
        purpose=RunPurpose.NOISE,
        owner=check.by,
        priority=health_checks.HEALTH_CHECK_PRIORITY,
        seed=seed,
        blocks=submissions.block_plan(BLOCKS, series=True, seed=seed),
        profile=shortened(plan.profile(device_type.emulated), metric, plan.reference_setting),
        wanted_device=device.name,
        baseline_build_id=health.baseline_build_id,
        candidate_build_id=health.baseline_build_id,
        **submissions.snapshot(data, device_type, plan),
    )
    session.add(run)
    session.flush()
    move(run, JobState.QUEUED)
    check.noise_run_id = run.id
    checks.told(session, check)
    log.info("noise_ordered", device=device.name, run=run.id, plan=plan.name)


def noise_plan(data: DataFolder, device_type: DeviceType) -> tuple[TestPlan, Metric] | None:
    """The type's own, else the first by name, of the plans that make verdicts on such a device; and the metric it makes
    them by."""
    for _, plan in sorted(data.plans.items(), key=lambda item: (item[0] != device_type.noise_plan, item[0])):
        if not plan.checks_health and (metric := detectable.primary(plan, device_type.emulated)):
            return plan, metric
    return None


def shortened(profile: Profile, metric: Metric, setting: str) -> Profile:
    """One setting, and only the repetitions that `metric` is taken from."""
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


# --- what the boots say -----------------------------------------------------------------------------------------


def noise(session: Session, run: Run) -> CheckStep:
    """What the lab sees between two arms that are one kernel: nothing, and how much it could have seen."""
    emulated = run.device_spec.emulated
    metric = detectable.primary(run.plan, emulated)
    samples = samples_of(session, run)
    found = compare(samples, [target_facts(session, run)])
    figure = next((each for each in found if each.role is Role.PRIMARY and each.question is Question.KERNEL), None)
    now = clock(session)
    if metric is None or figure is None or samples is None or figure.baseline is None or figure.candidate is None:
        failure = infrastructure(
            f"{run.plan_name} measured nothing that its primary metric is made of"
            + (f": {figure.reason}" if figure and figure.reason else ""),
            advice=f"Look at the raw output and console of run {run.id}.",
        )
        return _failed(now, failure)
    planned = max(run.plan.profile(emulated).blocks, LEAST_BLOCKS)
    floor = detectable.detectable(
        run.plan,
        metric,
        emulated=emulated,
        series=True,
        blocks=planned,
        past=[
            detectable.PastValue(run.id, each.block, each.arm, each.scenario, each.setting, each.value)
            for each in boot_values(samples)
            if each.metric == metric.name
        ],
    )
    said = f"{run.plan_name} {figure.scenario}, {metric.name}: {_figures(figure)}; {_floor(floor, planned)}"
    if _sees_a_difference(figure):
        return _failed(
            now,
            infrastructure(
                f"the lab sees a difference between two arms of the same kernel: {said}",
                advice=f"{ALPHA:.0%} of quiet devices do this by chance: check again. If it stays, look for drift "
                "(temperature, boost, governor, something else at work on the device) and for a setting that outlives "
                "the boot.",
            ),
        )
    return CheckStep(at=now, step=DeviceStep.NOISE, outcome=StepOutcome.OK, text=f"no difference seen: {said}")


def _failed(now: datetime, failure: Failure) -> CheckStep:
    return CheckStep(at=now, step=DeviceStep.NOISE, outcome=StepOutcome.FAILED, text=failure.summary, failure=failure)


def _sees_a_difference(figure: Comparison) -> bool:
    """Five blocks make no verdict but about counts, because no sign-flip test can agree; here the t test speaks alone.
    So does a difference that is the same in every block: there is no noise to test it against."""
    if figure.verdict in _DIFFERS or (figure.p is not None and figure.p <= ALPHA):
        return True
    return figure.p is None and not figure.exact and bool(figure.effect)


def _figures(figure: Comparison) -> str:
    assert figure.baseline and figure.candidate  # noqa: S101 - the caller looked
    means = f"{figure.baseline.mean:.4g} and {figure.candidate.mean:.4g} {figure.unit} (n={figure.baseline.n} each)"
    if figure.exact or figure.effect is None:
        return means
    p = "" if figure.p is None else f", p {figure.p:.2g}"
    return f"{means}, {figure.effect:+.2g} {_unit(figure.scale, figure.unit)}{p}"


def _unit(scale: Scale, unit: str) -> str:
    return "%" if scale is Scale.RATIO else "points" if unit in {"%", "percent"} else unit


def _floor(floor: DetectableEffect, blocks: int) -> str:
    if floor.exact:
        return f"noise floor 0: {floor.why}"
    if floor.effect is None:
        return f"noise floor not known: {floor.why}"
    unit = _unit(floor.scale, floor.unit)
    enough = "" if floor.delta is None or floor.effect <= floor.delta else f", more than its delta of {floor.delta:g}"
    return f"noise floor {floor.effect:.2g} {unit} with {blocks} blocks{enough}"
