"""Run canaries on idle devices, and stop those that are in the way.

A canary is a run without a submission that boots one kernel as two arms, like a submission whose patches change
nothing. Decision 47 says when it may run.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import structlog
from sqlalchemy import func, select, type_coerce
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Session

from wqlab_contracts.enums import DeviceHealth, JobState, Outcome, RunPurpose, SubmissionState
from wqlab_contracts.loading import DataFolder
from wqlab_contracts.messages import DeviceFacts

from ..comparisons.service import store_boot_values
from ..estimates.lab_snapshot import lab_capacities, published_pools
from ..estimates.lava_pools import availability
from ..jobs.errors import canceled_failure
from ..lab import allocate, lease
from ..lab import canaries as choice
from ..lab import service as lab_service
from ..models import Device, Lease, Run, RunAttempt, Submission
from ..runs import service as runs
from ..settings import Settings
from ..storage.db import SessionFactory, clock, fetch_dict, transaction
from .start_canary import start_canary
from .tick_errors import isolate_errors

log = structlog.get_logger(__name__)

LONGEST = timedelta(days=1)
"""Time after which a canary that was interrupted again and again is dropped."""
_RETRY_AFTER_S = 3600.0
"""Time without canaries on a device after one failed."""
_DAY = timedelta(days=1)


# --- give way -----------------------------------------------------------------------------------------------------


def runs_in_the_way(session: Session, pool: choice.Pool, assigned: Sequence[allocate.Assignment]) -> list[int]:
    """Return the ids of the canaries that have to stop now, in ascending order."""
    stopped = choice.in_the_way(pool, assigned)
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
    """Return True if no submission or health check is unfinished."""
    if session.scalar(select(Submission.id).where(Submission.state != SubmissionState.FINISHED).limit(1)) is not None:
        return False
    others = select(Run.id).where(
        Run.submission_id.is_(None), Run.purpose != RunPurpose.CANARY, Run.state != JobState.FINISHED
    )
    return session.scalar(others.limit(1)) is None


# --- the tick -----------------------------------------------------------------------------------------------------


def run_canaries(factory: SessionFactory, settings: Settings, data: DataFolder | None) -> None:
    """Store the boot values of finished canaries, drop those that are too old or switched off, and start the next ones.

    `data`: None if the data folder is broken; then values are stored only.
    """
    with transaction(factory) as session:
        finished = session.scalars(
            select(Run.id)
            .where(
                Run.purpose == RunPurpose.CANARY,
                Run.state == JobState.FINISHED,
                Run.outcome == Outcome.PASSED,
                Run.compared_at.is_(None),
            )
            .order_by(Run.id)
        ).all()
    for run_id in finished:
        with isolate_errors(factory, "canary", run_id), transaction(factory) as session:
            _store(session, run_id)
    if data is None:
        return
    with transaction(factory) as session:
        queued = session.scalars(
            select(Run.id).where(Run.purpose == RunPurpose.CANARY, Run.state == JobState.QUEUED).order_by(Run.id)
        ).all()
    for run_id in queued:
        with isolate_errors(factory, "canary", run_id), transaction(factory) as session:
            _drop_if_stale(session, data, run_id, settings)
    with transaction(factory) as session:
        chosen = _devices_to_use(session, data, settings)
    for name in chosen:
        with isolate_errors(factory, "canary", name), transaction(factory) as session:
            start_canary(session, data, name, settings)


def _store(session: Session, run_id: int) -> None:
    """Store the boot values of a finished canary, from which records are calculated."""
    run = runs.lock_run(session, run_id, with_snapshot=True)
    if run.compared_at is None:
        store_boot_values(session, run)
        run.compared_at = clock(session)


def _minutes(data: DataFolder, device: DeviceFacts, settings: Settings) -> int:
    """Return the minutes a day that canaries may use the device. One that others use has to name them in its type."""
    if not data.has_device_type(device.device_type):
        return 0
    spec = data.device_type(device.device_type)
    if spec.instrumented:  # equal kernels give equal counts there
        return 0
    if spec.canary_minutes is not None:
        return spec.canary_minutes
    return settings.canaries if device.own_system is None else 0


class _Usage(NamedTuple):
    minutes: float
    """Device time of canaries in the last day."""
    idle_s: float
    """Seconds since the last run that is no canary."""
    failed_s: float
    """Seconds since the last failed canary."""


def _devices_to_use(session: Session, data: DataFolder, settings: Settings) -> list[str]:
    rows = session.scalars(select(Device).where(Device.retired_at.is_(None)).order_by(Device.name)).all()
    allowed = {row.name: _minutes(data, row.facts, settings) for row in rows}
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
        .where(RunAttempt.device_name == device, Run.purpose == RunPurpose.CANARY, ended > now - _DAY)
    )
    last_used = (
        select(func.max(ended))
        .join(Run, Run.id == RunAttempt.run_id)
        .where(RunAttempt.device_name == device, Run.purpose != RunPurpose.CANARY)
    )
    last_failed = (
        select(func.max(Run.finished_at))
        .select_from(Run)
        .where(Run.wanted_device == device, Run.purpose == RunPurpose.CANARY, Run.outcome == Outcome.FAILED)
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
    elif not _minutes(data, device.facts, settings):
        failure = canceled_failure("canaries were switched off")
    elif clock(session) - run.created_at > LONGEST:
        failure = canceled_failure("the device was idle too rarely: the canary did not finish within a day")
    else:
        return
    lease.finish_unclaimed(session, run, Outcome.CANCELED, failure)
