"""The lab at one moment: its devices, who has them and who waits for them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_contracts.enums import DeviceHealth, JobState, RunPurpose
from wqlab_contracts.specs import Backend

from ..jobs.state import queue_score
from ..models import Device, Lab, Lease, Run, Submission
from ..settings import Settings
from ..storage.db import clock, pairs
from . import timings
from .lava_pools import Published, standing
from .schedule import DeviceAvailability, Schedule


@dataclass(frozen=True)
class Unit:
    name: str
    device_type: str
    lab: str
    health: DeviceHealth
    run_id: int | None
    """Whom it is leased or offered to."""
    backend: Backend = "labgrid"
    away: str = ""
    """Why its lab cannot give it now."""


def unit_class(health: DeviceHealth, *, leased: bool) -> str:
    """The field of `api.UnitCounts` that counts a device."""
    if health is DeviceHealth.QUARANTINED:
        return "quarantined"
    if leased:
        return "busy"
    return "good" if health is DeviceHealth.GOOD else "unchecked"


@dataclass(frozen=True)
class Work:
    """An unfinished run."""

    run_id: int
    submission_id: int | None
    title: str
    owner: str
    purpose: RunPurpose
    plan: str
    device_type: str
    wanted_device: str | None
    wanted_backend: Backend | None
    device: str | None
    """The device it has, or is offered."""
    state: JobState
    priority: int
    created_at: datetime
    boots_left: int
    boot_s: float | None

    @property
    def left_s(self) -> float | None:
        return None if self.boot_s is None else self.boots_left * self.boot_s

    def wants(self, unit: Unit) -> bool:
        if self.wanted_device:
            return unit.name == self.wanted_device
        return unit.device_type == self.device_type and self.wanted_backend in (None, unit.backend)


@dataclass(frozen=True)
class QueueState:
    now: datetime
    units: list[Unit]
    work: list[Work]
    """By id."""
    capacity: dict[str, int]
    """Lab -> devices at once; a lab that is not named has no bound."""

    @property
    def running(self) -> list[Work]:
        return [run for run in self.work if run.state is JobState.RUNNING]

    @property
    def offered(self) -> list[Work]:
        return [run for run in self.work if run.state is JobState.QUEUED and run.device is not None]

    @cached_property
    def queued(self) -> list[Work]:
        """Without a device, in the order in which devices are given out now."""
        free = [run for run in self.work if run.state is JobState.QUEUED and run.device is None]
        return sorted(free, key=lambda run: (-self.score(run), run.run_id))

    @cached_property
    def held(self) -> Counter[str]:
        """Owner -> devices leased or offered to their runs."""
        return Counter(run.owner for run in self.work if run.device is not None)

    def waited_s(self, run: Work) -> float:
        return max((self.now - run.created_at).total_seconds(), 0.0)

    def score(self, run: Work) -> float:
        return queue_score(run.priority, self.waited_s(run), self.held[run.owner])

    def schedule(self) -> Schedule:
        """With the runs that have a device in it. Devices of doubtful health count where a type has no good one: their
        check is short against a run."""
        works = {run.run_id: run for run in self.work}
        good_types = {unit.device_type for unit in self.units if unit.health is DeviceHealth.GOOD}
        usable, at_work = [], []
        for unit in self.units:
            run = works.get(unit.run_id) if unit.run_id is not None else None
            free_s = 0.0 if unit.run_id is None else run.left_s if run else None
            device = DeviceAvailability(unit.name, unit.device_type, unit.lab, free_s)
            if unit.run_id is not None:
                at_work.append(device)
            doubtful = unit.health is not DeviceHealth.GOOD and unit.device_type in good_types
            if unit.health is not DeviceHealth.QUARANTINED and not doubtful and not unit.away:
                usable.append(device)
        return Schedule(usable, at_work, self.capacity)


def load(session: Session, settings: Settings) -> QueueState:
    leases = pairs(session, select(Lease.run_id, Lease.device_name))
    by_device = {device: run_id for run_id, device in leases.items()}
    now, published = clock(session), pool_rows(session)
    units = [
        Unit(
            name,
            device_type,
            lab,
            health,
            by_device.get(name),
            backend,
            standing(name, lab, backend, published, now, ours=name in by_device).away,
        )
        for name, device_type, lab, health, backend in session.execute(
            select(Device.name, Device.device_type, Device.lab, Device.health, Device.backend)
            .where(Device.retired_at.is_(None))
            .order_by(Device.name)
        )
    ]
    rows = session.execute(
        select(
            Run.id, Run.submission_id, Submission.title, Run.owner, Run.purpose, Run.plan_name, Run.device_type,
            Run.wanted_device, Run.wanted_backend, Run.state, Run.priority, Run.created_at, Run.blocks, Run.boots_done,
        )
        .outerjoin(Submission, Submission.id == Run.submission_id)
        .where(
            Run.state.in_([JobState.WAITING, JobState.QUEUED, JobState.RUNNING]), Run.cancel_requested_at.is_(None)
        )
        .order_by(Run.id)
    ).all()  # fmt: skip
    usual = timings.boots(session, {(row.plan_name, row.device_type) for row in rows})
    work = []
    for row in rows:
        boot = usual.get((row.plan_name, row.device_type))
        work.append(
            Work(
                run_id=row.id,
                submission_id=row.submission_id,
                title=row.title or f"{row.plan_name} on {row.wanted_device or row.device_type}",
                owner=row.owner,
                purpose=row.purpose,
                plan=row.plan_name,
                device_type=row.device_type,
                wanted_device=row.wanted_device,
                wanted_backend=row.wanted_backend,
                device=leases.get(row.id),
                state=row.state,
                priority=row.priority,
                created_at=row.created_at,
                boots_left=max(sum(len(arms) for arms in row.blocks) - row.boots_done, 0),
                boot_s=boot.seconds if boot else None,
            )
        )
    return QueueState(now, units, work, capacities(session, settings))


def pool_rows(session: Session) -> dict[str, Published]:
    """Lab -> what its worker told last of the lab's own server; labs that have one."""
    told = select(Lab.name, Lab.pool, Lab.published_at).where(Lab.pool.is_not(None))
    return {name: Published(pool, at) for name, pool, at in session.execute(told)}


def capacities(session: Session, settings: Settings) -> dict[str, int]:
    """Devices at once, per lab: what its worker published, else the setting; a lab without either has no bound."""
    labs = set(session.scalars(select(Device.lab).distinct()))
    default = dict.fromkeys(labs, settings.lab_capacity) if settings.lab_capacity else {}
    return default | pairs(session, select(Lab.name, Lab.capacity))
