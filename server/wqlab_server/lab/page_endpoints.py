"""REST endpoints of the lab pages: the queue, device history and device checks."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, status

from wqlab_contracts.api.canaries import CanaryRecord
from wqlab_contracts.api.plans import Names
from wqlab_contracts.api.queue import DeviceCheck, DeviceHistory, QueueView
from wqlab_contracts.enums import AuditAction

from ..estimates import canaries, lab_snapshot
from ..http import long_poll
from ..http.audit import Audit
from ..http.auth import Maintainer, Reader
from ..http.deps import AppSettings, Data, Db
from ..http.paging import PAGE_DEFAULT, After, Id, Limit, plain_text
from ..http.problems import documented
from ..orders.orders import waiting_orders
from ..storage.db import SessionFactory, transaction
from ..storage.events import CHECK_CHANNEL
from . import checks, history, queries, queue, service

router = APIRouter(tags=["lab"], responses=documented(401, 403, 422, 429))

Name = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]


@router.get("/names")
def list_names(session: Db, data: Data, _: Reader) -> Names:
    """List the names of plans with their metrics, of device types (those that sweeps have used too) and of trees."""
    folder = data.current()
    return Names(
        plans={name: [metric.name for metric in plan.metrics] for name, plan in folder.plans.items()},
        device_types=[*folder.device_types, *(each.name for each in service.generated_types(session, folder))],
        trees=list(folder.trees),
    )


@router.get("/queue")
def get_queue(session: Db, settings: AppSettings, _: Reader) -> QueueView:
    """List the runs that wait for a device, in the order in which devices are assigned, and why each waits."""
    return queue.view(lab_snapshot.load(session, settings), waiting_orders(session))


@router.get("/devices/{name}/history", responses=documented(404))
def get_device_history(name: Name, session: Db, _: Reader, before: After, limit: Limit = PAGE_DEFAULT) -> DeviceHistory:
    """Return a device's health changes, its runs, and its last consoles. `cursor` pages through the runs."""
    device, _lease = queries.device(session, name)
    return history.device_history(session, device, before, limit)


@router.get("/canaries")
def list_canaries(
    session: Db,
    _: Reader,
    device: Annotated[str | None, Query(max_length=100)] = None,
    plan: Annotated[str | None, Query(max_length=100)] = None,
) -> list[CanaryRecord]:
    """List what A/A comparisons have shown of devices, by device, plan and kind of canary: noise floor, false positive
    rate, and the smallest effects that are found."""
    for name, text in (("device", device), ("plan", plan)):
        if text is not None:
            plain_text(name, text)
    return canaries.records(session, device=device, plan=plan)


@router.post("/devices/{name}/check", status_code=status.HTTP_202_ACCEPTED, responses=documented(404, 409))
def start_device_check(name: Name, session: Db, who: Maintainer, audit: Audit) -> DeviceCheck:
    """Request a health check, which runs as soon as the device is free: power, console, golden system, kexec, topology,
    detectors, fitness, scratch devices. Returns the unfinished check if there is one; a quarantined device is refused
    (409), because its release orders a check."""
    check_id = checks.request(session, name, who.owner).id
    audit.record(session, AuditAction.CHECK_DEVICE, f"device/{name}", check=check_id)
    return checks.read(session, name, check_id)


@router.get("/devices/{name}/checks/{check_id}", responses=documented(404, 503))
async def get_device_check(
    *,
    name: Name,
    check_id: Id,
    request: Request,
    _: Reader,
    seen: Annotated[int, Query(ge=-1, description="`changes` of the last response; wait until there are more")] = -1,
    wait_s: Annotated[float, Query(ge=0, le=long_poll.MAX_S, description="Longest time to wait, in seconds")] = 0,
) -> DeviceCheck:
    """Return the current state of a device check; long polling with `seen` and `wait_s`."""
    factory: SessionFactory = request.app.state.sessions

    def read() -> DeviceCheck:
        with transaction(factory) as session:
            return checks.read(session, name, check_id)

    return await long_poll.wait_until(
        lambda check: check.changes > seen or check.finished_at is not None,
        read,
        request=request,
        topic=(CHECK_CHANNEL, str(check_id)),
        wait_s=wait_s,
    )
