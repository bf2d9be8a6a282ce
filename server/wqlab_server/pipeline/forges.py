"""Advance pull requests and pushes: read heads, make and cancel submissions, and tell the forge about them."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from sqlalchemy import and_, or_, select
from sqlalchemy.orm import Session

from wqlab_contracts.enums import AuditAction, ErrorKind, JobState, Outcome, SubmissionState
from wqlab_contracts.forges_file import FILE
from wqlab_contracts.loading import DataFolder
from wqlab_contracts.messages import Failure
from wqlab_contracts.specs import Forge
from wqlab_report.writers.markdown import render_markdown

from ..http.problems import ApiProblem
from ..intake.forges import heads, poll, sync
from ..models import ForgeChange, ForgeHead, HeadReading, Submission
from ..outbox import forge_messages
from ..outbox.forge_messages import COMMENT_LIMIT, ForgeComment, ForgeStatus, StatusState
from ..reports.stored_report import load_or_assemble
from ..settings import Settings
from ..storage.artifacts import ArtifactStore
from ..storage.audit import OPERATOR, record
from ..storage.db import SessionFactory, clock, transaction
from ..storage.live_data import LiveData
from ..storage.owners import UnusableOwner, owner_of
from ..submissions import service as submissions
from ..views.load import target_summaries
from ..wait import Wait
from .tick_errors import isolate_errors
from .watch_lists import proposer

QUOTA_RETRY = timedelta(minutes=5)
"""Time between attempts to submit a head while the owner's quota is used up."""
_MENTION = re.compile(r"(?<![\w.+-])@(?=\w)")


def advance_forges(factory: SessionFactory, settings: Settings, data: LiveData) -> None:
    """Do what is due for all pull requests and branches. An error in one does not affect the others."""
    with isolate_errors(factory, "forges", "due"), transaction(factory) as session:
        sync.nudge_due(session, clock(session))
    with isolate_errors(factory, "forges", "polls"), transaction(factory) as session:
        poll.nudge_due(session, settings, data.current().forges)
    with transaction(factory) as session:
        open_heads = session.scalars(
            select(ForgeHead.id)
            .outerjoin(HeadReading, HeadReading.id == ForgeHead.reading_id)
            .outerjoin(Submission, Submission.id == ForgeHead.submission_id)
            .where(
                ForgeHead.ended_at.is_(None),
                or_(
                    ForgeHead.told_at.is_(None),
                    and_(ForgeHead.allowed != "", ForgeHead.reading_id.is_(None)),
                    and_(HeadReading.state == JobState.FINISHED, ForgeHead.decided_at.is_(None)),
                    Submission.state == SubmissionState.FINISHED,
                ),
            )
            .order_by(ForgeHead.id)
        ).all()
    for head_id in open_heads:
        with isolate_errors(factory, "forge_head", head_id), transaction(factory) as session:
            _advance(session, settings, data.current(), head_id)


def _advance(session: Session, settings: Settings, data: DataFolder, head_id: int) -> None:
    head = heads.lock(session, head_id)
    change = session.get_one(ForgeChange, head.change_id)
    forge = next((each for each in data.forges if each.name == change.forge), None)
    now = clock(session)
    if head.withdrawn_at is not None:
        if head.submission_id is not None:
            submissions.cancel(session, head.submission_id)
    elif forge is None:
        return  # until the operator lists it again
    elif head.reading is None:
        if head.allowed:
            heads.order_reading(session, head, forge, data.trees[forge.tree])
    elif head.reading.state is JobState.FINISHED and head.decided_at is None and (head.due_at or now) <= now:
        _decide(session, settings, data, forge=forge, change=change, head=head, reading=head.reading, now=now)
    _tell(session, settings, change, head, now)


# --- submissions ------------------------------------------------------------------------------------------------


def _decide(
    session: Session,
    settings: Settings,
    data: DataFolder,
    *,
    forge: Forge,
    change: ForgeChange,
    head: ForgeHead,
    reading: HeadReading,
    now: datetime,
) -> None:
    """Submit a head whose `.wqlab.yaml` a worker has read, or store the reason why it is not measured."""
    head.due_at, head.told_at = None, None
    if reading.result is None or reading.outcome is not Outcome.PASSED:
        failure = reading.failure
        kind = ErrorKind.INFRASTRUCTURE if failure is None else failure.kind
        _end(head, now, "failure" if kind is ErrorKind.USER else "error", _reason(failure))
        return
    request = heads.request_of(forge, change, head, reading.result, proposer(session, settings, data))
    if isinstance(request, heads.NotMeasured):
        status = {"silent": "", "nothing": "success", "wrong": "failure"}[request.verdict]
        if not status and forge_messages.has_status(session, forge.name, head.head, _context(change)):
            status = "success"  # that it waited for a label must not be its last status
        _end(head, now, status, request.reason)
        return
    try:
        owner_of(session, forge.owner)
    except UnusableOwner as error:
        _end(head, now, "error", f"owner in {FILE}: {error}")
        return
    key = f"forge:{forge.name}:{head.id}"
    try:
        with session.begin_nested():
            submission = submissions.create(
                session, data, settings, request, forge.owner, idempotency_key=key, limited=True, on_behalf=True
            )
    except Wait as wait:
        head.due_at, head.status, head.reason = now + QUOTA_RETRY, "pending", f"waits: {wait}"
        return
    except ApiProblem as problem:
        _end(head, now, "failure", f".wqlab.yaml: {problem.detail}")
        return
    submission.title = submissions.truncate(_title(forge, change))
    submission.series_key = submissions.truncate(f"{forge.name} {change.key}")
    head.submission_id, head.decided_at, head.reason, head.status = submission.id, now, "", ""
    record(session, OPERATOR, AuditAction.CREATE_SUBMISSION, f"submission/{submission.id}", source=key)


def _end(head: ForgeHead, now: datetime, status: str, reason: str) -> None:
    head.decided_at, head.status, head.reason = now, status, reason


def _reason(failure: Failure | None) -> str:
    return "the lab could not read the commit" if failure is None else failure.summary


def _title(forge: Forge, change: ForgeChange) -> str:
    if change.number is None:
        return f"{change.branch} of {forge.repository}"
    return f"{change.title or 'pull request'} ({forge.repository} {change.number})"


# --- what the forge is told -------------------------------------------------------------------------------------


def _tell(session: Session, settings: Settings, change: ForgeChange, head: ForgeHead, now: datetime) -> None:
    """Write the status of the head's commit and, with the result, the comment on its pull request."""
    submission = session.get_one(Submission, head.submission_id) if head.submission_id is not None else None
    finished = submission is not None and submission.state is SubmissionState.FINISHED
    if head.told_at is not None and not finished:
        return
    said = _status(session, head, submission)
    if head.withdrawn_at is not None and not forge_messages.has_status(
        session, change.forge, head.head, _context(change)
    ):
        said = None  # nothing was said of it, so there is nothing to end
    head.told_at = now
    if said is not None:
        state, description = said
        number = head.submission_id
        status = ForgeStatus(
            forge=change.forge,
            commit=head.head,
            context=_context(change),
            state=state,
            description=description,
            target_url=f"{settings.public_url}/r/{number}" if number else f"{settings.public_url}/docs/forges/",
        )
        forge_messages.write_status(session, settings, status, subject=head.id, submission_id=number, now=now)
    if submission is not None and finished and head.withdrawn_at is None and change.number is not None:
        _comment(session, settings, change, head, submission, number=change.number, now=now)
    if finished or head.withdrawn_at is not None or (head.decided_at is not None and submission is None):
        head.ended_at = now


def _context(change: ForgeChange) -> str:
    """Return the name of the status: a pull request and a push may have the same commit."""
    return "wqlab" if change.number is not None else "wqlab/push"


def _status(session: Session, head: ForgeHead, submission: Submission | None) -> tuple[StatusState, str] | None:
    """Return state and description of the commit's status; None if nothing is said."""
    if head.withdrawn_at is not None:
        return "canceled", head.reason
    if submission is None:
        if head.decided_at is None and head.allowed and not head.reason:
            return None  # whether the repository asks for a measurement is not known yet
        states: dict[str, StatusState] = {"pending": "pending", "success": "success", "failure": "failure"}
        return None if not head.status else (states.get(head.status, "error"), head.reason)
    if submission.state is not SubmissionState.FINISHED:
        targets = len(submission.request.targets)
        return "pending", f"submission {submission.id}: {targets} target{'s' if targets != 1 else ''}"
    if submission.outcome is Outcome.CANCELED:
        return "canceled", "the submission was canceled"
    if submission.failure is not None:
        infrastructure = submission.failure.kind is ErrorKind.INFRASTRUCTURE
        return ("error" if infrastructure else "failure"), submission.failure.summary
    verdicts = [
        f"{target.plan}@{target.device_type}: {(target.verdict or target.outcome or target.state).value}"
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
            body=f"{marker}\nMeasured commit: {head.head}\n\n{comment_text(render_markdown(report), url)}",
        ),
        submission_id=submission.id,
        now=now,
    )


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
