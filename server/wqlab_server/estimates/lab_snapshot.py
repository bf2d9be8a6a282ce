"""Read the lab's current state: devices, their leases, and the runs that wait for them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_contracts.enums import DeviceHealth, JobState, RunPurpose
from wqlab_contracts.specs import Backend

from ..models import Device, Lab, Lease, Run, Submission
from ..settings import Settings
from ..storage.db import clock, fetch_dict
from . import timings
from .lava_pools import PublishedPool, availability
from .queue_score import queue_score
from .schedule import DeviceAvailability, Schedule


@dataclass(frozen=True)
class DeviceSnapshot:
    """A device of the pool with its health and lease."""

    name: str
    device_type: str
    lab: str
    health: DeviceHealth
    run_id: int | None
    """The run that the device is leased or offered to."""
    backend: Backend = "labgrid"
    unavailable_reason: str = ""
    """Why the lab's own server cannot provide the device now; empty when it can."""


def availability_class(health: DeviceHealth, *, leased: bool) -> str:
    """Return the field of `api.DeviceCounts` that counts a device."""
    if health is DeviceHealth.QUARANTINED:
        return "quarantined"
    if leased:
        return "busy"
    return health.value


@dataclass(frozen=True)
class UnfinishedRun:
    """A run that is waiting, queued or running."""

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
    """The device that the run has or is offered."""
    state: JobState
    priority: int
    created_at: datetime
    boots_left: int
    boot_s: float | None

    @property
    def remaining_s(self) -> float | None:
        """The device time in seconds that the run still needs; None if unknown."""
        return None if self.boot_s is None else self.boots_left * self.boot_s

    def can_use(self, device: DeviceSnapshot) -> bool:
        """Return True if the run may be given `device`, apart from the device's health and lease."""
        if self.wanted_device:
            return device.name == self.wanted_device
        return device.device_type == self.device_type and self.wanted_backend in (None, device.backend)


@dataclass(frozen=True)
class LabSnapshot:
    """Devices and unfinished runs at the time `now`."""

    now: datetime
    devices: list[DeviceSnapshot]
    runs: list[UnfinishedRun]
    """Ordered by id."""
    capacity: dict[str, int]
    """Lab -> devices at once; a lab without an entry has no limit."""

    @property
    def running(self) -> list[UnfinishedRun]:
        return [run for run in self.runs if run.state is JobState.RUNNING]

    @property
    def offered(self) -> list[UnfinishedRun]:
        return [run for run in self.runs if run.state is JobState.QUEUED and run.device is not None]

    @property
    def usable_types(self) -> set[str]:
        """Device types with a device that can measure, or may after a health check."""
        usable = (
            each for each in self.devices if each.health is not DeviceHealth.QUARANTINED and not each.unavailable_reason
        )
        return {device.device_type for device in usable}

    @cached_property
    def queued(self) -> list[UnfinishedRun]:
        """Queued runs without a device, in the order in which devices are assigned now."""
        free = [run for run in self.runs if run.state is JobState.QUEUED and run.device is None]
        return sorted(free, key=lambda run: (-self.score(run), run.run_id))

    @cached_property
    def devices_held(self) -> Counter[str]:
        """Owner -> number of devices leased or offered to the owner's runs."""
        return Counter(run.owner for run in self.runs if run.device is not None)

    def waited_s(self, run: UnfinishedRun) -> float:
        """Return the seconds since the run was created."""
        return max((self.now - run.created_at).total_seconds(), 0.0)

    def score(self, run: UnfinishedRun) -> float:
        """Return the run's score in the queue; the highest is served first."""
        return queue_score(run.priority, self.waited_s(run), self.devices_held[run.owner])

    def schedule(self) -> Schedule:
        """Return a schedule that starts from the runs that have a device.

        A device whose health is not good counts only if its type has no good one: a health check is short compared
        with a run.
        """
        runs = {run.run_id: run for run in self.runs}
        good_types = {device.device_type for device in self.devices if device.health is DeviceHealth.GOOD}
        usable, leased = [], []
        for device in self.devices:
            run = runs.get(device.run_id) if device.run_id is not None else None
            free_s = 0.0 if device.run_id is None else run.remaining_s if run else None
            entry = DeviceAvailability(device.name, device.device_type, device.lab, free_s)
            if device.run_id is not None:
                leased.append(entry)
            doubtful = device.health is not DeviceHealth.GOOD and device.device_type in good_types
            if device.health is not DeviceHealth.QUARANTINED and not doubtful and not device.unavailable_reason:
                usable.append(entry)
        return Schedule(usable, leased, self.capacity)


def load(session: Session, settings: Settings) -> LabSnapshot:
    """Read the current state from the database."""
    # Canaries give way to every other run, so a device that has one counts as free.
    leases = fetch_dict(
        session,
        select(Lease.run_id, Lease.device_name)
        .join(Run, Run.id == Lease.run_id)
        .where(Run.purpose != RunPurpose.CANARY),
    )
    by_device = {device: run_id for run_id, device in leases.items()}
    now, published = clock(session), published_pools(session)
    devices = [
        DeviceSnapshot(
            name,
            device_type,
            lab,
            health,
            by_device.get(name),
            backend,
            availability(name, lab, backend, published, now, ours=name in by_device).unavailable_reason,
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
            Run.state.in_([JobState.WAITING, JobState.QUEUED, JobState.RUNNING]),
            Run.cancel_requested_at.is_(None),
            Run.purpose != RunPurpose.CANARY,
        )
        .order_by(Run.id)
    ).all()  # fmt: skip
    boot_times = timings.boot_times(session, {(row.plan_name, row.device_type) for row in rows})
    runs = []
    for row in rows:
        boot = boot_times.get((row.plan_name, row.device_type))
        runs.append(
            UnfinishedRun(
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
    return LabSnapshot(now, devices, runs, lab_capacities(session, settings))


def published_pools(session: Session) -> dict[str, PublishedPool]:
    """Return LAVA lab -> the last report of its worker about the lab's LAVA server."""
    reports = select(Lab.name, Lab.pool, Lab.published_at).where(Lab.pool.is_not(None))
    return {name: PublishedPool(pool, at) for name, pool, at in session.execute(reports)}


def lab_capacities(session: Session, settings: Settings) -> dict[str, int]:
    """Return lab -> devices at once.

    A lab's own published capacity takes precedence over the setting; a lab without either has no entry and no limit.
    """
    labs = set(session.scalars(select(Device.lab).distinct()))
    default = dict.fromkeys(labs, settings.lab_capacity) if settings.lab_capacity else {}
    return default | fetch_dict(session, select(Lab.name, Lab.capacity))
