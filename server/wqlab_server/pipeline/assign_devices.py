"""Devices for waiting runs: who gets which is decided on one look at the lab, and each device is offered under locks."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_contracts.enums import JobState

from ..estimates.lab_snapshot import capacities, pool_rows
from ..estimates.lava_pools import standing
from ..lab import allocate, lease
from ..models import Device, Lease, Run
from ..runs import service as runs
from ..settings import Settings
from ..storage.db import SessionFactory, clock, transaction
from .tick_errors import contained


def give_devices(factory: SessionFactory, settings: Settings) -> int:
    """Offers free devices to waiting runs, one transaction each; how many were offered.

    Safe beside a tick: an offer is made under locks and looks again.
    """
    with transaction(factory) as session:
        assignments = _decide(session, settings)
    offered = 0
    for assignment in assignments:
        with contained(factory, "run", assignment.run_id), transaction(factory) as session:
            run = runs.lock_run(session, assignment.run_id)
            offered += lease.offer(session, run, assignment.device, settings)
    return offered


def _decide(session: Session, settings: Settings) -> list[allocate.Assignment]:
    now = clock(session)
    published = pool_rows(session)
    units = []
    for row in session.execute(
        select(Device.name, Device.device_type, Device.lab, Device.health, Device.backend, Lease.run_id)
        .outerjoin(Lease, Lease.device_name == Device.name)
        .where(Device.retired_at.is_(None))
    ):
        stands = standing(row.name, row.lab, row.backend, published, now, ours=row.run_id is not None)
        units.append(
            allocate.Unit(
                row.name, row.device_type, row.lab, row.health, row.backend, bool(stands.away), stands.backlog
            )
        )
    held = [
        allocate.Held(device, owner)
        for device, owner in session.execute(select(Lease.device_name, Run.owner).join(Run, Run.id == Lease.run_id))
    ]
    queued = session.execute(
        select(Run.id, Run.owner, Run.priority, Run.created_at, Run.device_type, Run.wanted_device, Run.wanted_backend)
        .outerjoin(Lease, Lease.run_id == Run.id)
        .where(Run.state == JobState.QUEUED, Lease.run_id.is_(None), Run.cancel_requested_at.is_(None))
    ).all()
    avoid = runs.failed_on(session)
    waiting = [
        allocate.Waiting(
            run_id=row.id,
            owner=row.owner,
            priority=row.priority,
            waited_s=(now - row.created_at).total_seconds(),
            device_type=row.device_type,
            backend=row.wanted_backend,
            wanted_device=row.wanted_device,
            avoid=avoid.get(row.id, frozenset()),
        )
        for row in queued
    ]
    return allocate.allocate(units, held, waiting, capacities(session, settings))
