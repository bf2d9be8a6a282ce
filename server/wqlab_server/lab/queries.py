"""Reading the lab: devices, their leases, what waits for them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from wqlab_contracts.api.submissions import DeviceView, UnitCounts
from wqlab_contracts.enums import DeviceHealth, JobState, RunPurpose
from wqlab_contracts.specs import Backend
from wqlab_contracts.yamlfile import known_or_hint

from ..estimates.lab_snapshot import pool_rows, unit_class
from ..estimates.lava_pools import Standing, standing
from ..http.problems import not_found
from ..models import Device, Lease, Run
from ..storage.db import clock
from ..views.build import device_view


def devices(session: Session, device_type: str | None = None) -> Sequence[tuple[Device, Lease | None]]:
    """Devices that are in the YAML, by type and name, each with its lease."""
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
    """One device, a retired one too. Raises ApiProblem 404 with the name that was probably meant."""
    row = session.get(Device, name)
    if row is None:
        raise not_found("device", name, known_or_hint(name, set(session.scalars(select(Device.name)))))
    return row, session.scalar(select(Lease).where(Lease.device_name == name))


def view(session: Session, name: str) -> DeviceView:
    """Raises ApiProblem 404."""
    row, lease = device(session, name)
    stands = standings(session, [(row, lease)])[name]
    return device_view(row, lease, stands, checks(session, [name]).get(name))


def checks(session: Session, names: Collection[str]) -> dict[str, int]:
    """Device -> the run that is checking its health, or waits to."""
    unfinished = session.execute(
        select(Run.wanted_device, func.max(Run.id))
        .where(Run.wanted_device.in_(names), Run.purpose == RunPurpose.HEALTH_CHECK, Run.state != JobState.FINISHED)
        .group_by(Run.wanted_device)
    )
    return {device: run_id for device, run_id in unfinished if device is not None}


def count_units(pairs_: Sequence[tuple[Device, Lease | None]]) -> dict[str, UnitCounts]:
    """Device type -> its devices by what can be had of them, each counted once."""
    counted: dict[str, Counter[str]] = defaultdict(Counter)
    for row, lease in pairs_:
        counted[row.device_type][unit_class(row.health, leased=lease is not None)] += 1
    return {
        device_type: UnitCounts(**{name: counts[name] for name in UnitCounts.model_fields})
        for device_type, counts in counted.items()
    }


def standings(session: Session, pairs_: Sequence[tuple[Device, Lease | None]]) -> dict[str, Standing]:
    """Device -> what its lab's own server says of it."""
    now, published = clock(session), pool_rows(session)
    return {
        row.name: standing(row.name, row.lab, row.backend, published, now, ours=lease is not None)
        for row, lease in pairs_
    }


@dataclass
class PoolCounts:
    """The devices of one lab, each counted once."""

    backend: Backend = "labgrid"
    devices: int = 0
    free: int = 0
    busy: int = 0
    away: int = 0
    problems: set[str] = field(default_factory=set)

    @property
    def problem(self) -> str:
        """The one reason for which none can be had."""
        [reason, *others] = self.problems or {""}
        return "" if others else reason


def pool_counts(session: Session) -> dict[str, PoolCounts]:
    """Lab -> its devices; labs that have any."""
    rows = devices(session)
    stands = standings(session, rows)
    counted: dict[str, PoolCounts] = defaultdict(PoolCounts)
    for row, lease in rows:
        counts, stand = counted[row.lab], stands[row.name]
        counts.backend = row.backend
        counts.devices += 1
        counts.problems.add(stand.away)
        if lease is None and (stand.away or row.health is DeviceHealth.QUARANTINED):
            counts.away += 1
        elif lease is not None or stand.elsewhere:
            counts.busy += 1
        else:
            counts.free += 1
    return counted


def queued_by_type(session: Session) -> dict[str, int]:
    """Device type -> runs that wait for a device."""
    counted = session.execute(
        select(Run.device_type, func.count())
        .outerjoin(Lease, Lease.run_id == Run.id)
        .where(Run.state == JobState.QUEUED, Lease.run_id.is_(None))
        .group_by(Run.device_type)
    )
    return dict(counted.all())
