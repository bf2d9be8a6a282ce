"""/r/7: the link to a report that goes into a mail. It stays valid for ever and reads without JavaScript.

Pages, not API: what a person follows gets an answer for a person, also when it is a refusal.
"""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Depends, Request, Response, status

from wqlab_contracts.enums import Scope

from ..http.auth import VISITOR, Principal, identify
from ..http.deps import AppSettings, Db, Store
from ..http.headers import DOCUMENT
from ..http.paging import MAX_ID
from ..http.problems import ApiProblem, not_found, response
from ..models import Submission
from .formats import SUFFIX, ReportFormat, answer
from .keep import report_of
from .render.html import render_notice

router = APIRouter(tags=["reports"], include_in_schema=False)

_BY_SUFFIX = {suffix: format_ for format_, suffix in SUFFIX.items()}
_NAME = re.compile(rf"([1-9][0-9]{{0,9}})(?:\.({'|'.join(SUFFIX.values())}))?")


def _reader(request: Request, settings: AppSettings) -> Principal | None:
    """Whoever may read; None for who has to sign in first."""
    who = identify(request)
    if who is None:
        return VISITOR if settings.public_reading else None
    return who if who.may(Scope.READ) else None


@router.api_route("/r/{name}", methods=["GET", "HEAD"])
def get_linked_report(
    *,
    name: str,
    request: Request,
    session: Db,
    store: Store,
    settings: AppSettings,
    who: Annotated[Principal | None, Depends(_reader)],
) -> Response:
    """The report as a page; with .txt, .md, .json, .xml or .mmtests in another format."""
    match = _NAME.fullmatch(name)
    wanted = _BY_SUFFIX[match[2]] if match and match[2] else ReportFormat.HTML
    if who is None:
        # Before anything else: not even which numbers there are is told.
        target = f"/sign-in?next={quote(request.url.path, safe='/')}"
        refusal = ApiProblem(401, "this lab's reports are read after signing in")
        return _refused(request, wanted, refusal, "Sign in to read this report", (target, "Sign in"))
    submission = session.get(Submission, int(match[1])) if match and int(match[1]) <= MAX_ID else None
    if submission is None:
        refusal = not_found("report", name)
        return _refused(request, wanted, refusal, "There is no such report", ("/submissions", "All submissions"))
    return answer(request, report_of(session, submission, store, settings.public_url), wanted)


def _refused(
    request: Request, wanted: ReportFormat, refusal: ApiProblem, title: str, link: tuple[str, str]
) -> Response:
    """A page for a browser, whatever it asked for; a problem document for a program."""
    if wanted is not ReportFormat.HTML and "text/html" not in request.headers.get("Accept", ""):
        return response(refusal)
    headers = {"Content-Security-Policy": DOCUMENT, "Cache-Control": "no-store"}
    if refusal.status == status.HTTP_401_UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(
        render_notice(title, refusal.detail, *link),
        refusal.status,
        headers,
        media_type="text/html; charset=utf-8",
    )
