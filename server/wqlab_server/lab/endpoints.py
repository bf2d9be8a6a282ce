"""The lab: devices, their health and who has them; taking one out of the pool and putting it back."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query

from wqlab_contracts import cpu_layout
from wqlab_contracts.api.submissions import DeviceTypeView, DeviceView, QuarantineRequest, UnitCounts
from wqlab_contracts.specs import DeviceType
from wqlab_contracts.yamlfile import known_or_hint

from ..http.auth import Maintainer, Reader
from ..http.deps import Data, Db
from ..http.paging import plain_text
from ..http.problems import documented, not_found
from ..views.build import device_view
from . import queries, service

router = APIRouter(tags=["lab"], responses=documented(401, 403, 422, 429))

Name = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]


@router.get("/devices")
def list_devices(
    session: Db, _: Reader, device_type: Annotated[str | None, Query(max_length=100)] = None
) -> list[DeviceView]:
    """Every device of the device-types folder."""
    if device_type is not None:
        plain_text("device_type", device_type)
    found = queries.devices(session, device_type)
    checks = queries.checks(session, [row.name for row, _ in found])
    stands = queries.standings(session, found)
    return [device_view(row, lease, stands[row.name], checks.get(row.name)) for row, lease in found]


@router.get("/devices/{name}", responses=documented(404))
def get_device(name: Name, session: Db, _: Reader) -> DeviceView:
    """One device: health, lease, and the topology that its last verified boot measured."""
    return queries.view(session, name)


@router.post("/devices/{name}/quarantine", responses=documented(400, 404))
def quarantine_device(name: Name, body: QuarantineRequest, session: Db, who: Maintainer) -> DeviceView:
    """Take a device out of the pool. A run that has it keeps it until it ends, no other gets it, and health checks that
    wait for it are canceled."""
    reason = plain_text("reason", body.reason, "body")
    queries.device(session, name)
    service.quarantine(session, name, reason, who.owner)
    return queries.view(session, name)


@router.post("/devices/{name}/release", responses=documented(404))
def release_device(name: Name, session: Db, who: Maintainer) -> DeviceView:
    """Put a quarantined device back. A health check is ordered at once, and comes before its first run."""
    queries.device(session, name)
    service.release(session, name, who.owner)
    return queries.view(session, name)


@router.get("/device-types")
def list_device_types(session: Db, data: Data, _: Reader) -> list[DeviceTypeView]:
    """Every type of the device-types folder as it is now, with devices free and runs waiting."""
    pairs = queries.devices(session)
    counts, queued = queries.count_units(pairs), queries.queued_by_type(session)
    problems = data.problems()
    return [
        _type_view(spec, counts.get(spec.name), queued.get(spec.name, 0), problems)
        for spec in data.current().device_types.values()
    ]


@router.get("/device-types/{name}", responses=documented(404))
def get_device_type(name: Name, session: Db, data: Data, _: Reader) -> DeviceTypeView:
    """One type."""
    types = data.current().device_types
    if name not in types:
        raise not_found("device type", name, known_or_hint(name, set(types)))
    counts = queries.count_units(queries.devices(session, name))
    return _type_view(types[name], counts.get(name), queries.queued_by_type(session).get(name, 0), data.problems())


def _type_view(spec: DeviceType, counts: UnitCounts | None, queued: int, problems: list[str]) -> DeviceTypeView:
    units = counts or UnitCounts(good=0, busy=0, unchecked=0, quarantined=0)
    return DeviceTypeView(
        name=spec.name,
        summary=spec.summary,
        tested=spec.tested,
        arch=spec.arch,
        emulated=spec.emulated,
        topology=spec.topology,
        layout=cpu_layout.described(spec.topology),
        devices=[unit.name for unit in spec.units],
        units=units,
        free=units.good + units.unchecked,
        queued_runs=queued,
        problems=problems,
    )
