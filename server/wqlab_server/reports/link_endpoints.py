"""Endpoint for the page of a report, such as /r/7, and for its formats. Links to it stay valid; it needs no JavaScript.

The responses are pages for people rather than API responses, also if access is refused.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Depends, Request, Response, status
from sqlalchemy import func, or_, update

from wqlab_contracts.enums import Scope, SubmissionState
from wqlab_report.formats import SUFFIXES

from ..http.auth import VISITOR, Principal, identify
from ..http.deps import AppSettings, Db, Store
from ..http.headers import DOCUMENT_POLICY
from ..http.limits import slow_responses
from ..http.paging import MAX_ID
from ..http.problems import ApiProblem, not_found, response
from ..models import Submission
from ..storage import source_mails
from .notice import render_notice
from .responses import page_response, report_response
from .stored_report import load_or_assemble

router = APIRouter(tags=["reports"], include_in_schema=False)

_READING_INTERVAL = timedelta(hours=1)
_BY_SUFFIX = {suffix: format_ for format_, suffix in SUFFIXES.items()}
_NAME = re.compile(rf"([1-9][0-9]{{0,9}})(?:\.({'|'.join(map(re.escape, SUFFIXES.values()))}))?")


def _reader(request: Request, settings: AppSettings) -> Principal | None:
    """Return the principal if it may read; None if the user has to sign in first."""
    principal = identify(request)
    if principal is None:
        return VISITOR if settings.public_reading else None
    return principal if principal.may(Scope.READ) else None


@router.api_route("/r/{name}", methods=["GET", "HEAD"])
def get_linked_report(
    *,
    name: str,
    request: Request,
    session: Db,
    store: Store,
    settings: AppSettings,
    principal: Annotated[Principal | None, Depends(_reader)],
) -> Response:
    """The page of the report; with .html, .txt, .md, .json, .xml, .mmtests, .kcidb.json, .collapsedstack.txt or .eml a
    file of it."""
    match = _NAME.fullmatch(name)
    format_ = _BY_SUFFIX[match[2]] if match and match[2] else None
    if principal is None:
        # Checked first, so that the response does not reveal which submissions exist.
        target = f"/sign-in?next={quote(request.url.path, safe='/')}"
        refusal = ApiProblem(401, "reading this lab's reports requires signing in")
        return _refusal_response(request, refusal, "Sign in to read this report", (target, "Sign in"))
    submission = session.get(Submission, int(match[1])) if match and int(match[1]) <= MAX_ID else None
    if submission is None:
        refusal = not_found("report", name)
        link = ("/submissions", "All submissions")
        return _refusal_response(request, refusal, "There is no such report", link)
    _record_reading(session, submission)
    with slow_responses(request).reports.use(request):
        report = load_or_assemble(session, submission, store, settings.public_url)
        if format_ is None:
            return page_response(request, report)
        return report_response(request, report, format_, source_mails.find(session, submission.id))


def _record_reading(session: Db, submission: Submission) -> None:
    """Note that the link is in use: the age that retention compares counts from the last reading."""
    session.execute(
        update(Submission)
        .where(
            Submission.id == submission.id,
            Submission.state == SubmissionState.FINISHED,
            or_(Submission.linked_at.is_(None), Submission.linked_at < func.now() - _READING_INTERVAL),
        )
        .values(linked_at=func.now())
        .execution_options(synchronize_session=False)
    )


def _refusal_response(request: Request, refusal: ApiProblem, title: str, link: tuple[str, str]) -> Response:
    """Return a page for a browser, in any requested format, or a problem document for a program."""
    if "text/html" not in request.headers.get("Accept", ""):
        return response(refusal)
    headers = {"Content-Security-Policy": DOCUMENT_POLICY, "Cache-Control": "no-store"}
    if refusal.status == status.HTTP_401_UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(
        render_notice(title, refusal.detail, *link),
        refusal.status,
        headers,
        media_type="text/html; charset=utf-8",
    )
