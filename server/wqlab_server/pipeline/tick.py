"""One round over the whole lab: takes back what was lost, brings everything a step on, gives devices to runs, and says
again what nobody has reacted to. Every item is on its own: one that raises does not hold up the others."""

from __future__ import annotations

from datetime import datetime
from typing import cast

import structlog
from sqlalchemy import func, select, update
from sqlalchemy.orm import load_only

from wqlab_contracts.celery_names import APPLY, BUILD, BUILD_QUEUE, RUN, lab_queue
from wqlab_contracts.enums import JobState
from wqlab_contracts.loading import DataError

from ..builds import service as builds
from ..jobs import claims
from ..lab import hosts
from ..lab import service as lab
from ..models import Apply, Build, Device, Lease, Run
from ..runs.service import lock_run
from ..settings import Settings
from ..storage import broker
from ..storage.db import SessionFactory, clock, transaction
from ..storage.live_data import LiveData
from . import assign_devices, device_check, device_sessions, health_checks
from .advance import advance
from .due import due
from .tick_errors import contained

log = structlog.get_logger(__name__)

_TICK_LOCK = 0x77716C62
"""Key of the advisory lock that keeps two ticks apart."""


def tick(factory: SessionFactory, settings: Settings, data: LiveData) -> bool:
    """False when another tick is at it."""
    with transaction(factory) as guard:
        if not guard.scalar(select(func.pg_try_advisory_xact_lock(_TICK_LOCK))):
            return False
        _expire(factory, settings)
        _advance(factory, settings)
        _keep_pool(factory, settings, data)
        assign_devices.give_devices(factory, settings)
        _nudge(factory, settings)
        _admit_labs(factory, settings)
    return True


def _expire(factory: SessionFactory, settings: Settings) -> None:
    """Takes back what workers that stopped answering held, and devices that no worker came for."""
    with contained(factory, "offers", "expired"), transaction(factory) as session:
        lab.drop_expired_offers(session)
    with transaction(factory) as session:
        now = clock(session)
        applies, late_builds, runs = (
            session.scalars(
                select(table.id).where(table.state == JobState.RUNNING, table.expires_at <= now).order_by(table.id)
            ).all()
            for table in (Apply, Build, Run)
        )
    for apply_id in applies:
        with contained(factory, "apply", apply_id), transaction(factory) as session:
            apply = builds.lock_apply(session, apply_id)
            if claims.ran_out(session, apply):
                builds.end_apply(session, apply, builds.lost(apply, settings))
    for build_id in late_builds:
        with contained(factory, "build", build_id), transaction(factory) as session:
            build, users = builds.lock_build(session, build_id)
            if claims.ran_out(session, build):
                builds.end_build(session, build, users, builds.lost(build, settings))
    for run_id in runs:
        with contained(factory, "run", run_id), transaction(factory) as session:
            run = lock_run(session, run_id)
            if claims.ran_out(session, run):
                device_sessions.lost(session, run, settings)


def _advance(factory: SessionFactory, settings: Settings) -> None:
    with transaction(factory) as session:
        submissions = due(session)
    for submission_id in submissions:
        with contained(factory, "submission", submission_id):
            advance(factory, settings, submission_id)


def _keep_pool(factory: SessionFactory, settings: Settings, data: LiveData) -> None:
    """Devices as the data folder has them, and their health checks."""
    try:
        current = data.current()
    except DataError as error:
        log.error("data_folder_broken", error=str(error))
        return
    with transaction(factory) as session:
        changes = lab.pool_changes(session, current)
    for change in changes:
        with contained(factory, "device", change.name), transaction(factory) as session:
            lab.change_pool(session, change)
    with transaction(factory) as session:
        wanted = health_checks.wanted(session, current, settings)
    for name in wanted:
        with contained(factory, "health_check", name), transaction(factory) as session:
            health_checks.order(session, current, name)
    with transaction(factory) as session:
        checks = health_checks.to_advance(session)
    for run_id in checks:
        with contained(factory, "run", run_id), transaction(factory) as session:
            health_checks.advance(session, current, run_id, settings)
    with transaction(factory) as session:
        walks = device_check.to_advance(session)
    for check_id in walks:
        with contained(factory, "device_check", check_id), transaction(factory) as session:
            device_check.advance(session, current, check_id)


def _admit_labs(factory: SessionFactory, settings: Settings) -> None:
    """A broker that was started again has forgotten its users, and one that was away did not hear of a removal."""
    with transaction(factory) as session:
        wanted = hosts.broker_users(session)
    if wanted is None:
        return
    try:
        changed = broker.settle(settings.broker_url, wanted)
    except broker.BrokerUnavailable as error:
        log.warning("labs_not_admitted", error=str(error))
        return
    if changed:
        log.info("labs_admitted_again", labs=changed)


def say_all_again(factory: SessionFactory) -> None:
    """Makes all that waits due at the next tick: when a lab is started, its broker has forgotten its messages."""
    with transaction(factory) as session:
        for table in (Apply, Build, Run):
            session.execute(update(table).where(table.state == JobState.QUEUED).values(nudged_at=None, nudges=0))


def _nudge(factory: SessionFactory, settings: Settings) -> None:
    """Says again what nobody has reacted to: a message may be lost, a worker may have been away."""
    with transaction(factory) as session:
        now = clock(session)
        queued: list[tuple[type[claims.Job], str, str, int, datetime | None, int]] = [
            (table, task, BUILD_QUEUE, *row)
            for table, task in ((Apply, APPLY), (Build, BUILD))
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
        if not claims.nudge_due(nudged_at, nudges, now, settings):
            continue
        with contained(factory, table.__name__.lower(), job_id), transaction(factory) as session:
            found = session.scalar(
                select(table)
                .where(table.id == job_id, table.state == JobState.QUEUED)
                .options(load_only(table.nudged_at, table.nudges, raiseload=True))
                .with_for_update(skip_locked=True)
            )
            job = cast("claims.Job | None", found)
            if job is not None and claims.nudge_due(job.nudged_at, job.nudges, now, settings):
                claims.nudge(session, job, task, queue, now)
