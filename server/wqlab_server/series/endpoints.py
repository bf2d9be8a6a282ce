"""Endpoints to inspect a series before it is submitted: the content of an mbox, the branches of a repository."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import WithJsonSchema
from starlette.concurrency import run_in_threadpool

from wqlab_contracts.api.series import GitBranches, SeriesInspection
from wqlab_contracts.enums import JobState
from wqlab_contracts.messages import MboxSeries

from ..http import long_poll
from ..http.auth import Reader, Submitter
from ..http.deps import AppSettings
from ..http.inspection_process import InspectionFailed, inspect_in_process
from ..http.limits import slow_responses
from ..http.paging import plain_text
from ..http.problems import ApiProblem, documented
from ..storage.db import SessionFactory, transaction
from ..storage.events import LOOKUP_CHANNEL
from . import branches

router = APIRouter(tags=["series"], responses=documented(401, 403, 422, 429))

_Url = Annotated[str, WithJsonSchema({"type": "string", "maxLength": 2000, "pattern": r"^(https://|git://|/)\S+$"})]
"""The server checks URLs itself, because its refusals say what to write instead."""


@router.post("/series/inspect", responses=documented(400, 413, 503))
async def inspect_series(body: MboxSeries, request: Request, _: Reader) -> SeriesInspection:
    """Inspect an mbox: its patches and its problems. The mbox is not stored, and no code in it is run."""
    with slow_responses(request).inspections.use(request):
        try:
            return await inspect_in_process(body.text)
        except InspectionFailed as error:
            raise ApiProblem(422, str(error)) from error


@router.get(
    "/git/branches",
    responses=documented(
        503, rules="`url` has no host, has credentials, or is a path that the operator does not allow"
    ),
)
async def list_git_branches(
    *,
    request: Request,
    settings: AppSettings,
    principal: Submitter,
    url: Annotated[
        _Url,
        Query(max_length=2000, description="https:// or git:// URL of a repository, or a path that the lab allows"),
    ],
    wait_s: Annotated[
        float, Query(ge=0, le=long_poll.MAX_S, description="Longest time to wait for the result")
    ] = long_poll.DEFAULT_S,
) -> GitBranches:
    """List the branches of a public repository, read by a worker of the lab. If this takes longer than `wait_s`, the
    response's `state` is not `finished` yet: repeat the request."""
    plain_text("url", url)
    factory: SessionFactory = request.app.state.sessions

    def request_lookup() -> int:
        with transaction(factory) as session:
            return branches.request(session, url, principal.owner, settings)

    def read() -> GitBranches:
        with transaction(factory) as session:
            return branches.read(session, lookup_id)

    lookup_id = await run_in_threadpool(request_lookup)
    return await long_poll.wait_until(
        lambda lookup: lookup.state is JobState.FINISHED,
        read,
        request=request,
        topic=(LOOKUP_CHANNEL, str(lookup_id)),
        wait_s=wait_s,
    )
