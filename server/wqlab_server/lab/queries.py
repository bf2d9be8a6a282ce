"""Reading the lab: devices, their leases, what waits for them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from wqlab_contracts.api import UnitCounts
from wqlab_contracts.enums import JobState, RunPurpose
from wqlab_contracts.yamlfile import known_or_hint

from ..models import Device, Lease, Run
from ..problems import not_found
from ..queue_state import unit_class


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


def checks(session: Session, names: Collection[str]) -> dict[str, int]:
    """Device -> the run that is checking its health, or waits to."""
    unfinished = session.execute(
        select(Run.wanted_device, func.max(Run.id))
        .where(Run.wanted_device.in_(names), Run.purpose == RunPurpose.HEALTH_CHECK, Run.state != JobState.FINISHED)
        .group_by(Run.wanted_device)
    )
    return {device: run_id for device, run_id in unfinished if device is not None}


def count_units(pairs_: Sequence[tuple[Device, Lease | None]]) -> dict[str, UnitCounts]:
    """Device type -> its boards by what can be had of them, each counted once."""
    counted: dict[str, Counter[str]] = defaultdict(Counter)
    for row, lease in pairs_:
        counted[row.device_type][unit_class(row.health, leased=lease is not None)] += 1
    return {
        device_type: UnitCounts(**{name: counts[name] for name in UnitCounts.model_fields})
        for device_type, counts in counted.items()
    }


def queued_by_type(session: Session) -> dict[str, int]:
    """Device type -> runs that wait for a device."""
    counted = session.execute(
        select(Run.device_type, func.count())
        .outerjoin(Lease, Lease.run_id == Run.id)
        .where(Run.state == JobState.QUEUED, Lease.run_id.is_(None))
        .group_by(Run.device_type)
    )
    return dict(counted.all())
