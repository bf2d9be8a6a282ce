"""Run one tick over the whole lab.

A tick reclaims expired claims, advances submissions and checks, syncs and assigns devices, measures new heads of
watched trees, advances bisections, takes series from watched lists, runs canaries on idle devices, repeats unanswered
messages, writes and wakes deliveries, and runs retention when it is due. An error in one item does not affect the
others.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import cast

import structlog
from sqlalchemy import case, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import load_only

from wqlab_contracts.celery_names import APPLY, APPLY_QUEUE, BUILD, BUILD_QUEUE, RUN, lab_queue
from wqlab_contracts.enums import JobState
from wqlab_contracts.loading import DataError

from ..builds import end as build_ends
from ..builds import locks as build_locks
from ..jobs import claims
from ..lab import hosts
from ..lab import service as lab_service
from ..models import Apply, Build, Device, LastTick, Lease, Run
from ..retention import service as retention
from ..runs.service import lock_run
from ..settings import Settings
from ..storage import broker
from ..storage.db import SessionFactory, clock, transaction
from ..storage.live_data import LiveData
from . import assign_devices, canaries, device_check, device_sessions, health_checks
from .advance import advance
from .announcements import send_announcements
from .bisections import advance_bisections
from .clock_steps import shorten_claims
from .due import due_submissions
from .forges import advance_forges
from .history import advance_history
from .operator_changes import record_changes
from .tick_errors import isolate_errors
from .watch_lists import watch_lists
from .watched_trees import watch_trees

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
        _reclaim_expired(factory, settings)
        _advance_submissions(factory, settings)
        _sync_devices_and_checks(factory, settings, data)
        watch_trees(factory, settings, data)
        advance_history(factory, settings, data)
        advance_bisections(factory, settings, data)
        with isolate_errors(factory, "audit", "operator"), transaction(factory) as session:
            record_changes(session, settings, data)
        watch_lists(factory, settings, data)
        assign_devices.assign_devices(factory, settings)
        canaries.run_canaries(factory, settings, data)
        _repeat_nudges(factory, settings)
        advance_forges(factory, settings, data)
        send_announcements(factory, settings)
        _sync_broker_users(factory, settings)
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


def _reclaim_expired(factory: SessionFactory, settings: Settings) -> None:
    """Retry or end jobs whose claims have expired, and delete expired offers."""
    with isolate_errors(factory, "claims", "clock"), transaction(factory) as session:
        shorten_claims(session, settings)
    with isolate_errors(factory, "offers", "expired"), transaction(factory) as session:
        lab_service.drop_expired_offers(session)
    with transaction(factory) as session:
        now = clock(session)
        applies, late_builds, runs = (
            session.scalars(
                select(table.id).where(table.state == JobState.RUNNING, table.expires_at <= now).order_by(table.id)
            ).all()
            for table in (Apply, Build, Run)
        )
    for apply_id in applies:
        with isolate_errors(factory, "apply", apply_id), transaction(factory) as session:
            apply = build_locks.lock_apply(session, apply_id)
            if claims.is_expired(session, apply):
                build_ends.end_apply(session, apply, build_ends.judge_expired(apply, settings))
    for build_id in late_builds:
        with isolate_errors(factory, "build", build_id), transaction(factory) as session:
            build, submission_ids = build_locks.lock_build(session, build_id)
            if claims.is_expired(session, build):
                build_ends.end_build(session, build, submission_ids, build_ends.judge_expired(build, settings))
    for run_id in runs:
        with isolate_errors(factory, "run", run_id), transaction(factory) as session:
            run = lock_run(session, run_id)
            if claims.is_expired(session, run):
                device_sessions.end_expired(session, run, settings)


def _advance_submissions(factory: SessionFactory, settings: Settings) -> None:
    with transaction(factory) as session:
        submission_ids = due_submissions(session)
    for submission_id in submission_ids:
        with isolate_errors(factory, "submission", submission_id):
            advance(factory, settings, submission_id)


def _sync_devices_and_checks(factory: SessionFactory, settings: Settings, data: LiveData) -> None:
    """Sync the devices table with the data folder, and order and advance health checks and device checks."""
    try:
        current = data.current()
    except DataError as error:
        log.error("data_folder_broken", error=str(error))
        return
    with transaction(factory) as session:
        changes = lab_service.pool_changes(session, current)
    for change in changes:
        with isolate_errors(factory, "device", change.name), transaction(factory) as session:
            lab_service.change_pool(session, change)
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
        for table in (Apply, Build, Run):
            session.execute(update(table).where(table.state == JobState.QUEUED).values(nudged_at=None, nudges=0))


def _repeat_nudges(factory: SessionFactory, settings: Settings) -> None:
    """Send due messages of queued jobs again: a message may be lost, or its worker may have been offline."""
    with transaction(factory) as session:
        now = clock(session)
        queued: list[tuple[type[claims.Job], str, str, int, datetime | None, int]] = [
            (table, task, queue, *row)
            for table, task, queue in ((Apply, APPLY, APPLY_QUEUE), (Build, BUILD, BUILD_QUEUE))
            for row in session.execute(
                select(table.id, table.nudged_at, table.nudges).where(table.state == JobState.QUEUED).order_by(table.id)
            )
        ]
        offered = session.execute(
            select(Run.id, Run.nudged_at, Run.nudges, Device.lab)
            .join(Lease, Lease.run_id == Run.id)
            .join(Device, Device.name == Lease.device_name)
            .where(Run.state == JobState.QUEUED, Lease.holder == "", Lease.expires_at > now)
            .order_by(Run.id)
        )
        queued += [(Run, RUN, lab_queue(row.lab), row.id, row.nudged_at, row.nudges) for row in offered]
    for table, task, queue, job_id, nudged_at, nudges in queued:
        if not claims.is_nudge_due(nudged_at, nudges, now, settings):
            continue
        with isolate_errors(factory, table.__name__.lower(), job_id), transaction(factory) as session:
            found = session.scalar(
                select(table)
                .where(table.id == job_id, table.state == JobState.QUEUED)
                .options(load_only(table.nudged_at, table.nudges, raiseload=True))
                .with_for_update(skip_locked=True)
            )
            job = cast("claims.Job | None", found)
            if job is not None and claims.is_nudge_due(job.nudged_at, job.nudges, now, settings):
                claims.nudge(session, job, task, queue, now)
