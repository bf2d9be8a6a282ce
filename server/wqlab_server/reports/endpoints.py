"""Endpoint for the report of a submission in all formats."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from wqlab_contracts.api.report import Report
from wqlab_contracts.mail import OutgoingMail
from wqlab_report.formats import CONTENT_TYPES, ReportFormat

from ..http.auth import Reader
from ..http.deps import AppSettings, Db, Store
from ..http.limits import slow_responses
from ..http.paging import Id
from ..http.problems import documented, not_found
from ..models import Submission
from ..storage import source_mails
from .responses import preview, report_response
from .stored_report import load_or_assemble

router = APIRouter(prefix="/submissions", tags=["reports"], responses=documented(401, 403, 404, 422, 429))

_DOCUMENTED: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The report; that of an unfinished submission says that it is not final",
        "content": {
            media.partition(";")[0]: {"schema": {"type": "object" if media.endswith("+json") else "string"}}
            for format_, media in CONTENT_TYPES.items()
            if format_ is not ReportFormat.JSON
        },
    },
    304: {"description": "The report still has the ETag in `If-None-Match`"},
}


@router.get("/{submission_id}/report", response_model=Report, responses={**_DOCUMENTED, **documented(409, 503)})
def get_report(
    *,
    submission_id: Id,
    request: Request,
    session: Db,
    store: Store,
    settings: AppSettings,
    _: Reader,
    format: Annotated[
        ReportFormat,
        Query(
            description="JSON contains everything; the other formats are rendered from it. `kcidb` of an unfinished "
            "submission is refused (409), and so is `mail` of a lab without a public URL"
        ),
    ] = ReportFormat.JSON,
) -> Response:
    """The report: what was measured, with verdicts. The report of a finished submission never changes."""
    submission = session.get(Submission, submission_id)
    if submission is None:
        raise not_found("submission", submission_id)
    with slow_responses(request).reports.use(request):
        report = load_or_assemble(session, submission, store, settings.public_url)
        return report_response(request, report, format, source_mails.find(session, submission_id))


@router.get("/{submission_id}/mail", responses=documented(409, 503))
def get_submission_mail(
    submission_id: Id, request: Request, session: Db, store: Store, settings: AppSettings, _: Reader
) -> OutgoingMail:
    """The mail that answers the series with its report, as the lab would write it; nothing is sent. Without a source
    mail it goes to the author. It has no recipients if the author's address is unknown or nothing is decided. Counts
    and modelled figures go to the author alone. Refused (409) if the lab has no public URL."""
    submission = session.get(Submission, submission_id)
    if submission is None:
        raise not_found("submission", submission_id)
    with slow_responses(request).reports.use(request):
        report = load_or_assemble(session, submission, store, settings.public_url)
        return preview(report, source_mails.find(session, submission_id), settings)
