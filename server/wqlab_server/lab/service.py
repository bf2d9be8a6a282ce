"""The pool: devices from the data folder, in and out of service, and the leases on them."""

from __future__ import annotations

import structlog
from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from wqlab_contracts.enums import DeviceHealth
from wqlab_contracts.loading import DataFolder
from wqlab_contracts.messages import DeviceFacts
from wqlab_contracts.queue import SERVER_QUEUE, TICK
from wqlab_contracts.specs import DeviceType, Unit

from ..db import Message, clock, post
from ..models import Device, HealthChange, Lab, Lease
from ..problems import ApiProblem, not_found
from . import health

log = structlog.get_logger(__name__)

# --- devices ----------------------------------------------------------------------------------------------------


def sync_devices(session: Session, data: DataFolder) -> None:
    """Brings the devices table to what the device-types folder says; a unit that is gone is retired, not deleted.

    A unit whose board was described differently is checked again before its next run.
    """
    known = {device.name: device for device in session.scalars(select(Device).order_by(Device.name).with_for_update())}
    now = clock(session)
    declared: set[str] = set()
    for device_type in data.device_types.values():
        for unit in device_type.units:
            declared.add(unit.name)
            facts = device_facts(device_type, unit)
            device = known.get(unit.name)
            if device is None:
                session.add(Device(name=unit.name, device_type=device_type.name, lab=unit.lab, facts=facts))
                continue
            if device.facts != facts or device.retired_at is not None:
                device.facts, device.device_type, device.lab = facts, device_type.name, unit.lab
                device.retired_at = None
                if device.health is not DeviceHealth.QUARANTINED:
                    note(session, device, health.Health(DeviceHealth.UNKNOWN, ""), "device-types")
                    device.measured_topology, device.health_checked_at = None, None
    for device in known.values():
        if device.name not in declared and device.retired_at is None:
            device.retired_at = now


def device_facts(device_type: DeviceType, unit: Unit) -> DeviceFacts:
    return DeviceFacts(
        name=unit.name,
        device_type=device_type.name,
        lab=unit.lab,
        arch=device_type.arch,
        topology=device_type.topology,
        boot=device_type.boot.model_copy(update={"kernel_arguments": device_type.kernel_arguments}),
        emulated=device_type.emulated,
        scratch=unit.scratch,
    )


def publish_capacity(session: Session, lab: str, capacity: int) -> None:
    """How many boards a lab's worker can run at once."""
    row = {"name": lab, "capacity": capacity}
    session.execute(
        insert(Lab)
        .values(**row)
        .on_conflict_do_update(index_elements=[Lab.name], set_={"capacity": capacity, "published_at": func.now()})
    )


def quarantine(session: Session, name: str, reason: str, by: str) -> Device:
    """Takes a device out of the pool; a run that it has goes on to its end. Raises ApiProblem 404."""
    device = _lock_device(session, name)
    note(session, device, health.move(device.health, DeviceHealth.QUARANTINED, f"{reason} ({by})"), by)
    device.check_requested_at = None
    return device


def release(session: Session, name: str, by: str) -> Device:
    """Brings a quarantined device back; it is checked before its next run. Raises ApiProblem 404."""
    device = _lock_device(session, name)
    if device.health is DeviceHealth.QUARANTINED:
        note(session, device, health.move(device.health, DeviceHealth.UNKNOWN, ""), by)
    return device


def request_check(session: Session, name: str) -> Device:
    """Has a device checked as soon as it is free; the pipeline orders the check. Raises ApiProblem 404, 409 for one in
    quarantine."""
    device = _lock_device(session, name)
    if device.retired_at is not None:
        raise ApiProblem(409, f"{name} is no longer in the device-types folder")
    if device.health is DeviceHealth.QUARANTINED:
        raise ApiProblem(409, f"{name} is quarantined ({device.health_reason}); release it, then have it checked")
    if device.check_requested_at is None:
        device.check_requested_at = clock(session)
        post(session, Message(TICK, None, SERVER_QUEUE))
    return device


def note(session: Session, device: Device, after: health.Health, by: str, run_id: int | None = None) -> None:
    """Gives a device its health, and keeps in its history that and by whom it changed."""
    if (device.health, device.health_reason) != (after.state, after.reason):
        device.health, device.health_reason = after.state, after.reason
        session.add(
            HealthChange(device_name=device.name, health=after.state, reason=after.reason, by=by, run_id=run_id)
        )


def _lock_device(session: Session, name: str) -> Device:
    device = session.scalar(select(Device).where(Device.name == name).with_for_update())
    if device is None:
        raise not_found("device", name)
    return device


# --- leases that ran out ----------------------------------------------------------------------------------------


def drop_expired_offers(session: Session) -> None:
    """Devices set aside for runs that no worker came for."""
    now = clock(session)
    for stale in session.scalars(select(Lease).where(Lease.holder == "", Lease.expires_at <= now).with_for_update()):
        log.warning("offer_not_taken", device=stale.device_name, run=stale.run_id)
        session.delete(stale)


# --- what there is to give ---------------------------------------------------------------------------------------


def out_of_service(session: Session, device_type: str) -> str | None:
    """Why no unit of this type will come free: all are quarantined or gone. None when one may."""
    known = session.execute(
        select(Device.name, Device.health, Device.health_reason, Device.retired_at).where(
            Device.device_type == device_type
        )
    ).all()
    units = [unit for unit in known if unit.retired_at is None]
    # A type that was never seen is new: the next tick reads its units from the data folder.
    if not known or any(unit.health is not DeviceHealth.QUARANTINED for unit in units):
        return None
    if not units:
        return f"device type {device_type} has no unit any more"
    reasons = "; ".join(f"{unit.name}: {unit.health_reason or 'no reason given'}" for unit in units)
    return f"every unit of {device_type} is quarantined ({reasons})"


# --- what a lab's worker asks -----------------------------------------------------------------------------------


def live_leases(session: Session, lab: str) -> list[dict[str, object]]:
    """Leases that a worker holds now, for the lab's reaper."""
    now = clock(session)
    rows = session.execute(
        select(Lease)
        .join(Device, Device.name == Lease.device_name)
        .where(Device.lab == lab, Lease.expires_at > now, Lease.holder != "")
        .order_by(Lease.device_name)
    ).scalars()
    return [
        {
            "device": row.device_name,
            "run_id": row.run_id,
            "fence": row.fence,
            "holder": row.holder,
            "expires_in_s": (row.expires_at - now).total_seconds(),
        }
        for row in rows
    ]
