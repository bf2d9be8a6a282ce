"""A report as an HTTP answer in any of its formats."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from enum import StrEnum

from fastapi import Request, Response, status

from wqlab_contracts.api.report import Report
from wqlab_contracts.enums import SubmissionState

from ..http.headers import DOCUMENT
from .render.html import render_html
from .render.json import render_json
from .render.junit import render_junit
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


CONTENT = {
    ReportFormat.JSON: "application/json",
    ReportFormat.TEXT: "text/plain; charset=utf-8",
    ReportFormat.HTML: "text/html; charset=utf-8",
    ReportFormat.MARKDOWN: "text/markdown; charset=utf-8",
    ReportFormat.JUNIT: "application/xml; charset=utf-8",
    ReportFormat.MMTESTS: "text/plain; charset=utf-8",
}
SUFFIX = {
    ReportFormat.JSON: "json",
    ReportFormat.TEXT: "txt",
    ReportFormat.HTML: "html",
    ReportFormat.MARKDOWN: "md",
    ReportFormat.JUNIT: "xml",
    ReportFormat.MMTESTS: "mmtests",
}
_RENDERERS: dict[ReportFormat, Callable[[Report], str]] = {
    ReportFormat.JSON: render_json,
    ReportFormat.TEXT: render_text,
    ReportFormat.HTML: render_html,
    ReportFormat.MARKDOWN: render_markdown,
    ReportFormat.JUNIT: render_junit,
    ReportFormat.MMTESTS: render_mmtests,
}


def answer(request: Request, report: Report, format_: ReportFormat) -> Response:
    """A finished report has an ETag, and is not sent again to whoever has it; an unfinished one is kept nowhere."""
    body = _RENDERERS[format_](report).encode()
    headers = {
        "Content-Disposition": f'inline; filename="wqlab-{report.submission.id}.{SUFFIX[format_]}"',
        "Content-Security-Policy": DOCUMENT,
        "Cache-Control": "no-store",
    }
    if report.submission.state is SubmissionState.FINISHED:
        etag = f'"{hashlib.sha256(body).hexdigest()}"'
        # A browser may keep it and has to ask each time: who may read it can change.
        headers |= {"Cache-Control": "private, no-cache", "ETag": etag}
        if _has(request.headers.get("If-None-Match", ""), etag):
            return Response(status_code=status.HTTP_304_NOT_MODIFIED, headers=headers)
    return Response(body, media_type=CONTENT[format_], headers=headers)


def _has(if_none_match: str, etag: str) -> bool:
    """RFC 9110, 13.1.2: a weak comparison with each."""
    given = [each.strip().removeprefix("W/") for each in if_none_match.split(",")]
    return etag in given or given == ["*"]
