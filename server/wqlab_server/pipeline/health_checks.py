"""Order health checks of devices and advance them. Checks boot the golden kernel, which is built like any other."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import datetime, timedelta

import structlog
from sqlalchemy import and_, func, or_, select, true, update
from sqlalchemy.orm import Session

from wqlab_contracts.enums import Arm, DeviceHealth, JobState, Outcome, RunPurpose, SubmissionState
from wqlab_contracts.keys import build_key, fragment_names
from wqlab_contracts.loading import DataFolder
from wqlab_contracts.messages import ApplyJob, Failure
from wqlab_contracts.specs import DeviceType, GeneratedTopology

from ..builds import service as builds
from ..estimates.lab_snapshot import published_pools
from ..estimates.lava_pools import availability
from ..jobs import claims
from ..jobs.errors import infrastructure_failure
from ..jobs.state import change_state
from ..lab import health, lease
from ..lab import service as lab_service
from ..models import Apply, Build, Device, Lease, Run, Submission
from ..settings import Settings
from ..storage.db import clock, fetch_dict
from ..storage.times import is_recent
from ..submissions import plan_runs

log = structlog.get_logger(__name__)

HEALTH_CHECK_PRIORITY = 100
"""The highest priority: a check is ordered because a run waits for the device."""
_OWNER = "lab"


def devices_to_check(session: Session, data: DataFolder, settings: Settings) -> list[str]:
    """Return the names of the devices to order a health check of now."""
    now = clock(session)
    pending = set(
        session.scalars(
            select(Run.wanted_device).where(Run.purpose == RunPurpose.HEALTH_CHECK, Run.state != JobState.FINISHED)
        )
    )
    inconclusive = fetch_dict(
        session,
        select(Run.wanted_device, func.max(Run.finished_at))
        .where(Run.purpose == RunPurpose.HEALTH_CHECK, Run.outcome == Outcome.FAILED)
        .group_by(Run.wanted_device),
    )
    leased = set(session.scalars(select(Lease.device_name)))
    columns = (Device.name, Device.device_type, Device.lab, Device.health, Device.health_checked_at, Device.backend)
    published = published_pools(session)
    devices = session.execute(
        select(*columns, Device.facts, Device.check_requested_at)
        .where(Device.retired_at.is_(None))
        .order_by(Device.name)
    )
    checkable = [
        health.CheckableDevice(
            name=device.name,
            device_type=device.device_type,
            lab=device.lab,
            health=device.health,
            free=device.name not in leased
            and not availability(
                device.name, device.lab, device.backend, published, now, ours=False
            ).unavailable_reason,
            check_pending=device.name in pending,
            checked_at=device.health_checked_at if device.health is DeviceHealth.GOOD else None,
            check_failed_at=inconclusive.get(device.name),
            interval=timedelta(hours=data.device_type(device.device_type).health_check_interval_h),
            requested=device.check_requested_at is not None,
            on_demand=GeneratedTopology.parse(device.device_type) is not None or device.facts.own_system is not None,
        )
        for device in devices
        if data.has_device_type(device.device_type)
    ]
    demand = fetch_dict(
        session,
        select(Run.device_type, func.count())
        .where(
            Run.purpose == RunPurpose.MEASURE,
            Run.state.in_([JobState.WAITING, JobState.QUEUED, JobState.RUNNING]),
            Run.cancel_requested_at.is_(None),
        )
        .group_by(Run.device_type),
    )
    retry_after = timedelta(seconds=settings.health_retry_s)
    return health.select_devices_to_check(checkable, demand, now, retry_after, idle=_is_idle(session, now, settings))


def _is_idle(session: Session, now: datetime, settings: Settings) -> bool:
    """Return True if no submission is unfinished and none has finished recently."""
    if session.scalar(select(Submission.id).where(Submission.state != SubmissionState.FINISHED).limit(1)) is not None:
        return False
    last = session.scalar(
        select(func.greatest(select(func.max(Submission.finished_at)).scalar_subquery(), func.max(Device.created_at)))
    )
    return last is not None and not is_recent(last, now, timedelta(seconds=settings.idle_check_after_s))


def order_check(session: Session, data: DataFolder, device: str) -> Run:
    """Create a health check run of the device. The run waits while its kernel is being built."""
    type_name = session.scalars(select(Device.device_type).where(Device.name == device)).one()
    device_type = data.device_type(type_name)
    plan = data.plans[device_type.health_check]
    profile = plan.profile(device_type.emulated)
    run = Run(
        submission_id=None,
        purpose=RunPurpose.HEALTH_CHECK,
        owner=_OWNER,
        priority=HEALTH_CHECK_PRIORITY,
        seed=random.getrandbits(48),
        blocks=[[Arm.BASELINE] for _ in range(profile.blocks)],
        profile=profile,
        wanted_device=device,
        **plan_runs.snapshot(data, device_type, plan),
    )
    session.add(run)
    session.execute(
        update(Device)
        .where(Device.name == device)
        .values(check_requested_at=None)
        .execution_options(synchronize_session=False)
    )
    session.flush()
    log.info("health_check_ordered", device=device, run=run.id)
    return run


def checks_to_advance(session: Session) -> Sequence[int]:
    """Return the unclaimed health checks that wait for a kernel, or whose device is out of the pool."""
    return session.scalars(
        select(Run.id)
        .join(Device, Device.name == Run.wanted_device)
        .where(
            Run.purpose == RunPurpose.HEALTH_CHECK,
            or_(
                Run.state == JobState.WAITING,
                and_(
                    Run.state == JobState.QUEUED,
                    or_(Device.health == DeviceHealth.QUARANTINED, Device.retired_at.is_not(None)),
                ),
            ),
        )
        .order_by(Run.id)
    ).all()


def advance(session: Session, data: DataFolder, run_id: int, settings: Settings) -> None:
    """Queue a waiting check once its kernel is built.

    End a check whose kernel cannot be built, or whose device is out of the pool.
    """
    run = session.scalar(select(Run).where(Run.id == run_id).with_for_update())
    if run is None or run.state not in {JobState.WAITING, JobState.QUEUED}:
        return
    device = session.get(Device, run.wanted_device)
    if device is not None and (device.health is DeviceHealth.QUARANTINED or device.retired_at is not None):
        lease.finish_unclaimed(session, run, Outcome.CANCELED, lab_service.out_of_pool_failure(device))
        return
    if run.state is not JobState.WAITING:
        return
    build = golden_kernel_build(session, data, run.device_spec, settings)
    if isinstance(build, Failure):
        claims.finish(
            session, run, Outcome.FAILED, infrastructure_failure(f"the golden kernel's source: {build.summary}")
        )
        return
    if build is None or build.state is not JobState.FINISHED:
        return
    if build.outcome is Outcome.PASSED:
        run.baseline_build_id = build.id
        change_state(run, JobState.QUEUED)
    else:
        reason = build.failure.summary if build.failure else f"build {build.id} did not pass"
        claims.finish(session, run, Outcome.FAILED, infrastructure_failure(f"the golden kernel: {reason}"))


def count_inconclusive(session: Session, device: Device) -> int:
    """Return how many checks of the device were inconclusive since the last conclusive one (passed, or quarantined)."""
    passed = (
        select(func.max(Run.finished_at))
        .select_from(Run)
        .where(Run.wanted_device == device.name, Run.purpose == RunPurpose.HEALTH_CHECK, Run.outcome == Outcome.PASSED)
    )
    since = max((at for at in (session.scalar(passed), device.health_checked_at) if at is not None), default=None)
    failed = (
        select(func.count())
        .select_from(Run)
        .where(
            Run.wanted_device == device.name,
            Run.purpose == RunPurpose.HEALTH_CHECK,
            Run.outcome == Outcome.FAILED,
            Run.attempts > 0,  # without an attempt the check never reached the device
        )
    )
    return session.scalar(failed if since is None else failed.where(Run.finished_at > since)) or 0


def unschedulable_reason(session: Session, run: Run, settings: Settings) -> str | None:
    """Return why a waiting run cannot get a device although some are not quarantined, or None if one may become free.

    The reason is that every such device has failed `settings.health_checks` health checks since the run was created.
    """
    in_service = session.execute(
        select(Device.name, Device.health).where(
            Device.device_type == run.device_type,
            Device.retired_at.is_(None),
            Device.health != DeviceHealth.QUARANTINED,
            true() if run.wanted_backend is None else Device.backend == run.wanted_backend,
        )
    ).all()
    if not in_service or any(device.health is DeviceHealth.GOOD for device in in_service):
        return None
    failures: dict[str, list[str]] = {device.name: [] for device in in_service}
    checks = session.execute(
        select(Run.wanted_device, Run.failure)
        .where(
            Run.wanted_device.in_(failures),
            Run.purpose == RunPurpose.HEALTH_CHECK,
            Run.outcome == Outcome.FAILED,
            Run.finished_at > run.created_at,
        )
        .order_by(Run.id)
    )
    for name, failure in checks:
        failures[name or ""].append(failure.summary if failure else "no reason given")
    if any(len(summaries) < settings.health_checks for summaries in failures.values()):
        return None
    reasons = "; ".join(f"{name}: {summaries[-1]}" for name, summaries in sorted(failures.items()))
    return f"no device of {run.device_type} passes its health check ({reasons})"


def golden_kernel_build(
    session: Session, data: DataFolder, device_type: DeviceType, settings: Settings, layouts: int = 1
) -> Build | Failure | None:
    """Return the build of the golden kernel: the device type's recipe at the base commit of the golden tree, linked in
    so many `layouts`.

    An apply job without a submission finds that commit. A baseline with the same content has the same key, so both are
    one build. Returns None until the apply job has passed, and a Failure if the recipe no longer exists or the apply
    job failed less than `settings.health_retry_s` ago. A build that failed so recently is returned as it is.
    """
    tree = data.trees[data.golden_tree]
    recipe = data.recipes.get(device_type.recipe)
    if recipe is None:  # an operator removed the recipe after the check was ordered
        return infrastructure_failure(f"recipe {device_type.recipe} no longer exists")
    job = ApplyJob(submission_id=0, tree=tree, series=None, toolchain=recipe.toolchain)
    newest = session.scalar(
        select(Apply)
        .where(Apply.submission_id.is_(None), Apply.key == job.model_dump_json())
        .order_by(Apply.id.desc())
        .limit(1)
    )
    if newest is None or (newest.outcome not in {None, Outcome.PASSED} and _is_retry_due(session, newest, settings)):
        claims.queue(session, Apply(key=job.model_dump_json(), payload=job))
        return None
    if newest.outcome not in {None, Outcome.PASSED}:
        return newest.failure or infrastructure_failure("the tree's base commit was not resolved")
    if newest.result is None or newest.result.baseline is None:
        return None
    names = fragment_names(recipe, device_type.arch, device_type.on_bench)
    fragments = {name: data.fragment(name) for name in names}
    source, exact = newest.result.baseline, newest.result.toolchain
    modules = data.modules_of(recipe)
    key = build_key(source.tree_oid, recipe, device_type.arch, fragments, exact, modules, layouts)
    last = session.scalar(select(Build).where(Build.key == key).order_by(Build.id.desc()).limit(1))
    if last is not None and last.outcome is Outcome.FAILED and not _is_retry_due(session, last, settings):
        return last
    return builds.ensure_build(
        session,
        source,
        recipe,
        arch=device_type.arch,
        emulated=device_type.on_bench,
        fragments=fragments,
        modules=modules,
        toolchain=exact,
        layouts=layouts,
    )


def _is_retry_due(session: Session, job: Apply | Build, settings: Settings) -> bool:
    """Return True if the failed job finished at least `settings.health_retry_s` ago."""
    assert job.finished_at is not None  # noqa: S101 - it has an outcome
    return not is_recent(job.finished_at, clock(session), timedelta(seconds=settings.health_retry_s))
