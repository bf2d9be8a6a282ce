"""The report of a submission in every format."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from wqlab_contracts.api import Report

from ..auth import Reader
from ..deps import AppSettings, Db, Store
from ..models import Submission
from ..paging import Id
from ..problems import documented, not_found
from .assemble import assemble
from .render_html import render_html
from .render_json import render_json
from .render_junit import render_junit
from .render_markdown import render_markdown
from .render_text import render_text

router = APIRouter(prefix="/submissions", tags=["reports"], responses=documented(401, 403, 404, 422, 429))


class ReportFormat(StrEnum):
    JSON = "json"
    TEXT = "text"
    HTML = "html"
    MARKDOWN = "markdown"
    JUNIT = "junit"


_CONTENT = {
    ReportFormat.JSON: "application/json",
    ReportFormat.TEXT: "text/plain; charset=utf-8",
    ReportFormat.HTML: "text/html; charset=utf-8",
    ReportFormat.MARKDOWN: "text/markdown; charset=utf-8",
    ReportFormat.JUNIT: "application/xml; charset=utf-8",
}
_SUFFIX = {ReportFormat.TEXT: "txt", ReportFormat.MARKDOWN: "md", ReportFormat.JUNIT: "xml"}
_RENDERERS: dict[ReportFormat, Callable[[Report], str]] = {
    ReportFormat.JSON: render_json,
    ReportFormat.TEXT: render_text,
    ReportFormat.HTML: render_html,
    ReportFormat.MARKDOWN: render_markdown,
    ReportFormat.JUNIT: render_junit,
}
_DOCUMENTED: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The report; while the submission is unfinished it says so",
        "content": {
            media.partition(";")[0]: {"schema": {"type": "string"}}
            for format_, media in _CONTENT.items()
            if format_ is not ReportFormat.JSON
        },
    }
}


@router.get("/{submission_id}/report", response_model=Report, responses=_DOCUMENTED)
def get_report(
    *,
    submission_id: Id,
    session: Db,
    store: Store,
    settings: AppSettings,
    _: Reader,
    format: Annotated[ReportFormat, Query(description="JSON has everything; the others are made from it")] = (
        ReportFormat.JSON
    ),
) -> Response:
    """What was measured and what it means, as it stands now."""
    submission = session.get(Submission, submission_id)
    if submission is None:
        raise not_found("submission", submission_id)
    report = assemble(session, submission, store, settings.public_url)
    name = f"wqlab-{submission.id}.{_SUFFIX.get(format, format.value)}"
    return Response(
        _RENDERERS[format](report),
        media_type=_CONTENT[format],
        headers={
            "Content-Disposition": f'inline; filename="{name}"',
            # What submitted code printed is in the report; a browser must run none of it.
            "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox",
            "X-Content-Type-Options": "nosniff",
        },
    )
