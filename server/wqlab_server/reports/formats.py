"""Formats of a report, and the HTTP response for each."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from enum import StrEnum

from fastapi import Request, Response, status

from wqlab_contracts.api.report import Report
from wqlab_contracts.enums import SubmissionState
from wqlab_contracts.mail import to_bytes
from wqlab_contracts.messages.source_mail import SourceMail

from ..http.etags import etag_matches
from ..http.headers import DOCUMENT_POLICY
from ..http.problems import ApiProblem
from ..settings import Settings
from . import mail
from .render.html import render_html
from .render.junit import render_junit
from .render.kcidb import Sender, render_kcidb
from .render.markdown import render_markdown
from .render.mmtests import render_mmtests
from .render.text import render_text


class ReportFormat(StrEnum):
    JSON = "json"
    TEXT = "text"
    HTML = "html"
    MARKDOWN = "markdown"
    JUNIT = "junit"
    MMTESTS = "mmtests"
    KCIDB = "kcidb"
    MAIL = "mail"
    """The mail that answers the series (RFC 5322), to send by hand."""


CONTENT_TYPES = {
    ReportFormat.JSON: "application/json",
    ReportFormat.TEXT: "text/plain; charset=utf-8",
    ReportFormat.HTML: "text/html; charset=utf-8",
    ReportFormat.MARKDOWN: "text/markdown; charset=utf-8",
    ReportFormat.JUNIT: "application/xml; charset=utf-8",
    ReportFormat.MMTESTS: "text/plain; charset=utf-8",
    ReportFormat.KCIDB: "application/vnd.kcidb+json",
    ReportFormat.MAIL: "message/rfc822",
}
SUFFIXES = {
    ReportFormat.JSON: "json",
    ReportFormat.TEXT: "txt",
    ReportFormat.HTML: "html",
    ReportFormat.MARKDOWN: "md",
    ReportFormat.JUNIT: "xml",
    ReportFormat.MMTESTS: "mmtests",
    ReportFormat.KCIDB: "kcidb.json",
    ReportFormat.MAIL: "eml",
}


def render_json(report: Report) -> str:
    """Render the report as JSON: the serialized model."""
    return report.model_dump_json(indent=2, by_alias=True) + "\n"


_RENDERERS: dict[ReportFormat, Callable[[Report], str]] = {
    ReportFormat.JSON: render_json,
    ReportFormat.TEXT: render_text,
    ReportFormat.HTML: render_html,
    ReportFormat.MARKDOWN: render_markdown,
    ReportFormat.JUNIT: render_junit,
    ReportFormat.MMTESTS: render_mmtests,
}


def render(report: Report, format_: ReportFormat, sender: Sender) -> str:
    """Render the report in the given format. Raises ApiProblem 409 for a KCIDB document of an unfinished submission,
    KeyError for format MAIL, which also needs the source mail.

    The receivers of a KCIDB document keep it, so it has final results only.
    """
    if format_ is not ReportFormat.KCIDB:
        return _RENDERERS[format_](report)
    submission = report.submission
    if submission.state is not SubmissionState.FINISHED:
        detail = (
            f"submission {submission.id} is {submission.state}: KCIDB takes final results; wait until it is finished"
        )
        raise ApiProblem(409, detail)
    return render_kcidb(report, sender)


def report_response(
    request: Request, report: Report, format_: ReportFormat, source: SourceMail | None = None
) -> Response:
    """Return the response with a report in the given format. `source` is the mail that format MAIL answers.

    A finished report has an ETag and is not sent again to a client that has it; an unfinished one must not be cached.
    """
    if format_ is ReportFormat.MAIL:
        # With LF, as files of mails have it; `git send-email` and other clients write CRLF themselves.
        body = to_bytes(mail.preview(report, source, request.app.state.settings)).replace(b"\r\n", b"\n")
    else:
        body = render(report, format_, sender_of(request.app.state.settings)).encode()
    headers = {
        "Content-Disposition": f'inline; filename="wqlab-{report.submission.id}.{SUFFIXES[format_]}"',
        "Content-Security-Policy": DOCUMENT_POLICY,
        "Cache-Control": "no-store",
    }
    if report.submission.state is SubmissionState.FINISHED:
        etag = f'"{hashlib.sha256(body).hexdigest()}"'
        # A browser may cache the report but must revalidate it each time, because read permission can be revoked.
        headers |= {"Cache-Control": "private, no-cache", "ETag": etag}
        if etag_matches(request.headers.get("If-None-Match", ""), etag):
            return Response(status_code=status.HTTP_304_NOT_MODIFIED, headers=headers)
    return Response(body, media_type=CONTENT_TYPES[format_], headers=headers)


def sender_of(settings: Settings) -> Sender:
    """Return as whom the lab writes to KCIDB."""
    return Sender(settings.kcidb_origin, public=settings.public_reading)
