"""Advance pull requests and pushes: have heads read, cancel submissions, and tell the forge about them."""

from __future__ import annotations

import re
from datetime import datetime

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from wqlab_contracts.api.report import Report
from wqlab_contracts.enums import ErrorKind, HeadDecision, HeadNews, Outcome, SubmissionState
from wqlab_contracts.loading import DataFolder
from wqlab_contracts.specs import Forge
from wqlab_report.content.model_text import left_out as left_out_models
from wqlab_report.content.model_text import without_models
from wqlab_report.writers.markdown import render_markdown

from ..intake.forges import heads, poll, sync
from ..models import ForgeChange, ForgeHead, Submission
from ..outbox import forge_messages
from ..outbox.forge_messages import COMMENT_LIMIT, ForgeComment, ForgeStatus, StatusState
from ..reports.stored_report import load_or_assemble
from ..settings import Settings
from ..storage.artifacts import ArtifactStore
from ..storage.db import SessionFactory, clock, transaction
from ..submissions import service as submissions
from ..views.load import target_summaries
from .tick_errors import isolate_errors

_STATES: dict[HeadDecision, StatusState] = {
    HeadDecision.WAITS: "pending",
    HeadDecision.NOTHING: "success",
    HeadDecision.WRONG: "failure",
    HeadDecision.FAILED: "error",
}
_ENDS = frozenset({HeadDecision.NOTHING, HeadDecision.WRONG, HeadDecision.FAILED, HeadDecision.SILENT})
"""Decisions after which no submission follows."""
_MENTION = re.compile(r"(?<![\w.+-])@(?=\w)")


def read_forges(factory: SessionFactory, settings: Settings, data: DataFolder) -> None:
    """Ask workers for what is new on forges, and to read the heads that may use devices."""
    with isolate_errors(factory, "forges", "due"), transaction(factory) as session:
        sync.nudge_due(session, clock(session))
    with isolate_errors(factory, "forges", "polls"), transaction(factory) as session:
        poll.nudge_due(session, settings, data.forges)
    with transaction(factory) as session:
        unread = session.scalars(
            select(ForgeHead.id)
            .where(
                ForgeHead.news != HeadNews.ENDED,
                ForgeHead.withdrawn_at.is_(None),
                ForgeHead.allowed != "",
                ~ForgeHead.reading.has(),
            )
            .order_by(ForgeHead.id)
        ).all()
    for head_id in unread:
        with isolate_errors(factory, "forge_head", head_id), transaction(factory) as session:
            head = heads.lock(session, head_id)
            forge = _forge(data, session.get_one(ForgeChange, head.change_id))
            if forge is not None and head.reading is None:
                heads.order_reading(session, head, forge, data.trees[forge.tree])


def tell_forges(factory: SessionFactory, settings: Settings, data: DataFolder) -> None:
    """Write statuses and comments of heads about which something is new; cancel submissions of withdrawn heads."""
    with transaction(factory) as session:
        untold = session.scalars(
            select(ForgeHead.id)
            .outerjoin(Submission, Submission.id == ForgeHead.submission_id)
            .where(
                ForgeHead.news != HeadNews.ENDED,
                or_(ForgeHead.news == HeadNews.NEW, Submission.state == SubmissionState.FINISHED),
            )
            .order_by(ForgeHead.id)
        ).all()
    for head_id in untold:
        with isolate_errors(factory, "forge_head", head_id), transaction(factory) as session:
            head = heads.lock(session, head_id)
            change = session.get_one(ForgeChange, head.change_id)
            if head.withdrawn_at is not None and head.submission_id is not None:
                submissions.cancel(session, head.submission_id)
            if head.withdrawn_at is not None or _forge(data, change) is not None:
                _tell(session, settings, change, head, clock(session))


def _forge(data: DataFolder, change: ForgeChange) -> Forge | None:
    """Return the forge of a change; None while the operator does not list it."""
    return next((each for each in data.forges if each.name == change.forge), None)


# --- what the forge is told -------------------------------------------------------------------------------------


def _tell(session: Session, settings: Settings, change: ForgeChange, head: ForgeHead, now: datetime) -> None:
    """Write the status of the head's commit and, with the result, the comment on its pull request."""
    submission = session.get_one(Submission, head.submission_id) if head.submission_id is not None else None
    finished = submission is not None and submission.state is SubmissionState.FINISHED
    if head.news is not HeadNews.NEW and not finished:
        return
    said = _status(session, head, submission)
    if head.withdrawn_at is not None and not forge_messages.has_status(
        session, change.forge, head.head, forge_messages.context_of(change)
    ):
        said = None  # nothing was said of it, so there is nothing to end
    is_last = finished or head.withdrawn_at is not None or head.decision in _ENDS
    head.news = HeadNews.ENDED if is_last else HeadNews.TOLD
    if said is not None:
        state, description = said
        number = head.submission_id
        status = ForgeStatus(
            forge=change.forge,
            commit=head.head,
            context=forge_messages.context_of(change),
            state=state,
            description=description,
            target_url=f"{settings.public_url}/r/{number}" if number else f"{settings.public_url}/docs/forges/",
        )
        forge_messages.write_status(session, settings, status, subject=head.id, submission_id=number, now=now)
    if submission is not None and finished and head.withdrawn_at is None and change.number is not None:
        _comment(session, settings, change, head, submission, number=change.number, now=now)


def _status(session: Session, head: ForgeHead, submission: Submission | None) -> tuple[StatusState, str] | None:
    """Return state and description of the commit's status; None if the lab sends no status."""
    if head.withdrawn_at is not None:
        return "canceled", head.reason
    if submission is None:
        decided = _STATES.get(head.decision)
        return None if decided is None else (decided, head.reason)
    if submission.state is not SubmissionState.FINISHED:
        targets = len(submission.request.targets)
        return "pending", f"submission {submission.id}: {targets} target{'s' if targets != 1 else ''}"
    if submission.outcome is Outcome.CANCELED:
        return "canceled", "the submission was canceled"
    if submission.failure is not None:
        infrastructure = submission.failure.kind is ErrorKind.INFRASTRUCTURE
        return ("error" if infrastructure else "failure"), submission.failure.summary
    verdicts = [
        f"{target.plan}@{target.device_type}: {'modelled ' if target.modelled and target.verdict else ''}"
        f"{(target.verdict or target.outcome or target.state).value}"
        for target in target_summaries(session, [submission.id]).get(submission.id, [])
    ]
    states_by_code: dict[int | None, StatusState] = {0: "success", 1: "failure", 3: "failure"}
    return states_by_code.get(submission.exit_code, "error"), "; ".join(verdicts)


def _comment(
    session: Session,
    settings: Settings,
    change: ForgeChange,
    head: ForgeHead,
    submission: Submission,
    *,
    number: int,
    now: datetime,
) -> None:
    """Write the report as the comment. A canceled submission and one that the lab failed say nothing of the change."""
    failure = submission.failure
    if submission.outcome is Outcome.CANCELED or (failure and failure.kind is ErrorKind.INFRASTRUCTURE):
        return
    report = load_or_assemble(session, submission, ArtifactStore.of(settings), settings.public_url)
    marker = f"<!-- wqlab {change.forge} {number} -->"
    url = f"{settings.public_url}/r/{submission.id}"
    forge_messages.write_comment(
        session,
        settings,
        ForgeComment(
            forge=change.forge,
            change_id=change.id,
            number=number,
            marker=marker,
            body=f"{marker}\nMeasured commit: {head.head}\n\n{comment_text(_markdown(report), url)}",
        ),
        submission_id=submission.id,
        now=now,
    )


def _markdown(report: Report) -> str:
    """Return the report without modelled verdicts, which are no findings, and with the names of what is left out."""
    text, left_out = render_markdown(without_models(report)), left_out_models(report)
    return f"{text}\n{left_out}\n" if left_out else text


def comment_text(markdown: str, url: str) -> str:
    """Return a report as the text of a comment: without mentions, which would notify people, and not too long."""
    text = _MENTION.sub("@\N{ZERO WIDTH SPACE}", markdown)
    if len(text) <= COMMENT_LIMIT:
        return text
    kept = text[:COMMENT_LIMIT].rpartition("\n")[0]
    return f"{kept}{_end_of_fence(kept)}\n\nThe report is longer than a comment may be; all of it: {url}\n"


def _end_of_fence(markdown: str) -> str:
    """Return what ends the code block that is open at the end of the text; empty if none is."""
    fence = ""
    for line in markdown.split("\n"):
        ticks = line[: len(line) - len(line.lstrip("`"))]
        if len(ticks) >= 3:
            fence = ticks if not fence else "" if line.strip() == fence else fence
    return f"\n{fence}" if fence else ""
