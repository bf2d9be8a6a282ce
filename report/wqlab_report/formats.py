"""Formats of a report: their names, media types and writers."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from wqlab_contracts.api.report import Report
from wqlab_contracts.enums import SubmissionState

from .writers.html import render_html
from .writers.junit import render_junit
from .writers.kcidb import Sender, render_kcidb
from .writers.markdown import render_markdown
from .writers.mmtests import render_mmtests
from .writers.profile import render_profile
from .writers.text import render_text


class ReportFormat(StrEnum):
    JSON = "json"
    TEXT = "text"
    HTML = "html"
    MARKDOWN = "markdown"
    JUNIT = "junit"
    MMTESTS = "mmtests"
    KCIDB = "kcidb"
    PROFILE = "profile"
    """Counts of instrumented and modelled devices as collapsed stacks, for speedscope and Firefox Profiler."""
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
    ReportFormat.PROFILE: "text/plain; charset=utf-8",
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
    ReportFormat.PROFILE: "collapsedstack.txt",
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
    ReportFormat.PROFILE: render_profile,
}


class NotAvailable(Exception):
    """The submission has no final results yet, or no data for the format."""


def render(report: Report, format_: ReportFormat, sender: Sender) -> str:
    """Render the report in the given format. Raises NotAvailable for a KCIDB document of an unfinished submission and a
    profile without counts, KeyError for format MAIL, which also needs the source mail.

    The receivers of a KCIDB document keep it, so it has final results only.
    """
    submission = report.submission
    if format_ is not ReportFormat.KCIDB:
        text = _RENDERERS[format_](report)
        if not text:
            raise NotAvailable(f"submission {submission.id} has no counts: only instrumented and modelled devices do")
        return text
    if submission.state is not SubmissionState.FINISHED:
        raise NotAvailable(
            f"submission {submission.id} is {submission.state}: KCIDB takes final results; wait until it is finished"
        )
    return render_kcidb(report, sender)
