"""Health checks: ordered when a device is wanted or due, and run on the golden kernel, which is built like any other."""

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
from wqlab_contracts.messages import Failure
from wqlab_contracts.specs import DeviceType

from ..builds import service as builds
from ..estimates.lab_snapshot import pool_rows
from ..estimates.lava_pools import standing
from ..jobs import claims
from ..jobs.errors import infrastructure
from ..jobs.state import move
from ..lab import health, lease
from ..lab import service as lab
from ..models import Apply, Build, Device, Lease, Run, Submission
from ..settings import Settings
from ..storage.db import clock, pairs
from ..submissions import service as submissions

log = structlog.get_logger(__name__)

HEALTH_CHECK_PRIORITY = 100
"""A check is asked for because a run waits for the device."""
_OWNER = "lab"


def wanted(session: Session, data: DataFolder, settings: Settings) -> list[str]:
    """The devices to order a check of now."""
    now = clock(session)
    pending = set(
        session.scalars(
            select(Run.wanted_device).where(Run.purpose == RunPurpose.HEALTH_CHECK, Run.state != JobState.FINISHED)
        )
    )
    inconclusive = pairs(
        session,
        select(Run.wanted_device, func.max(Run.finished_at))
        .where(Run.purpose == RunPurpose.HEALTH_CHECK, Run.outcome == Outcome.FAILED)
        .group_by(Run.wanted_device),
    )
    leased = set(session.scalars(select(Lease.device_name)))
    known = (Device.name, Device.device_type, Device.lab, Device.health, Device.health_checked_at, Device.backend)
    published = pool_rows(session)
    devices = session.execute(
        select(*known, Device.check_requested_at).where(Device.retired_at.is_(None)).order_by(Device.name)
    )
    units = [
        health.Unit(
            name=device.name,
            device_type=device.device_type,
            lab=device.lab,
            health=device.health,
            free=device.name not in leased
            and not standing(device.name, device.lab, device.backend, published, now, ours=False).away,
            check_pending=device.name in pending,
            checked_at=device.health_checked_at if device.health is DeviceHealth.GOOD else None,
            check_failed_at=inconclusive.get(device.name),
            interval=timedelta(hours=data.device_types[device.device_type].health_check_interval_h),
            asked=device.check_requested_at is not None,
        )
        for device in devices
        if device.device_type in data.device_types
    ]
    demand = pairs(
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
    return health.checks_wanted(units, demand, now, retry_after, idle=_idle(session, now, settings))


def _idle(session: Session, now: datetime, settings: Settings) -> bool:
    """Nobody has wanted anything of the lab for a while."""
    if session.scalar(select(Submission.id).where(Submission.state != SubmissionState.FINISHED).limit(1)) is not None:
        return False
    last = session.scalar(
        select(func.greatest(select(func.max(Submission.finished_at)).scalar_subquery(), func.max(Device.created_at)))
    )
    return last is not None and now >= last + timedelta(seconds=settings.idle_check_after_s)


def order(session: Session, data: DataFolder, device: str) -> Run:
    """Creates a check of the device. Its kernel may still be on its way: the check waits for it."""
    type_name = session.scalars(select(Device.device_type).where(Device.name == device)).one()
    device_type = data.device_types[type_name]
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
        **submissions.snapshot(data, device_type, plan),
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


def to_advance(session: Session) -> Sequence[int]:
    """Checks that no worker holds and that wait for something else than a device: a kernel, or their end."""
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
    """Gives a waiting check the golden kernel once it is built. Ends it when it can have none, and when its device is
    out of the pool."""
    run = session.scalar(select(Run).where(Run.id == run_id).with_for_update())
    if run is None or run.state not in {JobState.WAITING, JobState.QUEUED}:
        return
    device = session.get(Device, run.wanted_device)
    if device is not None and (device.health is DeviceHealth.QUARANTINED or device.retired_at is not None):
        lease.end_unclaimed(session, run, Outcome.CANCELED, lab.uncheckable(device))
        return
    if run.state is not JobState.WAITING:
        return
    build = golden_build(session, data, run.device_spec, settings)
    if isinstance(build, Failure):
        claims.finish(session, run, Outcome.FAILED, infrastructure(f"the golden kernel's source: {build.summary}"))
        return
    if build is None or build.state is not JobState.FINISHED:
        return
    if build.outcome is Outcome.PASSED:
        run.baseline_build_id = build.id
        move(run, JobState.QUEUED)
    else:
        reason = build.failure.summary if build.failure else f"build {build.id} did not pass"
        claims.finish(session, run, Outcome.FAILED, infrastructure(f"the golden kernel: {reason}"))


def unanswered(session: Session, device: Device) -> int:
    """Checks of this device in a row that were cut short: since the last one that passed, or quarantined it."""
    passed = select(func.max(Run.finished_at)).where(
        Run.wanted_device == device.name, Run.purpose == RunPurpose.HEALTH_CHECK, Run.outcome == Outcome.PASSED
    )
    since = max((at for at in (session.scalar(passed), device.health_checked_at) if at is not None), default=None)
    failed = select(func.count()).where(
        Run.wanted_device == device.name,
        Run.purpose == RunPurpose.HEALTH_CHECK,
        Run.outcome == Outcome.FAILED,
        Run.attempts > 0,  # else it never got as far as the device
    )
    return session.scalar(failed if since is None else failed.where(Run.finished_at > since)) or 0


def hopeless(session: Session, run: Run, settings: Settings) -> str | None:
    """Why a waiting run will not get a device though not all are quarantined: their checks keep failing, for whatever
    reason, since it waits. None while one may come free."""
    doubtful = session.execute(
        select(Device.name, Device.health).where(
            Device.device_type == run.device_type,
            Device.retired_at.is_(None),
            Device.health != DeviceHealth.QUARANTINED,
            true() if run.wanted_backend is None else Device.backend == run.wanted_backend,
        )
    ).all()
    if not doubtful or any(unit.health is DeviceHealth.GOOD for unit in doubtful):
        return None
    failures: dict[str, list[str]] = {unit.name: [] for unit in doubtful}
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
    if any(len(told) < settings.health_checks for told in failures.values()):
        return None
    reasons = "; ".join(f"{name}: {told[-1]}" for name, told in sorted(failures.items()))
    return f"no unit of {run.device_type} passes its health check ({reasons})"


def golden_build(
    session: Session, data: DataFolder, device_type: DeviceType, settings: Settings
) -> Build | Failure | None:
    """The kernel that devices are checked with: the type's recipe of the default tree's base commit.

    It is an apply and a build like any other, without a submission; the same content as a usual baseline, so it is
    built once for both. None while its source is being resolved, a failure when that went wrong a while ago.
    """
    tree = data.trees[settings.default_tree or data.default_tree]
    recipe = data.recipes.get(device_type.recipe)
    if recipe is None:  # the check was ordered before an operator took the recipe away
        return infrastructure(f"there is no recipe {device_type.recipe} any more")
    toolchain = recipe.toolchain
    newest = session.scalar(
        select(Apply)
        .where(Apply.submission_id.is_(None), Apply.toolchain == toolchain, Apply.tree == tree)
        .order_by(Apply.id.desc())
        .limit(1)
    )
    if newest is None or (newest.outcome not in {None, Outcome.PASSED} and _long_ago(session, newest, settings)):
        apply = Apply(submission_id=None, tree=tree, toolchain=toolchain)
        session.add(apply)
        session.flush()
        claims.queue_apply(session, apply)
        return None
    if newest.outcome not in {None, Outcome.PASSED}:
        return newest.failure or infrastructure("the tree's base commit was not resolved")
    if newest.result is None or newest.result.baseline is None:
        return None
    names = fragment_names(recipe, device_type.arch, device_type.emulated)
    fragments = {name: data.fragment(name) for name in names}
    source, exact = newest.result.baseline, newest.result.toolchain
    modules = data.modules_of(recipe)
    key = build_key(source.tree_oid, recipe, device_type.arch, fragments, exact, modules)
    last = session.scalar(select(Build).where(Build.key == key).order_by(Build.id.desc()).limit(1))
    if last is not None and last.outcome is Outcome.FAILED and not _long_ago(session, last, settings):
        return last
    return builds.ensure_build(
        session,
        source,
        recipe,
        arch=device_type.arch,
        emulated=device_type.emulated,
        fragments=fragments,
        modules=modules,
        toolchain=exact,
    )


def _long_ago(session: Session, job: Apply | Build, settings: Settings) -> bool:
    assert job.finished_at is not None  # noqa: S101 - it has an outcome
    return clock(session) >= job.finished_at + timedelta(seconds=settings.health_retry_s)
