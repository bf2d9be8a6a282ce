"""Run one tick over the whole lab: six steps, in this order.

1. reclaim: retry or end jobs whose claims have expired, delete expired offers
2. advance: submissions, health checks and device checks; give results to the sources of orders and to the history
3. propose: read what is new in lists, trees and forges, and place orders
4. admit: submit the orders that are due
5. assign: devices to runs, and idle devices to canaries
6. deliver: unanswered messages, statuses, mails and webhooks; then retention, if it is due

An error in one item does not affect the others.
"""

from __future__ import annotations

import time
from datetime import timedelta

import structlog
from sqlalchemy import case, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import load_only

from wqlab_contracts.celery_names import JOB_QUEUES, lab_queue
from wqlab_contracts.enums import JobKind, JobState
from wqlab_contracts.loading import DataError, DataFolder

from ..intake import watches
from ..jobs import claims
from ..jobs.kinds import Context
from ..jobs.protocol import end_late, late_jobs
from ..lab import hosts
from ..lab import service as lab_service
from ..models import Device, Job, LastTick, Lease, Run
from ..pipeline import assign_devices, canaries, device_check, device_rules, health_checks
from ..pipeline.advance import advance
from ..pipeline.announcements import send_announcements
from ..pipeline.clock_steps import shorten_claims
from ..pipeline.due import due_submissions
from ..pipeline.forges import read_forges, tell_forges
from ..pipeline.history import record_heads
from ..pipeline.job_kinds import KINDS
from ..pipeline.operator_changes import record_changes
from ..pipeline.tick_errors import isolate_errors
from ..pipeline.watch_lists import watch_lists
from ..retention import service as retention
from ..settings import Settings
from ..storage import broker
from ..storage.db import SessionFactory, clock, transaction
from ..storage.live_data import LiveData
from . import run_sources

log = structlog.get_logger(__name__)

_TICK_LOCK = 0x77716C62
"""Key of the advisory lock that prevents two ticks at the same time."""
_TICK_GAP = timedelta(minutes=1)
"""Time between two ticks after which the server was away."""


def tick(factory: SessionFactory, settings: Settings, data: LiveData) -> bool:
    """Run one tick; return False if another tick is running."""
    started = time.monotonic()
    with transaction(factory) as guard:
        if not guard.scalar(select(func.pg_try_advisory_xact_lock(_TICK_LOCK))):
            return False
        _reclaim(factory, settings, data)
        try:
            current = data.current()
        except DataError as error:
            log.error("data_folder_broken", error=str(error))
            current = None
        _advance(factory, settings, current)
        if current is not None:
            _propose(factory, settings, data, current)
            run_sources.admit_orders(factory, settings, current)
        _assign(factory, settings, current)
        _deliver(factory, settings, current)
        with isolate_errors(factory, "retention", "server"):
            retention.try_to_run(factory, settings)
        with isolate_errors(factory, "last_tick", "server"):
            _record_end(factory, time.monotonic() - started)
    return True


def _record_end(factory: SessionFactory, seconds: float) -> None:
    """Write when this tick ended, for monitoring."""
    now = func.clock_timestamp()
    values = {"finished_at": now, "seconds": seconds}
    since = case((LastTick.finished_at < now - _TICK_GAP, now), else_=LastTick.running_since)
    with transaction(factory) as session:
        written = insert(LastTick).values(id=1, running_since=now, **values)
        session.execute(
            written.on_conflict_do_update(index_elements=[LastTick.id], set_={**values, "running_since": since})
        )


def _reclaim(factory: SessionFactory, settings: Settings, data: LiveData) -> None:
    """Retry or end jobs whose claims have expired, and delete expired offers."""
    with isolate_errors(factory, "claims", "clock"), transaction(factory) as session:
        shorten_claims(session, settings)
    with isolate_errors(factory, "offers", "expired"), transaction(factory) as session:
        lab_service.drop_expired_offers(session)
    with transaction(factory) as session:
        late = late_jobs(Context(session, settings, data), KINDS)
    for kind, job_id in late:
        with isolate_errors(factory, kind, job_id), transaction(factory) as session:
            end_late(Context(session, settings, data), KINDS, kind, job_id)


def _advance(factory: SessionFactory, settings: Settings, data: DataFolder | None) -> None:
    """Advance what is unfinished, and take the results of what is finished."""
    with transaction(factory) as session:
        submission_ids = due_submissions(session)
    for submission_id in submission_ids:
        with isolate_errors(factory, "submission", submission_id):
            advance(factory, settings, submission_id)
    if data is not None:
        _sync_devices_and_checks(factory, settings, data)
        run_sources.take_results(factory, settings, data)
    record_heads(factory)


def _propose(factory: SessionFactory, settings: Settings, live: LiveData, data: DataFolder) -> None:
    """Read what is new, and place orders for it."""
    with isolate_errors(factory, "audit", "operator"), transaction(factory) as session:
        record_changes(session, settings, live)
    with isolate_errors(factory, "watches", "files"), transaction(factory) as session:
        watches.sync_files(session, data)
    watch_lists(factory, settings, data)
    read_forges(factory, settings, data)
    run_sources.place_orders(factory, settings, data)


def _assign(factory: SessionFactory, settings: Settings, data: DataFolder | None) -> None:
    """Offer devices to runs that wait, then idle ones to canaries."""
    assign_devices.assign_devices(factory, settings)
    canaries.run_canaries(factory, settings, data)


def _deliver(factory: SessionFactory, settings: Settings, data: DataFolder | None) -> None:
    """Repeat unanswered messages, and write and wake deliveries."""
    _repeat_nudges(factory, settings)
    if data is not None:
        tell_forges(factory, settings, data)
    send_announcements(factory, settings)
    _sync_broker_users(factory, settings)


def _sync_devices_and_checks(factory: SessionFactory, settings: Settings, current: DataFolder) -> None:
    """Sync the devices table with the data folder, and order and advance health checks and device checks."""
    with transaction(factory) as session:
        changes = lab_service.pool_changes(session, current)
    for change in changes:
        with isolate_errors(factory, "device", change.name), transaction(factory) as session:
            lab_service.change_pool(session, change)
    with transaction(factory) as session:
        queued = device_rules.runs_to_check(session, current)
    for run_id in queued:
        with isolate_errors(factory, "run", run_id), transaction(factory) as session:
            device_rules.end_refused(session, run_id, current)
    with transaction(factory) as session:
        names = health_checks.devices_to_check(session, current, settings)
    for name in names:
        with isolate_errors(factory, "health_check", name), transaction(factory) as session:
            health_checks.order_check(session, current, name)
    with transaction(factory) as session:
        run_ids = health_checks.checks_to_advance(session)
    for run_id in run_ids:
        with isolate_errors(factory, "run", run_id), transaction(factory) as session:
            health_checks.advance(session, current, run_id, settings)
    with transaction(factory) as session:
        check_ids = device_check.checks_to_advance(session)
    for check_id in check_ids:
        with isolate_errors(factory, "device_check", check_id), transaction(factory) as session:
            device_check.advance(session, current, check_id)


def _sync_broker_users(factory: SessionFactory, settings: Settings) -> None:
    """Restore the labs' broker users, which a broker loses at a restart, and delete those of removed labs."""
    with transaction(factory) as session:
        expected = hosts.broker_users(session)
    if expected is None:
        return
    try:
        changed = broker.sync_users(settings.broker_url, expected)
    except broker.BrokerUnavailable as error:
        log.warning("broker_users_not_synced", error=str(error))
        return
    if changed:
        log.info("broker_users_synced", labs=changed)


def reset_nudges(factory: SessionFactory) -> None:
    """Make the messages of all queued jobs due at the next tick: a restarted broker has lost its messages."""
    with transaction(factory) as session:
        session.execute(update(Job).where(Job.state == JobState.QUEUED).values(nudged_at=None, nudges=0))


def _repeat_nudges(factory: SessionFactory, settings: Settings) -> None:
    """Send due messages of queued jobs again: a message may be lost, or its worker may have been offline."""
    with transaction(factory) as session:
        now = clock(session)
        queued = [
            (kind, job_id, JOB_QUEUES[kind], nudged_at, nudges)
            for kind, job_id, nudged_at, nudges in session.execute(
                select(Job.kind, Job.id, Job.nudged_at, Job.nudges)
                .where(Job.kind != JobKind.RUN, Job.state == JobState.QUEUED)
                .order_by(Job.id)
            )
        ]
        offered = session.execute(
            select(Run.id, Device.lab, Run.nudged_at, Run.nudges)
            .join(Lease, Lease.run_id == Run.id)
            .join(Device, Device.name == Lease.device_name)
            .where(Run.state == JobState.QUEUED, Lease.holder == "", Lease.expires_at > now)
            .order_by(Run.id)
        )
        queued += [
            (JobKind.RUN, run_id, lab_queue(lab), nudged_at, nudges) for run_id, lab, nudged_at, nudges in offered
        ]
    for kind, job_id, queue, nudged_at, nudges in queued:
        if not claims.is_nudge_due(nudged_at, nudges, now, settings):
            continue
        with isolate_errors(factory, kind, job_id), transaction(factory) as session:
            job = session.scalar(
                select(Job)
                .where(Job.id == job_id, Job.state == JobState.QUEUED)
                .options(load_only(Job.kind, Job.nudged_at, Job.nudges, raiseload=True))
                .with_for_update(skip_locked=True)
            )
            if job is not None and claims.is_nudge_due(job.nudged_at, job.nudges, now, settings):
                claims.nudge(session, job, now, queue)
