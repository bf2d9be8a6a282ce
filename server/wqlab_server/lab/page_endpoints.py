"""The lab's page: the queue and its reasons, what ran where, one device's history."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, status
from starlette.concurrency import run_in_threadpool

from wqlab_contracts.api.queue import DeviceCheck, DeviceHistory, QueueView, Timeline
from wqlab_contracts.api.submissions import DeviceView

from ..estimates import lab_snapshot
from ..http.auth import Maintainer, Reader
from ..http.deps import AppSettings, Db
from ..http.paging import PAGE_DEFAULT, After, Id, Limit, plain_text
from ..http.problems import documented, invalid
from ..http.sse import notifications_of
from ..storage.db import SessionFactory, clock, transaction
from ..storage.events import CHECK_CHANNEL
from . import checks, history, queries, queue, service

router = APIRouter(tags=["lab"], responses=documented(401, 403, 422, 429))

Name = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
BARS_DEFAULT = 500
BARS_MAX = 2000
SPAN_DEFAULT = timedelta(days=1)
SPAN_MAX = timedelta(days=31)
WAIT_MAX_S = 20.0


@router.get("/queue")
def get_queue(session: Db, settings: AppSettings, _: Reader) -> QueueView:
    """Every run that waits for a device, in the order in which devices are given out, and why it waits."""
    return queue.view(lab_snapshot.load(session, settings))


@router.get("/lab/timeline")
def get_lab_timeline(
    *,
    session: Db,
    _: Reader,
    after: After,
    since: Annotated[datetime | None, Query(alias="from", description="Default: a day before `to`")] = None,
    until: Annotated[
        datetime | None, Query(alias="to", description="Default: now; at most 31 days after `from`")
    ] = None,
    device_type: Annotated[str | None, Query(max_length=100)] = None,
    device: Annotated[str | None, Query(max_length=100)] = None,
    limit: Annotated[int, Query(ge=1, le=BARS_MAX, description="Most bars")] = BARS_DEFAULT,
) -> Timeline:
    """Which run had which device when: every time span that touches `from` to `to`."""
    for name, text in (("device_type", device_type), ("device", device)):
        if text is not None:
            plain_text(name, text)
    end = _aware(until) if until is not None else clock(session)
    try:
        start = _aware(since) if since is not None else end - SPAN_DEFAULT
        wrong = (
            None if start < end <= start + SPAN_MAX else f"`from` must be before `to`, by at most {SPAN_MAX.days} days"
        )
    except OverflowError:
        wrong = "no such date"
    if wrong is not None:
        raise invalid([{"parameter": "from", "in": "query", "detail": wrong}])
    return history.timeline(session, history.Span(start, end, device_type, device), after, limit)


def _aware(at: datetime) -> datetime:
    """A time without a zone is UTC, as everywhere in the API."""
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at


@router.get("/devices/{name}/history", responses=documented(404))
def get_device_history(name: Name, session: Db, _: Reader, before: After, limit: Limit = PAGE_DEFAULT) -> DeviceHistory:
    """How a device's health changed, what ran on it, and its last consoles. `cursor` pages through the runs."""
    device, _lease = queries.device(session, name)
    return history.of_device(session, device, before, limit)


@router.post("/devices/{name}/health-check", status_code=status.HTTP_202_ACCEPTED, responses=documented(404, 409))
def check_device(name: Name, session: Db, _: Maintainer) -> DeviceView:
    """Have a device checked as soon as it is free. Asking again before the check has ended changes nothing; a
    quarantined device is refused (409), as its release orders a check."""
    queries.device(session, name)
    service.request_check(session, name)
    return queries.view(session, name)


@router.post("/devices/{name}/check", status_code=status.HTTP_202_ACCEPTED, responses=documented(404, 409))
def walk_through_device(name: Name, session: Db, who: Maintainer) -> DeviceCheck:
    """Walk through a device step by step, as soon as it is free: power, console, golden system, kexec, topology,
    detectors, fitness, scratch devices (a health check), then the noise of ten boots of one kernel. The check that is
    under way already is that check; a quarantined device is refused (409)."""
    return checks.read(session, name, checks.ask(session, name, who.owner).id)


@router.get("/devices/{name}/checks/{check_id}", responses=documented(404))
async def get_device_check(
    *,
    name: Name,
    check_id: Id,
    request: Request,
    _: Reader,
    seen: Annotated[
        int, Query(ge=-1, description="`changes` of what is known already; the answer waits for more")
    ] = -1,
    wait_s: Annotated[float, Query(ge=0, le=WAIT_MAX_S, description="How long it may wait for that")] = 0,
) -> DeviceCheck:
    """One check of a device, as far as it has come."""
    factory: SessionFactory = request.app.state.sessions

    def read() -> DeviceCheck:
        with transaction(factory) as session:
            return checks.read(session, name, check_id)

    until = time.monotonic() + wait_s
    with notifications_of(request).subscribe((CHECK_CHANNEL, str(check_id))) as subscription:
        while True:
            found = await run_in_threadpool(read)
            left_s = until - time.monotonic()
            if found.changes > seen or found.finished_at is not None or left_s <= 0:
                return found
            await subscription.wait(left_s)
