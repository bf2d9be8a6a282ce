"""Endpoint for what a series touches: the targets that the lab proposes for it."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool

from wqlab_contracts.api.series import SeriesInspection
from wqlab_contracts.api.touches import Touches, TouchesRequest
from wqlab_contracts.data_folder import DataFolder

from ..http.auth import Reader
from ..http.deps import AppSettings, Data
from ..http.inspection_process import InspectionFailed, inspect_in_process
from ..http.limits import slow_responses
from ..http.problems import ApiProblem, documented
from ..storage.db import SessionFactory, transaction
from . import touches_service

router = APIRouter(tags=["submissions"], responses=documented(401, 403, 422, 429))

_RULES = (
    "the mbox contains no usable series, the lab has not looked for the thread or read the branch, `series` is a pair "
    "of commits, or the lab does not have the tree"
)


@router.post("/touches", responses=documented(400, 413, 503, rules=_RULES))
async def propose_targets(
    body: TouchesRequest, request: Request, data: Data, settings: AppSettings, principal: Reader
) -> Touches:
    """Propose targets for a series, by the files and functions that it changes, with what each could find and what it
    costs. Nothing is created, the mbox is not stored, and no code in it is run."""
    factory: SessionFactory = request.app.state.sessions
    inspection = await _inspect(body, request, data.current())

    def propose() -> Touches:
        with transaction(factory) as session:
            return touches_service.propose_with_cost(
                session,
                data.current(),
                settings,
                inspection,
                series=body.series,
                tree=body.tree,
                owner=principal.owner,
            )

    return await run_in_threadpool(propose)


async def _inspect(body: TouchesRequest, request: Request, data: DataFolder) -> SeriesInspection:
    """Return the content of a series. Raises ApiProblem 422 if the lab does not have it, or it is not usable."""
    series = body.series
    if len([each for each in (series.mbox, series.thread, series.git, series.commits) if each is not None]) != 1:
        raise touches_service.refuse_series()
    if series.mbox is not None:
        text = series.mbox.text
        with slow_responses(request).inspections.use(request):
            try:
                found = await inspect_in_process(text)
            except InspectionFailed as error:
                raise ApiProblem(422, str(error)) from error
        touches_service.check_usable(found, "/series/mbox/text")
        return found
    factory: SessionFactory = request.app.state.sessions

    def read() -> SeriesInspection:
        with transaction(factory) as session:
            return touches_service.inspected_before(session, series, body.tree, data)

    found = await run_in_threadpool(read)
    touches_service.check_usable(found, "/series/git" if series.git is not None else "/series/thread")
    return found
