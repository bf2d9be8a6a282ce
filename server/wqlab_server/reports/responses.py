"""The HTTP response with a report in each format, and as whom the lab writes reports."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from fastapi import Request, Response, status

from wqlab_contracts.api.report import Report
from wqlab_contracts.enums import SubmissionState
from wqlab_contracts.mail import OutgoingMail, to_bytes, unreachable
from wqlab_contracts.messages.source_mail import SourceMail
from wqlab_report import mail
from wqlab_report.formats import CONTENT_TYPES, SUFFIXES, NotAvailable, ReportFormat, render
from wqlab_report.writers import kcidb

from ..http.etags import etag_matches
from ..http.headers import DOCUMENT_POLICY
from ..http.problems import ApiProblem
from ..http.static_pages import PAGE_HEADERS
from ..settings import Settings
from .page import render_page


def report_response(
    request: Request, report: Report, format_: ReportFormat, source: SourceMail | None = None
) -> Response:
    """Return the response with a report in the given format. `source` is the mail that format MAIL answers.

    A finished report has an ETag and is not sent again to a client that has it; an unfinished one must not be cached.
    Raises ApiProblem 409 for a KCIDB document of an unfinished submission, a profile without counts, and a mail of a
    lab without a public URL.
    """
    settings: Settings = request.app.state.settings
    if format_ is ReportFormat.MAIL:
        # With LF, as files of mails have it; `git send-email` and other clients write CRLF themselves.
        body = to_bytes(preview(report, source, settings)).replace(b"\r\n", b"\n")
    else:
        try:
            body = render(report, format_, kcidb_sender(settings)).encode()
        except NotAvailable as error:
            raise ApiProblem(409, str(error)) from error
    headers = {
        "Content-Disposition": f'inline; filename="wqlab-{report.submission.id}.{SUFFIXES[format_]}"',
        "Content-Security-Policy": DOCUMENT_POLICY,
    }
    return _response(request, report, body, headers, CONTENT_TYPES[format_])


def page_response(request: Request, report: Report) -> Response:
    """Return the page of a report: the application's, with the first screen and the data of the report in it."""
    settings: Settings = request.app.state.settings
    body = render_page(report, settings.web_dir).encode()
    return _response(request, report, body, PAGE_HEADERS, "text/html; charset=utf-8")


def _response(request: Request, report: Report, body: bytes, headers: Mapping[str, str], media_type: str) -> Response:
    headers = {**headers, "Cache-Control": "no-store"}
    if report.submission.state is SubmissionState.FINISHED:
        etag = f'"{hashlib.sha256(body).hexdigest()}"'
        # A browser may cache the report but must revalidate it each time, because read permission can be revoked.
        headers |= {"Cache-Control": "private, no-cache", "ETag": etag}
        if etag_matches(request.headers.get("If-None-Match", ""), etag):
            return Response(status_code=status.HTTP_304_NOT_MODIFIED, headers=headers)
    return Response(body, media_type=media_type, headers=headers)


def preview(report: Report, source: SourceMail | None, settings: Settings) -> OutgoingMail:
    """Return the mail with a report, as the lab would write it. Raises ApiProblem 409 if the lab has no public URL."""
    if reason := unreachable(settings.public_url):
        raise ApiProblem(409, reason)
    return mail.preview(report, source, mail_sender(settings))


def kcidb_sender(settings: Settings) -> kcidb.Sender:
    """Return as whom the lab writes to KCIDB."""
    return kcidb.Sender(settings.kcidb_origin, public=settings.public_reading)


def mail_sender(settings: Settings) -> mail.Sender:
    """Return as whom the lab answers a series by mail."""
    return mail.Sender(settings.mail_from, settings.mail_reply_to)
