"""Read devices, their leases, and the number of runs that wait for them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from wqlab_contracts.api.devices import DeviceCounts, DeviceView, LeaseView
from wqlab_contracts.enums import DeviceHealth, JobState, RunPurpose
from wqlab_contracts.specs import Backend
from wqlab_contracts.yamlfile import suggest_name

from ..estimates.lab_snapshot import availability_class, published_pools
from ..estimates.lava_pools import Availability, availability
from ..http.problems import not_found
from ..models import Device, Lease, Run, Submission
from ..storage.db import clock
from ..views.build import device_view


def devices(session: Session, device_type: str | None = None) -> Sequence[tuple[Device, Lease | None]]:
    """Return the devices of the device-types folder with their leases, ordered by type and name."""
    query = (
        select(Device, Lease)
        .outerjoin(Lease, Lease.device_name == Device.name)
        .where(Device.retired_at.is_(None))
        .order_by(Device.device_type, Device.name)
    )
    if device_type is not None:
        query = query.where(Device.device_type == device_type)
    return session.execute(query).all()


def device(session: Session, name: str) -> tuple[Device, Lease | None]:
    """Return one device, also a retired one, with its lease. Raises ApiProblem 404 that suggests a similar name."""
    row = session.get(Device, name)
    if row is None:
        raise not_found("device", name, suggest_name(name, set(session.scalars(select(Device.name)))))
    return row, session.scalar(select(Lease).where(Lease.device_name == name))


def view(session: Session, name: str) -> DeviceView:
    """Return one device as the API shows it. Raises ApiProblem 404."""
    row, lease = device(session, name)
    available = availability_by_device(session, [(row, lease)])[name]
    held = lease_views(session, [name]).get(name)
    return device_view(row, held, available, unfinished_checks(session, [name]).get(name))


def lease_views(session: Session, names: Collection[str]) -> dict[str, LeaseView]:
    """Return device -> its lease, as the API shows it; devices without one are left out."""
    rows = session.execute(
        select(Lease, Run.submission_id, Run.owner, Run.plan_name, Run.purpose, Submission.title)
        .join(Run, Run.id == Lease.run_id)
        .outerjoin(Submission, Submission.id == Run.submission_id)
        .where(Lease.device_name.in_(names))
    )
    return {
        lease.device_name: LeaseView(
            run_id=lease.run_id,
            submission_id=submission_id,
            title=title or "",
            owner=owner,
            plan=plan,
            purpose=purpose,
            holder=lease.holder,
            fence=lease.fence,
            expires_at=lease.expires_at,
        )
        for lease, submission_id, owner, plan, purpose, title in rows
    }


def unfinished_checks(session: Session, names: Collection[str]) -> dict[str, int]:
    """Return device -> id of its waiting or running health check run; devices without one are left out."""
    unfinished = session.execute(
        select(Run.wanted_device, func.max(Run.id))
        .where(Run.wanted_device.in_(names), Run.purpose == RunPurpose.HEALTH_CHECK, Run.state != JobState.FINISHED)
        .group_by(Run.wanted_device)
    )
    return {device: run_id for device, run_id in unfinished if device is not None}


def count_devices(rows: Sequence[tuple[Device, Lease | None]]) -> dict[str, DeviceCounts]:
    """Return device type -> its devices counted by availability, each device once."""
    counted: dict[str, Counter[str]] = defaultdict(Counter)
    for row, lease in rows:
        counted[row.device_type][availability_class(row.health, leased=lease is not None)] += 1
    return {
        device_type: DeviceCounts(**{name: counts[name] for name in DeviceCounts.model_fields})
        for device_type, counts in counted.items()
    }


def availability_by_device(session: Session, rows: Sequence[tuple[Device, Lease | None]]) -> dict[str, Availability]:
    """Return device -> its availability in its lab's own queue."""
    now, published = clock(session), published_pools(session)
    return {
        row.name: availability(row.name, row.lab, row.backend, published, now, ours=lease is not None)
        for row, lease in rows
    }


@dataclass
class PoolCounts:
    """Number of devices of one lab by availability, each device counted once."""

    backend: Backend = "labgrid"
    """That of the lab's devices, instrumented ones aside, which every lab can have."""
    devices: int = 0
    free: int = 0
    busy: int = 0
    unavailable: int = 0
    unavailable_reasons: set[str] = field(default_factory=set)
    """One entry per device state; an empty string for devices that are available."""

    @property
    def problem(self) -> str:
        """The reason that makes every device of the lab unavailable; empty if there is no such single reason."""
        [reason, *others] = self.unavailable_reasons or {""}
        return "" if others else reason


def pool_counts(session: Session) -> dict[str, PoolCounts]:
    """Return lab -> counts of its devices; labs without devices are left out."""
    rows = devices(session)
    available = availability_by_device(session, rows)
    counted: dict[str, PoolCounts] = defaultdict(PoolCounts)
    for row, lease in rows:
        counts, state = counted[row.lab], available[row.name]
        if row.backend != "instrumented" or not counts.devices:
            counts.backend = row.backend
        counts.devices += 1
        counts.unavailable_reasons.add(state.unavailable_reason)
        if lease is None and (state.unavailable_reason or row.health is DeviceHealth.QUARANTINED):
            counts.unavailable += 1
        elif lease is not None or state.held_elsewhere:
            counts.busy += 1
        else:
            counts.free += 1
    return counted


def queued_by_type(session: Session) -> dict[str, int]:
    """Return device type -> number of queued runs without a device."""
    counted = session.execute(
        select(Run.device_type, func.count())
        .outerjoin(Lease, Lease.run_id == Run.id)
        .where(
            Run.state == JobState.QUEUED,
            Lease.run_id.is_(None),
            Run.purpose != RunPurpose.CANARY,
        )
        .group_by(Run.device_type)
    )
    return dict(counted.all())
