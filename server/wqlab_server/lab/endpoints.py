"""REST endpoints of devices and device types: list, quarantine, release."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query

from wqlab_contracts import cpu_layout
from wqlab_contracts.api.devices import DeviceCounts, DeviceTypeView, DeviceView, QuarantineRequest
from wqlab_contracts.enums import AuditAction
from wqlab_contracts.specs import DeviceType, GeneratedTopology

from ..http.audit import Audit
from ..http.auth import Maintainer, Reader
from ..http.deps import Data, Db
from ..http.paging import plain_text
from ..http.problems import documented
from ..views.build import device_view
from . import queries, service

router = APIRouter(tags=["lab"], responses=documented(401, 403, 422, 429))

Name = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]


@router.get("/devices")
def list_devices(
    session: Db, _: Reader, device_type: Annotated[str | None, Query(max_length=100)] = None
) -> list[DeviceView]:
    """List all devices that are not retired, or only those of one device type."""
    if device_type is not None:
        plain_text("device_type", device_type)
    found = queries.devices(session, device_type)
    names = [row.name for row, _ in found]
    checks, leases = queries.unfinished_checks(session, names), queries.lease_views(session, names)
    available = queries.availability_by_device(session, found)
    return [device_view(row, leases.get(row.name), available[row.name], checks.get(row.name)) for row, _ in found]


@router.get("/devices/{name}", responses=documented(404))
def get_device(name: Name, session: Db, _: Reader) -> DeviceView:
    """Return one device: health, lease, and the topology measured by its last verified boot."""
    return queries.view(session, name)


@router.post("/devices/{name}/quarantine", responses=documented(400, 404))
def quarantine_device(name: Name, body: QuarantineRequest, session: Db, who: Maintainer, audit: Audit) -> DeviceView:
    """Take a device out of the pool. A run that has the device keeps it until the run ends; no other run gets the
    device; health checks that wait for it are canceled."""
    reason = plain_text("reason", body.reason, "body")
    queries.device(session, name)
    service.quarantine(session, name, reason, who.owner)
    audit.record(session, AuditAction.QUARANTINE_DEVICE, f"device/{name}", reason=reason)
    return queries.view(session, name)


@router.post("/devices/{name}/release", responses=documented(404))
def release_device(name: Name, session: Db, who: Maintainer, audit: Audit) -> DeviceView:
    """Return a quarantined device to the pool. A health check is ordered at once and runs before any other run."""
    queries.device(session, name)
    service.release(session, name, who.owner)
    audit.record(session, AuditAction.RELEASE_DEVICE, f"device/{name}")
    return queries.view(session, name)


@router.get("/device-types")
def list_device_types(session: Db, data: Data, _: Reader) -> list[DeviceTypeView]:
    """List the types of the device-types folder as it is now, with free devices and queued runs, and behind them the
    generated types that have been used."""
    rows = queries.devices(session)
    folder = data.current()
    counts, queued = queries.count_devices(rows), queries.queued_by_type(session)
    problems = data.problems()
    return [
        _type_view(spec, counts.get(spec.name), queued.get(spec.name, 0), problems)
        for spec in [*folder.device_types.values(), *service.generated_types(session, folder)]
    ]


def _type_view(spec: DeviceType, counts: DeviceCounts | None, queued: int, problems: list[str]) -> DeviceTypeView:
    device_counts = counts or DeviceCounts(**dict.fromkeys(DeviceCounts.model_fields, 0))
    return DeviceTypeView(
        name=spec.name,
        summary=spec.summary,
        tested=spec.tested is True,
        rehearsed=spec.rehearsed,
        arch=spec.arch,
        emulated=spec.emulated,
        modelled=spec.modelled,
        generated=GeneratedTopology.parse(spec.name) is not None,
        topology=spec.topology,
        layout=cpu_layout.declared_layout(spec.topology),
        devices=[unit.name for unit in spec.units],
        device_counts=device_counts,
        free=device_counts.free,
        queued_runs=queued,
        problems=problems,
    )
