"""Manage the device pool: sync devices from the data folder, quarantine, release, and record health."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import structlog
from sqlalchemy import Select, func, select, true, type_coerce, update
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlalchemy.orm import Session, defer

from wqlab_contracts.celery_names import SERVER_QUEUE, TICK
from wqlab_contracts.enums import AuditAction, DeviceHealth, JobState, OutboxEvent, Outcome, RunPurpose
from wqlab_contracts.loading import DataFolder
from wqlab_contracts.messages import DeviceFacts, Failure, LavaBoot, LavaPool
from wqlab_contracts.specs import Backend, DeviceType, GeneratedTopology, Unit

from ..http.problems import not_found
from ..jobs.errors import canceled_failure
from ..models import Device, HealthChange, Lab, Lease, Run
from ..storage import audit
from ..storage.announcements import announce
from ..storage.db import Message, clock, post
from . import health, lease

log = structlog.get_logger(__name__)

# --- devices ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PoolChange:
    """A difference between the data folder and the devices table. `facts` is None for a device to retire."""

    name: str
    facts: DeviceFacts | None


def pool_changes(session: Session, data: DataFolder) -> list[PoolChange]:
    """Return the changes that bring the devices table in line with the device-types folder and the generated types that
    are in use, for `change_pool`."""
    # Compared as JSON, not as models: a row that the current model cannot read counts as different and is rewritten.
    known = {
        row.name: row
        for row in session.execute(
            select(Device.name, Device.retired_at, type_coerce(Device.facts, JSONB).label("facts"))
        )
    }
    declared = {
        unit.name: device_facts(data, device_type, unit)
        for device_type in [*data.device_types.values(), *generated_types(session, data)]
        for unit in device_type.units
    }
    changes = [
        PoolChange(name, facts)
        for name, facts in sorted(declared.items())
        if name not in known
        or known[name].retired_at is not None
        or known[name].facts != facts.model_dump(mode="json", by_alias=True)
    ]
    removed = [name for name, row in sorted(known.items()) if name not in declared and row.retired_at is None]
    return [*changes, *(PoolChange(name, None) for name in removed)]


def generated_types(session: Session, data: DataFolder) -> list[DeviceType]:
    """Return the generated device types that have a device or that an unfinished run needs, by topology.

    A type is generated from its name, so a run that names it is all that it takes to create its device.
    """
    used = select(Device.device_type).where(Device.retired_at.is_(None))
    needed = select(Run.device_type).where(Run.state != JobState.FINISHED)
    names = {*session.scalars(used.distinct()), *session.scalars(needed.distinct())} - data.device_types.keys()
    generated = [each for name in names if (each := data.generated_type(name)) is not None]
    return sorted(generated, key=lambda each: (each.topology.cpus, each.topology.l3_domains, each.topology.numa_nodes))


def change_pool(session: Session, change: PoolChange) -> None:
    """Apply one change to the devices table.

    A removed device is retired, not deleted. A device whose description changed gets unknown health, and so is checked
    before its next run.
    """
    facts = change.facts
    row = update(Device).where(Device.name == change.name).execution_options(synchronize_session=False)
    if facts is None:
        audit.record(session, audit.OPERATOR, AuditAction.CHANGE_DEVICE, f"device/{change.name}", change="removed")
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
    audit.record(
        session,
        audit.OPERATOR,
        AuditAction.CHANGE_DEVICE,
        f"device/{change.name}",
        change="added" if before is None else "changed",
        device_type=facts.device_type,
        lab=facts.lab,
    )
    if before is None:
        session.add(Device(name=change.name, **described))
        return
    if before.health is not DeviceHealth.QUARANTINED:
        fresh = health.Health(DeviceHealth.UNKNOWN, "")
        _record_change(session, change.name, health.Health(*before), fresh, by="device-types")
        described |= {"health": fresh.state, "health_reason": fresh.reason}
        described |= {"measured_topology": None, "health_checked_at": None}
    session.execute(row.values(retired_at=None, **described))


def device_facts(data: DataFolder, device_type: DeviceType, unit: Unit) -> DeviceFacts:
    """Return what a worker needs to know about a device, from its type and its `units:` entry."""
    lava = device_type.lava if unit.backend == "lava" else None
    return DeviceFacts(
        name=unit.name,
        device_type=device_type.name,
        lab=unit.lab,
        arch=device_type.arch,
        topology=device_type.topology,
        boot=device_type.boot.model_copy(update={"kernel_arguments": device_type.variant_arguments}),
        conditions=device_type.conditions,
        emulated=device_type.on_bench,
        scratch=unit.scratch,
        power=unit.power,
        netconsole=unit.netconsole,
        own_system=unit.own_system,
        backend=unit.backend,
        lava=LavaBoot(mapping=lava, template=data.lava_templates[lava.boot]) if lava else None,
        emulation=device_type.emulation if device_type.instrumented else None,
        costs=data.costs_of(device_type),
    )


def publish_capacity(session: Session, lab: str, capacity: int, pool: LavaPool | None = None) -> int | None:
    """Store how many devices a lab can run at once, and the report about its LAVA server.

    Returns the previous number of devices; None if the lab is new.
    """
    previous = session.scalar(select(Lab.capacity).where(Lab.name == lab))
    report = {"capacity": capacity, "pool": pool, "published_at": func.now()}
    session.execute(
        insert(Lab).values(name=lab, **report).on_conflict_do_update(index_elements=[Lab.name], set_=report)
    )
    return previous


def publish_refused(session: Session, lab: str, refused: Mapping[str, str], data: DataFolder) -> None:
    """Quarantine the lab's devices of refused types; release those that the lab had refused and refuses no longer.

    `refused`: device type -> the reason that the lab gives. It knows no generated types; these are refused with the
    instrumented or modelled types of the data folder if it can emulate none of them.
    """
    by = f"lab {lab}"
    of_generated = {modelled: _refused_alike(lab, refused, data, modelled) for modelled in (False, True)}
    devices = session.scalars(select(Device).where(Device.lab == lab, Device.retired_at.is_(None))).all()
    for device in devices:
        quarantined = device.health is DeviceHealth.QUARANTINED
        generated = GeneratedTopology.parse(device.device_type)
        reason = of_generated[bool(generated.costs)] if generated else refused.get(device.device_type)
        if reason is not None and not quarantined:
            quarantine(session, device.name, reason, by)
        elif reason is None and quarantined and _last_changed_by(session, device.name) == by:
            release(session, device.name, by)


def _refused_alike(lab: str, refused: Mapping[str, str], data: DataFolder, modelled: bool) -> str | None:
    """Return why the lab refuses all of its instrumented x86-64 types, or all modelled ones; None if it has one."""
    reasons = [
        refused.get(each.name)
        for each in data.device_types.values()
        if each.instrumented
        and each.modelled == modelled
        and each.arch == "x86_64"
        and any(unit.lab == lab for unit in each.units)
    ]
    return reasons[0] if reasons and all(reasons) else None


def _last_changed_by(session: Session, device: str) -> str | None:
    change = select(HealthChange.by).where(HealthChange.device_name == device).order_by(HealthChange.id.desc())
    return session.scalar(change.limit(1))


def quarantine(session: Session, name: str, reason: str, by: str) -> Device:
    """Take a device out of the pool. A run on the device continues; waiting health checks of it are canceled.

    Raises ApiProblem 404.
    """
    # Lock order: runs before devices. The tick cancels a check that is ordered in the meantime.
    checks = session.scalars(waiting_checks().where(Run.wanted_device == name).with_for_update()).all()
    device = _lock_device(session, name)
    set_health(session, device, health.change_health(device.health, DeviceHealth.QUARANTINED, f"{reason} ({by})"), by)
    device.check_requested_at = None
    for check in checks:
        lease.finish_unclaimed(session, check, Outcome.CANCELED, out_of_pool_failure(device))
    return device


def release(session: Session, name: str, by: str) -> Device:
    """Return a quarantined device to the pool and order a health check at once. Raises ApiProblem 404."""
    device = _lock_device(session, name)
    if device.health is DeviceHealth.QUARANTINED:
        set_health(session, device, health.change_health(device.health, DeviceHealth.UNKNOWN, ""), by)
        request_check(session, device)
    return device


def request_check(session: Session, device: Device) -> None:
    """Request a health check. The next tick schedules it for when the device is free."""
    if device.check_requested_at is None:
        device.check_requested_at = clock(session)
        post(session, Message(TICK, None, SERVER_QUEUE))


def set_health(session: Session, device: Device, after: health.Health, by: str, run_id: int | None = None) -> None:
    """Set a device's health, and record a change and its author in the device's history."""
    before = health.Health(device.health, device.health_reason)
    device.health, device.health_reason = after.state, after.reason
    _record_change(session, device.name, before, after, by=by, run_id=run_id)


def _record_change(
    session: Session, name: str, before: health.Health, after: health.Health, *, by: str, run_id: int | None = None
) -> None:
    if before == after:
        return
    change = HealthChange(device_name=name, health=after.state, reason=after.reason, by=by, run_id=run_id)
    session.add(change)
    if after.state is DeviceHealth.QUARANTINED and before.state is not DeviceHealth.QUARANTINED:
        session.flush()
        announce(
            session, OutboxEvent.DEVICE_QUARANTINED, f"{name}/{change.id}", device=name, reason=after.reason, by=by
        )


def waiting_checks() -> Select[Run]:
    """Select the health checks that no worker holds, without the snapshot columns."""
    snapshot = (Run.plan, Run.profile, Run.files, Run.recipe, Run.fragments, Run.modules)
    deferred = [defer(column, raiseload=True) for column in snapshot]
    return (
        select(Run)
        .where(Run.purpose == RunPurpose.HEALTH_CHECK, Run.state.in_([JobState.WAITING, JobState.QUEUED]))
        .order_by(Run.id)
        .options(*deferred)
    )


def out_of_pool_failure(device: Device) -> Failure:
    """Return the failure that cancels a check of a device that is quarantined or retired."""
    if device.retired_at is not None:
        return canceled_failure(f"{device.name} is no longer in the device-types folder")
    return canceled_failure(f"{device.name} was quarantined: {device.health_reason}")


def _lock_device(session: Session, name: str) -> Device:
    device = session.scalar(select(Device).where(Device.name == name).with_for_update())
    if device is None:
        raise not_found("device", name)
    return device


# --- expired offers ---------------------------------------------------------------------------------------------


def drop_expired_offers(session: Session) -> None:
    """Delete offers that no worker claimed in time; their devices become free."""
    now = clock(session)
    for offer in session.scalars(select(Lease).where(Lease.holder == "", Lease.expires_at <= now).with_for_update()):
        log.warning("offer_not_taken", device=offer.device_name, run=offer.run_id)
        session.delete(offer)


# --- devices out of service --------------------------------------------------------------------------------------


def out_of_service_reason(session: Session, device_type: str, backend: Backend | None = None) -> str | None:
    """Return why no device of the type and backend can become free: all are quarantined or retired. None if one can."""
    known = session.execute(
        select(Device.name, Device.health, Device.health_reason, Device.retired_at)
        .where(Device.device_type == device_type, true() if backend is None else Device.backend == backend)
        .order_by(Device.name)
    ).all()
    devices = [device for device in known if device.retired_at is None]
    # A type without any row is new: the next tick reads its devices from the data folder.
    if not known or any(device.health is not DeviceHealth.QUARANTINED for device in devices):
        return None
    if not devices:
        return f"device type {device_type} no longer has a device"
    reasons = "; ".join(f"{device.name}: {device.health_reason or 'no reason given'}" for device in devices)
    return f"every device of {device_type} is quarantined ({reasons})"


# --- worker API -------------------------------------------------------------------------------------------------


def live_leases(session: Session, lab: str) -> list[dict[str, object]]:
    """Return the leases that workers of the lab hold now, for the lab's reaper."""
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
