"""The report of a submission in every format."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from wqlab_contracts.api.report import Report

from ..http.auth import Reader
from ..http.deps import AppSettings, Db, Store
from ..http.paging import Id
from ..http.problems import documented, not_found
from ..models import Submission
from .formats import CONTENT, ReportFormat, answer
from .keep import report_of

router = APIRouter(prefix="/submissions", tags=["reports"], responses=documented(401, 403, 404, 422, 429))

_DOCUMENTED: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The report; while the submission is unfinished it says so",
        "content": {
            media.partition(";")[0]: {"schema": {"type": "string"}}
            for format_, media in CONTENT.items()
            if format_ is not ReportFormat.JSON
        },
    },
    304: {"description": "What `If-None-Match` names is still the report"},
}


@router.get("/{submission_id}/report", response_model=Report, responses=_DOCUMENTED)
def get_report(
    *,
    submission_id: Id,
    request: Request,
    session: Db,
    store: Store,
    settings: AppSettings,
    _: Reader,
    format: Annotated[ReportFormat, Query(description="JSON has everything; the others are made from it")] = (
        ReportFormat.JSON
    ),
) -> Response:
    """What was measured and what it means. Once the submission is finished it never changes."""
    submission = session.get(Submission, submission_id)
    if submission is None:
        raise not_found("submission", submission_id)
    return answer(request, report_of(session, submission, store, settings.public_url), format)
