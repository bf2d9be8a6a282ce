"""Reading the lab: devices, their leases, what waits for them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from wqlab_contracts.enums import DeviceHealth, JobState
from wqlab_contracts.yamlfile import known_or_hint

from ..models import Device, Lease, Run
from ..problems import not_found


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


def free_by_type(pairs: Sequence[tuple[Device, Lease | None]]) -> dict[str, int]:
    """Device type -> devices without a lease that are not quarantined."""
    free: dict[str, int] = {}
    for row, lease in pairs:
        if lease is None and row.health is not DeviceHealth.QUARANTINED:
            free[row.device_type] = free.get(row.device_type, 0) + 1
    return free


def queued_by_type(session: Session) -> dict[str, int]:
    """Device type -> runs that wait for a device."""
    counted = session.execute(
        select(Run.device_type, func.count())
        .outerjoin(Lease, Lease.run_id == Run.id)
        .where(Run.state == JobState.QUEUED, Lease.run_id.is_(None))
        .group_by(Run.device_type)
    )
    return dict(counted.all())
