"""Assign free devices to queued runs: decide on one snapshot of the lab, then offer each device under row locks.

Canaries that keep a run from a device are stopped here too; `canaries` starts them.
"""

from __future__ import annotations

import math

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from wqlab_contracts.enums import JobState, RunPurpose

from ..estimates.lab_snapshot import lab_capacities, published_pools
from ..estimates.lava_pools import availability
from ..estimates.timings import boot_times
from ..lab import allocate, lease
from ..lab.canaries import Pool
from ..models import Device, Lease, Run
from ..models.runs import blocks_due
from ..runs import service as runs
from ..settings import Settings
from ..storage.db import SessionFactory, clock, transaction
from . import canaries
from .tick_errors import isolate_errors


def assign_devices(factory: SessionFactory, settings: Settings) -> int:
    """Offer free devices to queued runs, each in its own transaction; return the number of offers.

    Safe to call during a tick: an offer checks again under row locks.
    """
    with transaction(factory) as session:
        pool = _read_pool(session, settings)
        assignments = pool.assign()
        in_the_way = canaries.runs_in_the_way(session, pool, assignments) if pool.canaries else []
    for run_id in in_the_way:
        with isolate_errors(factory, "run", run_id), transaction(factory) as session:
            canaries.stop(session, run_id)
    offered = 0
    for assignment in assignments:
        with isolate_errors(factory, "run", assignment.run_id), transaction(factory) as session:
            run = runs.lock_run(session, assignment.run_id)
            offered += lease.offer(session, run, assignment.device, settings)
    return offered


def _read_pool(session: Session, settings: Settings) -> Pool:
    now = clock(session)
    published = published_pools(session)
    devices = []
    for row in session.execute(
        select(Device.name, Device.device_type, Device.lab, Device.health, Device.backend, Lease.run_id)
        .outerjoin(Lease, Lease.device_name == Device.name)
        .where(Device.retired_at.is_(None))
    ):
        state = availability(row.name, row.lab, row.backend, published, now, ours=row.run_id is not None)
        devices.append(
            allocate.PoolDevice(
                name=row.name,
                device_type=row.device_type,
                lab=row.lab,
                health=row.health,
                backend=row.backend,
                unavailable=bool(state.unavailable_reason),
                backlog=state.backlog,
            )
        )
    leases = session.execute(
        select(Lease.device_name, Lease.run_id, Run.owner, Run.purpose).join(Run, Run.id == Lease.run_id)
    ).all()
    queued = session.execute(
        select(
            *(Run.id, Run.owner, Run.priority, Run.created_at, Run.device_type, Run.wanted_device, Run.wanted_backend),
            Run.purpose,
        )
        .outerjoin(Lease, Lease.run_id == Run.id)
        .where(
            Run.state == JobState.QUEUED,
            Lease.run_id.is_(None),
            Run.cancel_requested_at.is_(None),
            Run.purpose != RunPurpose.CANARY,
        )
    ).all()
    avoid = runs.devices_failed_on(session)
    rates = _decisions_per_s(session)
    waiting = [
        allocate.WaitingRun(
            run_id=row.id,
            owner=row.owner,
            priority=row.priority,
            waited_s=(now - row.created_at).total_seconds(),
            device_type=row.device_type,
            backend=row.wanted_backend,
            wanted_device=row.wanted_device,
            checks_health=row.purpose not in {RunPurpose.MEASURE, RunPurpose.TRACE},
            avoid=avoid.get(row.id, frozenset()),
            decisions_per_s=rates.get(row.id, math.inf),
        )
        for row in queued
    ]
    held_by_canaries = {row.device_name: row.run_id for row in leases if row.purpose is RunPurpose.CANARY}
    # A canary costs its owner, the lab, no place in the queue.
    held = [
        allocate.HeldDevice(row.device_name, "" if row.device_name in held_by_canaries else row.owner) for row in leases
    ]
    return Pool(devices, held, waiting, lab_capacities(session, settings), held_by_canaries)


def _decisions_per_s(session: Session) -> dict[int, float]:
    """Return run -> decisions that its next blocks are expected to give per second of device time.

    Only queued runs that were looked at have an entry.
    """
    rows = session.execute(
        select(Run.id, Run.plan_name, Run.device_type, Run.blocks, Run.looks, Run.looked).where(
            Run.state == JobState.QUEUED, func.jsonb_array_length(Run.looked) > 0
        )
    ).all()
    times = boot_times(session, {(row.plan_name, row.device_type) for row in rows}) if rows else {}
    rates = {}
    for row in rows:
        last, due = row.looked[-1], blocks_due(row.blocks, row.looks, row.looked)
        boots = sum(len(arms) for arms in row.blocks[last.blocks : due])
        time = times.get((row.plan_name, row.device_type))
        rates[row.id] = last.expected_decisions / max(boots * (time.seconds if time else 1.0), 1e-9)
    return rates
