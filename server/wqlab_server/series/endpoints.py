"""Endpoints to inspect a series before it is submitted: an mbox, a branch, the branches of a repository."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import PlainTextResponse
from pydantic import WithJsonSchema

from wqlab_contracts.api.series import BranchInspection, GitBranches, SeriesInspection
from wqlab_contracts.mails import mbox
from wqlab_contracts.messages import GitSeries, MboxSeries

from ..http import long_poll
from ..http.auth import Reader, Submitter
from ..http.deps import AppSettings, Data
from ..http.inspection_process import InspectionFailed, inspect_in_process, run_in_process
from ..http.limits import slow_responses
from ..http.paging import plain_text
from ..http.problems import ApiProblem, documented
from . import branch_readings, branches

router = APIRouter(tags=["series"], responses=documented(401, 403, 422, 429))

_Url = Annotated[str, WithJsonSchema({"type": "string", "maxLength": 2000, "pattern": r"^(https://|git://|/)\S+$"})]
"""The server checks URLs itself, because its refusals say what to write instead."""
_FILE = {
    "requestBody": {
        "description": "An mbox file",
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


@router.post("/series/inspect", responses=documented(400, 413, 503))
async def inspect_series(body: MboxSeries, request: Request, _: Reader) -> SeriesInspection:
    """Inspect an mbox: its patches and its problems. The mbox is not stored, and no code in it is run."""
    with slow_responses(request).inspections.use(request):
        try:
            return await inspect_in_process(body.text)
        except InspectionFailed as error:
            raise ApiProblem(422, str(error)) from error


@router.post(
    "/series/decode",
    openapi_extra=_FILE,
    response_class=PlainTextResponse,
    responses=documented(400, 413, 503, rules="a patch is in an unknown character set"),
)
async def decode_series(request: Request, _: Reader) -> PlainTextResponse:
    """Return the text of an mbox file, each mail read in the character set that it names, as `wqlab submit --mbox`
    does. The file is not stored. A patch in an unknown character set is refused."""
    data = await request.body()
    with slow_responses(request).inspections.use(request):
        try:
            return PlainTextResponse(await run_in_process(mbox.decode, data))
        except (InspectionFailed, ValueError) as error:
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
    wait_s: long_poll.WaitS = long_poll.DEFAULT_S,
) -> GitBranches:
    """List the branches of a public repository, read by a worker of the lab. If this takes longer than `wait_s`, the
    response's `state` is not `finished` yet: repeat the request."""
    plain_text("url", url)
    return await long_poll.wait_for_job(
        lambda session: branches.request(session, url, principal.owner, settings),
        branches.read,
        request=request,
        wait_s=wait_s,
    )


@router.get(
    "/git/branches/inspection",
    responses=documented(
        503,
        rules="`url`, `ref` or `base` is not written as one, `url` is of a host that the lab refuses, or the lab does "
        "not have the tree. A branch that cannot be fetched is a `failure` in the response",
    ),
)
async def inspect_git_branch(
    *,
    request: Request,
    data: Data,
    settings: AppSettings,
    principal: Submitter,
    url: Annotated[
        _Url,
        Query(max_length=2000, description="https:// or git:// URL of a repository, or a path that the lab allows"),
    ],
    ref: Annotated[str, Query(min_length=1, max_length=250, description="Branch, tag or full commit id")],
    base: Annotated[
        str | None,
        Query(min_length=1, max_length=250, description="Commit below the first patch; by default the merge base"),
    ] = None,
    tree: Annotated[
        str | None, Query(max_length=250, description="Kernel tree to compare with; by default the lab's default")
    ] = None,
    wait_s: long_poll.WaitS = long_poll.DEFAULT_S,
) -> BranchInspection:
    """Show the patches that a submission of a branch would measure, read by a worker of the lab. If this takes longer
    than `wait_s`, the response's `state` is not `finished` yet: repeat the request. The first reading of a tree takes
    minutes. `POST /touches` then proposes targets for the branch, for ten minutes."""
    for name, value in (("url", url), ("ref", ref), ("base", base or ""), ("tree", tree or "")):
        plain_text(name, value)
    series = GitSeries(url=url, ref=ref, base=base)
    return await long_poll.wait_for_job(
        lambda session: branch_readings.request(
            session, series, tree, data=data.current(), owner=principal.owner, settings=settings
        ),
        branch_readings.read,
        request=request,
        wait_s=wait_s,
    )
