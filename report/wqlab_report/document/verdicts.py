"""The verdicts of a report as blocks, the same in all documents."""

from __future__ import annotations

from collections.abc import Sequence

from wqlab_contracts.api.report import Report, TargetReport
from wqlab_contracts.enums import ErrorKind, SubmissionState, Verdict

from ..content import failures, instrument_tables
from .blocks import Block, Paragraph, Stated, Style


def not_finished(report: Report, label: str = "NOT FINISHED", style: Style = Style.PLAIN) -> list[Block]:
    """Return that the report shows the results so far; nothing for a finished submission."""
    state = report.submission.state
    if state is SubmissionState.FINISHED:
        return []
    return [Paragraph(f"{label} ({state.value}): this report shows the results so far.", style=style)]


def of_submission(main: failures.MainFailure | None) -> list[Stated]:
    """Return the failure of the submission; nothing if it has none."""
    if main is None:
        return []
    verdict = Verdict.INCONCLUSIVE if main.kind is ErrorKind.CANCELED else Verdict.FAILED
    return [Stated("", verdict, [main.summary], kind=main.kind.value)]


def of_target(target: TargetReport, more: Sequence[str] = (), anchor: str = "") -> Stated:
    """Return the verdict on a target with its headline and `more` that was found."""
    found = [instrument_tables.headline(target), *more]
    return Stated(failures.name(target), target.verdict, found, anchor=anchor)
