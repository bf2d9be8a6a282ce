"""Run canaries on idle devices: start them, stop those that are in the way, and read what they show.

A canary is a run without a submission that boots one kernel as two arms, like a submission whose patches change
nothing. Decision 47 says when it may run.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

import structlog
from sqlalchemy import func, select, type_coerce
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Session

from wqlab_comparison import LEAST_BLOCKS
from wqlab_comparison.canary_words import jump_text
from wqlab_comparison.floor_jumps import find_jump
from wqlab_contracts.api.canaries import FloorJump
from wqlab_contracts.enums import CanaryKind, DeviceHealth, JobState, Outcome, Role, RunPurpose, SubmissionState
from wqlab_contracts.loading import DataError, DataFolder
from wqlab_contracts.specs import DeviceType, TestPlan
from wqlab_contracts.units import effect_unit

from ..comparisons.service import store_boot_values
from ..estimates import canaries as records
from ..estimates.lab_snapshot import lab_capacities, published_pools
from ..estimates.lava_pools import availability
from ..jobs.errors import canceled_failure
from ..jobs.state import change_state
from ..lab import allocate, health, lease
from ..lab import canaries as choice
from ..lab import service as lab_service
from ..models import Build, Device, Lease, Run, RunAttempt, Submission, SubmissionBuild
from ..runs import service as runs
from ..settings import Settings
from ..storage.db import SessionFactory, clock, fetch_dict, transaction
from ..storage.live_data import LiveData
from ..submissions import detectable_effect, plan_runs
from .device_check import select_noise_plan
from .tick_errors import isolate_errors

if TYPE_CHECKING:
    from .assign_devices import Pool

log = structlog.get_logger(__name__)

LONGEST = timedelta(days=1)
"""Time after which a canary that was interrupted again and again is dropped."""
USED_WITHIN = timedelta(days=90)
"""Time within which a plan must have been measured on the device type to have canaries."""
_RETRY_AFTER_S = 3600.0
"""Time without canaries on a device after one failed."""
_DAY = timedelta(days=1)
_OWNER = "lab"


# --- give way -----------------------------------------------------------------------------------------------------


def runs_in_the_way(session: Session, pool: Pool, assigned: Sequence[allocate.Assignment]) -> list[int]:
    """Return the ids of the canaries that have to stop now, in ascending order."""
    stopped = choice.in_the_way(
        pool.devices,
        pool.held,
        canaries=pool.canaries,
        waiting=pool.waiting,
        capacity=pool.capacity,
        assigned=assigned,
    )
    if not _is_lab_idle(session):
        stopped |= set(
            session.scalars(
                select(Run.wanted_device).where(
                    Run.id.in_(pool.canaries.values()),
                    type_coerce(Run.device_spec, JSONB)["emulation"].astext.is_not(None),
                )
            )
        )
    return sorted(run_id for device, run_id in pool.canaries.items() if device in stopped)


def stop(session: Session, run_id: int) -> None:
    """Withdraw the offer of a canary, or ask its worker to stop; finished blocks are kept."""
    run = runs.lock_run(session, run_id)
    if run.state is JobState.RUNNING and run.cancel_requested_at is None:
        run.cancel_requested_at = clock(session)
        log.info("canary_stopped", run=run.id, device=run.device_name)
    elif run.state is JobState.QUEUED:
        offer = session.scalar(select(Lease).where(Lease.run_id == run.id, Lease.holder == "").with_for_update())
        if offer is not None:
            session.delete(offer)


def _is_lab_idle(session: Session) -> bool:
    """Return True if no submission, health check or noise run is unfinished."""
    if session.scalar(select(Submission.id).where(Submission.state != SubmissionState.FINISHED).limit(1)) is not None:
        return False
    others = select(Run.id).where(
        Run.submission_id.is_(None), Run.purpose != RunPurpose.CANARY, Run.state != JobState.FINISHED
    )
    return session.scalar(others.limit(1)) is None


# --- the tick -----------------------------------------------------------------------------------------------------


def run_canaries(factory: SessionFactory, settings: Settings, data: LiveData) -> None:
    """Read finished canaries, drop those that are too old or switched off, and start the next ones."""
    with transaction(factory) as session:
        finished = session.scalars(
            select(Run.id)
            .where(
                Run.canary.is_not(None),
                Run.state == JobState.FINISHED,
                Run.outcome == Outcome.PASSED,
                Run.compared_at.is_(None),
            )
            .order_by(Run.id)
        ).all()
    for run_id in finished:
        with isolate_errors(factory, "canary", run_id), transaction(factory) as session:
            evaluate(session, run_id)
    try:
        current = data.current()
    except DataError:  # logged by the step that reads the devices
        return
    with transaction(factory) as session:
        queued = session.scalars(
            select(Run.id).where(Run.canary.is_not(None), Run.state == JobState.QUEUED).order_by(Run.id)
        ).all()
    for run_id in queued:
        with isolate_errors(factory, "canary", run_id), transaction(factory) as session:
            _drop_if_stale(session, current, run_id, settings)
    with transaction(factory) as session:
        chosen = _devices_to_use(session, current, settings)
    for name in chosen:
        with isolate_errors(factory, "canary", name), transaction(factory) as session:
            start(session, current, name, settings)


def _minutes(data: DataFolder, device_type: str, settings: Settings) -> int:
    """Return the minutes a day that canaries may use each device of the type."""
    if not data.has_device_type(device_type):
        return 0
    spec = data.device_type(device_type)
    if spec.instrumented:  # equal kernels give equal counts there
        return 0
    return settings.canaries if spec.canary_minutes is None else spec.canary_minutes


class _Usage(NamedTuple):
    minutes: float
    """Device time of canaries in the last day."""
    idle_s: float
    """Seconds since the last run that is no canary."""
    failed_s: float
    """Seconds since the last failed canary."""


def _devices_to_use(session: Session, data: DataFolder, settings: Settings) -> list[str]:
    rows = session.scalars(select(Device).where(Device.retired_at.is_(None)).order_by(Device.name)).all()
    allowed = {row.name: _minutes(data, row.device_type, settings) for row in rows}
    if not any(allowed.values()):
        return []
    now, published = clock(session), published_pools(session)
    leases = fetch_dict(session, select(Lease.device_name, Lease.run_id))
    needed = _needed(session)
    devices = []
    held: dict[str, int] = {}
    for row in rows:
        held[row.lab] = held.get(row.lab, 0) + (row.name in leases)
        if not allowed[row.name]:
            continue
        state = availability(row.name, row.lab, row.backend, published, now, ours=row.name in leases)
        usage = _usage(session, row.name, now)
        devices.append(
            choice.CanaryDevice(
                name=row.name,
                lab=row.lab,
                emulated=data.device_type(row.device_type).emulated,
                health=row.health,
                free=row.name not in leases
                and not state.unavailable_reason
                and not state.backlog
                and row.check_requested_at is None,
                needed=row.name in needed or row.device_type in needed,
                idle_s=usage.idle_s,
                minutes_allowed=allowed[row.name],
                minutes_used=usage.minutes,
                failed_s=usage.failed_s,
            )
        )
    return choice.select_devices(
        devices,
        held,
        lab_capacities(session, settings),
        idle_after_s=settings.idle_check_after_s,
        retry_after_s=_RETRY_AFTER_S,
        lab_idle=_is_lab_idle(session),
    )


def _needed(session: Session) -> set[str]:
    """Return the device types, and the devices, that runs wait for; also those whose kernels are not built yet."""
    rows = session.execute(
        select(Run.device_type, Run.wanted_device).where(
            Run.state.in_([JobState.WAITING, JobState.QUEUED]), Run.purpose != RunPurpose.CANARY
        )
    )
    return {device or device_type for device_type, device in rows}


def _usage(session: Session, device: str, now: datetime) -> _Usage:
    ended = func.coalesce(RunAttempt.finished_at, now)
    began = func.greatest(RunAttempt.started_at, now - _DAY)
    attempts = (
        select(func.coalesce(func.sum(func.extract("epoch", ended - began)), 0.0))
        .join(Run, Run.id == RunAttempt.run_id)
        .where(RunAttempt.device_name == device, Run.canary.is_not(None), ended > now - _DAY)
    )
    last_used = (
        select(func.max(ended))
        .join(Run, Run.id == RunAttempt.run_id)
        .where(RunAttempt.device_name == device, Run.canary.is_(None))
    )
    last_failed = select(func.max(Run.finished_at)).where(
        Run.wanted_device == device, Run.canary.is_not(None), Run.outcome == Outcome.FAILED
    )
    return _Usage(
        float(session.scalar(attempts) or 0.0) / 60,
        _seconds_since(session.scalar(last_used), now),
        _seconds_since(session.scalar(last_failed), now),
    )


def _seconds_since(at: datetime | None, now: datetime) -> float:
    return float("inf") if at is None else (now - at).total_seconds()


def _drop_if_stale(session: Session, data: DataFolder, run_id: int, settings: Settings) -> None:
    """Finish an interrupted canary that is too old, switched off, or whose device is out of the pool."""
    run = runs.lock_run(session, run_id)
    device = session.get_one(Device, run.wanted_device)
    if run.state is not JobState.QUEUED:
        return
    if device.retired_at is not None or device.health is DeviceHealth.QUARANTINED:
        failure = lab_service.out_of_pool_failure(device)
    elif not _minutes(data, device.device_type, settings):
        failure = canceled_failure("canaries were switched off")
    elif clock(session) - run.created_at > LONGEST:
        failure = canceled_failure("the device was idle too rarely: the canary did not finish within a day")
    else:
        return
    lease.finish_unclaimed(session, run, Outcome.CANCELED, failure)


# --- start --------------------------------------------------------------------------------------------------------


class _Kernels(NamedTuple):
    kind: CanaryKind
    baseline: int
    candidate: int


def start(session: Session, data: DataFolder, device: str, settings: Settings) -> Run | None:
    """Offer the device to its interrupted canary or to a new one; return it, or None if there is no plan or kernel."""
    run = session.scalar(
        select(Run)
        .where(Run.wanted_device == device, Run.canary.is_not(None), Run.state == JobState.QUEUED)
        .order_by(Run.id)
        .limit(1)
        .with_for_update()
    )
    run = run or _create(session, data, session.get_one(Device, device))
    if run is not None:
        lease.offer(session, run, device, settings)
    return run


def _create(session: Session, data: DataFolder, device: Device) -> Run | None:
    device_type = data.device_type(device.device_type)
    kernels = _kernels(session, device, device_type)
    plans = _plans(session, data, device_type)
    if not kernels or not plans:
        return None
    plan, (kind, baseline, candidate) = _next(session, device.name, plans, kernels)
    profile = plan.profile(device_type.emulated)
    profile = profile.model_copy(
        update={"settings": [plan.reference_setting], "blocks": max(profile.blocks, LEAST_BLOCKS), "looks": []}
    )
    seed = secrets.randbits(48)
    run = Run(
        submission_id=None,
        purpose=RunPurpose.CANARY,
        canary=kind,
        owner=_OWNER,
        priority=0,
        seed=seed,
        blocks=plan_runs.block_plan(profile.blocks, series=True, seed=seed),
        profile=profile,
        wanted_device=device.name,
        baseline_build_id=baseline,
        candidate_build_id=candidate,
        **plan_runs.snapshot(data, device_type, plan),
    )
    session.add(run)
    session.flush()
    change_state(run, JobState.QUEUED)
    log.info("canary_ordered", device=device.name, run=run.id, plan=plan.name, kind=kind)
    return run


def _kernels(session: Session, device: Device, device_type: DeviceType) -> list[_Kernels]:
    """Return the kernels at hand, since nothing is built for canaries: the golden kernel of the device's last health
    check, and the newest pair of the control series."""
    found = []
    golden = session.scalar(
        select(Run.baseline_build_id)
        .join(Build, Build.id == Run.baseline_build_id)
        .where(
            Run.wanted_device == device.name,
            Run.purpose == RunPurpose.HEALTH_CHECK,
            Run.outcome == Outcome.PASSED,
            Build.files_deleted_at.is_(None),
        )
        .order_by(Run.id.desc())
        .limit(1)
    )
    if golden is not None:
        found.append(_Kernels(CanaryKind.SAME_KERNEL, golden, golden))
    control = session.execute(
        select(SubmissionBuild.submission_id, func.array_agg(SubmissionBuild.build_id))
        .join(Submission, Submission.id == SubmissionBuild.submission_id)
        .join(Build, Build.id == SubmissionBuild.build_id)
        .where(
            Submission.noise_control,
            SubmissionBuild.recipe == device_type.recipe,
            SubmissionBuild.arch == device_type.arch,
            SubmissionBuild.emulated == device_type.emulated,
            Build.outcome == Outcome.PASSED,
            Build.files_deleted_at.is_(None),
        )
        .group_by(SubmissionBuild.submission_id)
        .having(func.count() == 2)
        .order_by(SubmissionBuild.submission_id.desc())
        .limit(1)
    ).one_or_none()
    if control is not None:
        baseline, candidate = session.scalars(
            select(SubmissionBuild.build_id)
            .where(SubmissionBuild.build_id.in_(control[1]), SubmissionBuild.submission_id == control[0])
            .order_by(SubmissionBuild.arm)
        )
        found.append(_Kernels(CanaryKind.NOPS, baseline, candidate))
    return found


def _plans(session: Session, data: DataFolder, device_type: DeviceType) -> list[TestPlan]:
    """Return the plans that were measured on the device type, and the one of its noise runs; each has a verdict."""
    used = set(
        session.scalars(
            select(Run.plan_name)
            .where(
                Run.device_type == device_type.name,
                Run.purpose == RunPurpose.MEASURE,
                Run.created_at > clock(session) - USED_WITHIN,
            )
            .distinct()
        )
    )
    noise = select_noise_plan(data, device_type)
    names = used | ({noise[0].name} if noise else set())
    plans = [data.plans[name] for name in sorted(names) if name in data.plans and not data.plans[name].checks_health]
    return [
        plan.measured(None, device_type.emulated)
        for plan in plans
        if detectable_effect.primary_metric(plan, device_type.emulated) is not None
    ]


def _next(
    session: Session, device: str, plans: Sequence[TestPlan], kernels: Sequence[_Kernels]
) -> tuple[TestPlan, _Kernels]:
    """Return the plan and kernels whose last canary on the device is the oldest."""
    last = {
        (plan, kind): run_id
        for plan, kind, run_id in session.execute(
            select(Run.plan_name, Run.canary, func.max(Run.id))
            .where(Run.wanted_device == device, Run.canary.is_not(None))
            .group_by(Run.plan_name, Run.canary)
        )
    }
    pairs = [(plan, each) for each in kernels for plan in plans]
    return min(pairs, key=lambda pair: last.get((pair[0].name, pair[1].kind), 0))


# --- read ---------------------------------------------------------------------------------------------------------


def evaluate(session: Session, run_id: int) -> None:
    """Store the boot values of a finished canary; if the noise floor has jumped, mark the device suspect."""
    run = runs.lock_run(session, run_id, with_snapshot=True)
    if run.compared_at is not None:
        return
    store_boot_values(session, run)
    run.compared_at = clock(session)
    session.flush()
    run.floor_jump = _jump(session, run)
    if run.floor_jump is None:
        return
    device = session.scalars(select(Device).where(Device.name == run.wanted_device).with_for_update()).one()
    reason = jump_text(run.floor_jump, run.plan_name)
    log.warning("noise_floor_jumped", device=device.name, run=run.id, reason=reason)
    if device.health is DeviceHealth.GOOD and device.retired_at is None:
        suspect = health.change_health(device.health, DeviceHealth.SUSPECT, reason)
        lab_service.set_health(session, device, suspect, f"run {run.id}", run.id)
        session.flush()
        lab_service.request_check(session, device.name)


def _jump(session: Session, run: Run) -> FloorJump | None:
    """Return the jump of the floor of a primary metric that ends with this canary, if any.

    Only equal kernels are watched: the effect of another layout changes with the kernel.
    """
    history = records.history_of(session, run) if run.canary is CanaryKind.SAME_KERNEL else None
    if history is None:
        return None
    alarm = session.scalar(
        select(func.max(Run.id)).where(Run.wanted_device == run.wanted_device, Run.floor_jump.is_not(None))
    )
    for metric in run.plan.metrics:
        if metric.role(history.emulated) is not Role.PRIMARY or metric.name not in history.canaries:
            continue
        floors = history.floors(metric.name, after=alarm or 0)
        jump = find_jump(floors)
        if jump is not None:
            return FloorJump(
                metric=metric.name,
                unit=effect_unit(metric.scale, metric.unit),
                before=records.displayed_floor(metric, jump.before),
                now=records.displayed_floor(metric, jump.now),
                canaries=jump.canaries,
            )
    return None
