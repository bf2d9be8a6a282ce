"""The pool: devices from the data folder, in and out of service, and the leases on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import structlog
from sqlalchemy import Select, func, select, true, type_coerce, update
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlalchemy.orm import Session, defer

from wqlab_contracts.celery_names import SERVER_QUEUE, TICK
from wqlab_contracts.enums import DeviceHealth, JobState, Outcome, RunPurpose
from wqlab_contracts.loading import DataFolder
from wqlab_contracts.messages import DeviceFacts, Failure, LavaBoot, LavaPool
from wqlab_contracts.specs import Backend, DeviceType, Unit

from ..http.problems import ApiProblem, not_found
from ..jobs.errors import canceled
from ..models import Device, HealthChange, Lab, Lease, Run
from ..storage.db import Message, clock, post
from . import health, lease

log = structlog.get_logger(__name__)

# --- devices ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PoolChange:
    """A unit of the data folder that the devices table does not have, or has otherwise. No facts: it is gone."""

    name: str
    facts: DeviceFacts | None


def pool_changes(session: Session, data: DataFolder) -> list[PoolChange]:
    """What `change_pool` has to do to bring the devices table to what the device-types folder says."""
    # As JSON and not as models: a row that no model reads any more differs, and is written anew.
    known = {
        row.name: row
        for row in session.execute(
            select(Device.name, Device.retired_at, type_coerce(Device.facts, JSONB).label("facts"))
        )
    }
    declared = {
        unit.name: device_facts(data, device_type, unit)
        for device_type in data.device_types.values()
        for unit in device_type.units
    }
    changes = [
        PoolChange(name, facts)
        for name, facts in sorted(declared.items())
        if name not in known
        or known[name].retired_at is not None
        or known[name].facts != facts.model_dump(mode="json", by_alias=True)
    ]
    gone = [name for name, row in sorted(known.items()) if name not in declared and row.retired_at is None]
    return [*changes, *(PoolChange(name, None) for name in gone)]


def change_pool(session: Session, change: PoolChange) -> None:
    """A unit that is gone is retired, not deleted. One whose device was described differently is checked again before
    its next run."""
    facts = change.facts
    row = update(Device).where(Device.name == change.name).execution_options(synchronize_session=False)
    if facts is None:
        session.execute(row.values(retired_at=clock(session), check_requested_at=None))
        return
    described: dict[str, Any] = {
        "device_type": facts.device_type,
        "lab": facts.lab,
        "backend": facts.backend,
        "facts": facts,
    }
    before = session.execute(
        select(Device.health, Device.health_reason).where(Device.name == change.name).with_for_update()
    ).one_or_none()
    if before is None:
        session.add(Device(name=change.name, **described))
        return
    if before.health is not DeviceHealth.QUARANTINED:
        fresh = health.Health(DeviceHealth.UNKNOWN, "")
        _keep_change(session, change.name, health.Health(*before), fresh, by="device-types")
        described |= {"health": fresh.state, "health_reason": fresh.reason}
        described |= {"measured_topology": None, "health_checked_at": None}
    session.execute(row.values(retired_at=None, **described))


def device_facts(data: DataFolder, device_type: DeviceType, unit: Unit) -> DeviceFacts:
    lava = device_type.lava if unit.backend == "lava" else None
    return DeviceFacts(
        name=unit.name,
        device_type=device_type.name,
        lab=unit.lab,
        arch=device_type.arch,
        topology=device_type.topology,
        boot=device_type.boot.model_copy(update={"kernel_arguments": device_type.kernel_arguments}),
        conditions=device_type.conditions,
        emulated=device_type.emulated,
        scratch=unit.scratch,
        power=unit.power,
        backend=unit.backend,
        lava=LavaBoot(mapping=lava, template=data.lava_templates[lava.boot]) if lava else None,
    )


def publish_capacity(session: Session, lab: str, capacity: int, pool: LavaPool | None = None) -> None:
    """How many devices a lab's worker can run at once, and what its LAVA says of them."""
    told = {"capacity": capacity, "pool": pool, "published_at": func.now()}
    session.execute(insert(Lab).values(name=lab, **told).on_conflict_do_update(index_elements=[Lab.name], set_=told))


def publish_refused(session: Session, lab: str, refused: Mapping[str, str]) -> None:
    """Takes the devices out of the pool whose type (key) the lab has no devices of, for the reason that it gives; brings
    back those that it took out and no longer refuses."""
    by = f"lab {lab}"
    devices = session.scalars(select(Device).where(Device.lab == lab, Device.retired_at.is_(None))).all()
    for device in devices:
        quarantined = device.health is DeviceHealth.QUARANTINED
        reason = refused.get(device.device_type)
        if reason is not None and not quarantined:
            quarantine(session, device.name, reason, by)
        elif reason is None and quarantined and _last_changed_by(session, device.name) == by:
            release(session, device.name, by)


def _last_changed_by(session: Session, device: str) -> str | None:
    change = select(HealthChange.by).where(HealthChange.device_name == device).order_by(HealthChange.id.desc())
    return session.scalar(change.limit(1))


def quarantine(session: Session, name: str, reason: str, by: str) -> Device:
    """Takes a device out of the pool. A run that it has goes on to its end; checks that wait for it end now.

    Raises ApiProblem 404.
    """
    # Runs before devices, as everywhere. A check that is ordered meanwhile is found by the tick.
    checks = session.scalars(waiting_checks().where(Run.wanted_device == name).with_for_update()).all()
    device = _lock_device(session, name)
    note(session, device, health.move(device.health, DeviceHealth.QUARANTINED, f"{reason} ({by})"), by)
    device.check_requested_at = None
    for check in checks:
        lease.end_unclaimed(session, check, Outcome.CANCELED, uncheckable(device))
    return device


def release(session: Session, name: str, by: str) -> Device:
    """Brings a quarantined device back; a health check of it is ordered at once. Raises ApiProblem 404."""
    device = _lock_device(session, name)
    if device.health is DeviceHealth.QUARANTINED:
        note(session, device, health.move(device.health, DeviceHealth.UNKNOWN, ""), by)
        _want_check(session, device)
    return device


def request_check(session: Session, name: str) -> Device:
    """Has a device checked as soon as it is free; the check that it waits for already is that check.

    Raises ApiProblem 404, 409 for a device that is out of the pool.
    """
    device = _lock_device(session, name)
    if device.retired_at is not None:
        raise ApiProblem(409, f"{name} is no longer in the device-types folder")
    if device.health is DeviceHealth.QUARANTINED:
        raise ApiProblem(409, f"{name} is quarantined ({device.health_reason}); release it, then have it checked")
    pending = select(Run.id).where(
        Run.wanted_device == name, Run.purpose == RunPurpose.HEALTH_CHECK, Run.state != JobState.FINISHED
    )
    if session.scalar(pending.limit(1)) is None:
        _want_check(session, device)
    return device


def _want_check(session: Session, device: Device) -> None:
    """The next tick, which comes at once, orders it."""
    if device.check_requested_at is None:
        device.check_requested_at = clock(session)
        post(session, Message(TICK, None, SERVER_QUEUE))


def note(session: Session, device: Device, after: health.Health, by: str, run_id: int | None = None) -> None:
    """Gives a device its health, and keeps in its history that and by whom it changed."""
    before = health.Health(device.health, device.health_reason)
    device.health, device.health_reason = after.state, after.reason
    _keep_change(session, device.name, before, after, by=by, run_id=run_id)


def _keep_change(
    session: Session, name: str, before: health.Health, after: health.Health, *, by: str, run_id: int | None = None
) -> None:
    if before != after:
        session.add(HealthChange(device_name=name, health=after.state, reason=after.reason, by=by, run_id=run_id))


def waiting_checks() -> Select[Run]:
    """Health checks that no worker holds, without the columns that ending one does not need."""
    snapshot = (Run.plan, Run.profile, Run.files, Run.recipe, Run.fragments, Run.modules)
    lean = [defer(column, raiseload=True) for column in snapshot]
    return (
        select(Run)
        .where(Run.purpose == RunPurpose.HEALTH_CHECK, Run.state.in_([JobState.WAITING, JobState.QUEUED]))
        .order_by(Run.id)
        .options(*lean)
    )


def uncheckable(device: Device) -> Failure:
    """Why a health check of a device that is out of the pool ends."""
    if device.retired_at is not None:
        return canceled(f"{device.name} is no longer in the device-types folder")
    return canceled(f"{device.name} was quarantined: {device.health_reason}")


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


def out_of_service(session: Session, device_type: str, backend: Backend | None = None) -> str | None:
    """Why no unit of this type (that is reached by this backend) will come free: all are quarantined or gone. None when
    one may."""
    known = session.execute(
        select(Device.name, Device.health, Device.health_reason, Device.retired_at).where(
            Device.device_type == device_type, true() if backend is None else Device.backend == backend
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
