"""Looking at a series before it is submitted: an mbox taken apart, the branches of a repository."""

from __future__ import annotations

import threading
import time
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool

from wqlab_contracts.api.series import GitBranches, SeriesInspection
from wqlab_contracts.enums import JobState
from wqlab_contracts.messages import MboxSeries

from ..http.auth import Reader, Submitter
from ..http.deps import AppSettings
from ..http.paging import plain_text
from ..http.problems import ApiProblem, documented
from ..http.sse import notifications_of
from ..storage.db import SessionFactory, transaction
from ..storage.events import LOOKUP_CHANNEL
from . import branches
from .inspect import inspect

router = APIRouter(tags=["series"], responses=documented(401, 403, 422, 429))

WAIT_DEFAULT_S = 10.0
WAIT_MAX_S = 20.0
_AT_ONCE = threading.BoundedSemaphore(2)
"""A mailbox of the largest size takes seconds and some hundred MB."""
_TURN_S = 5.0


@router.post("/series/inspect", responses=documented(400, 413, 503))
def inspect_series(body: MboxSeries, _: Reader) -> SeriesInspection:
    """What an mbox holds and what is wrong with it. Nothing is kept, and nothing of it is run."""
    if not _AT_ONCE.acquire(timeout=_TURN_S):
        raise ApiProblem(503, "other mailboxes are being read; ask again", headers={"Retry-After": "2"})
    try:
        return inspect(body.text)
    finally:
        _AT_ONCE.release()


@router.get("/git/branches")
async def list_git_branches(
    *,
    request: Request,
    settings: AppSettings,
    who: Submitter,
    url: Annotated[str, Query(min_length=1, max_length=2000, description="https:// or git:// URL of a repository")],
    wait_s: Annotated[
        float, Query(ge=0, le=WAIT_MAX_S, description="How long to wait for a worker's answer")
    ] = WAIT_DEFAULT_S,
) -> GitBranches:
    """The branches of a public repository, read by a worker of the lab. When the answer takes longer than `wait_s`, its
    `state` is not `finished` yet: ask again."""
    plain_text("url", url)
    factory: SessionFactory = request.app.state.sessions

    def ask() -> int:
        with transaction(factory) as session:
            return branches.ask(session, url, who.owner, settings)

    def read() -> GitBranches:
        with transaction(factory) as session:
            return branches.read(session, lookup_id)

    lookup_id = await run_in_threadpool(ask)
    until = time.monotonic() + wait_s
    with notifications_of(request).subscribe((LOOKUP_CHANNEL, str(lookup_id))) as subscription:
        while True:
            found = await run_in_threadpool(read)
            left_s = until - time.monotonic()
            if found.state is JobState.FINISHED or left_s <= 0:
                return found
            await subscription.wait(left_s)
