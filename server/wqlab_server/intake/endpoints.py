"""Endpoints of series in mail archives: the lab's archives, and a look at what a submission would take."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import ValidationError

from wqlab_contracts.api.threads import ArchiveView, ThreadPreview
from wqlab_contracts.messages import ThreadSeries
from wqlab_contracts.messages.threads import REVISION_LIMIT

from ..http import long_poll
from ..http.auth import Reader, Submitter
from ..http.deps import AppSettings, Data
from ..http.paging import plain_text
from ..http.problems import ApiProblem, documented
from . import threads

router = APIRouter(prefix="/archives", tags=["series"], responses=documented(401, 403, 422, 429))


@router.get("")
def list_archives(data: Data, _: Reader) -> list[ArchiveView]:
    """List the mail archives of the lab, in the order in which a message is looked for."""
    return [
        ArchiveView(
            name=archive.name,
            summary=archive.summary,
            url=archive.url,
            list=archive.list,
            searched=archive.search is not None,
            watchable=archive.epochs is not None,
        )
        for archive in data.current().archives
    ]


@router.get(
    "/thread", responses=documented(503, rules="there is no Message-ID in `message_id`, or the lab has no archive")
)
async def preview_thread(
    *,
    request: Request,
    data: Data,
    settings: AppSettings,
    principal: Submitter,
    message_id: Annotated[
        str,
        Query(min_length=1, max_length=2000, description="Message-ID of a mail of the thread, or a URL of the mail"),
    ],
    revision: Annotated[
        int | None, Query(ge=1, le=REVISION_LIMIT, description="Revision to take; by default the latest")
    ] = None,
    wait_s: long_poll.WaitS = long_poll.DEFAULT_S,
) -> ThreadPreview:
    """Show which mails a submission of this Message-ID would take, found by a worker of the lab. If this takes longer
    than `wait_s`, the response's `state` is not `finished` yet: repeat the request."""
    plain_text("message_id", message_id)
    series = _series(message_id, revision)
    return await long_poll.wait_for_job(
        lambda session: threads.request(session, series, data.current(), principal.owner),
        threads.read,
        request=request,
        wait_s=wait_s,
    )


def _series(message_id: str, revision: int | None) -> ThreadSeries:
    try:
        return ThreadSeries(message_id=message_id, revision=revision)
    except ValidationError as error:
        detail = str(error.errors(include_url=False)[0]["msg"]).removeprefix("Value error, ")
        raise ApiProblem(422, detail, errors=[{"parameter": "message_id", "in": "query", "detail": detail}]) from None
