"""Create submissions for the series that a rule has selected, as soon as quiet hours, budget and quota allow."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from pydantic import ValidationError
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.enums import DecisionReason, DecisionState
from wqlab_contracts.messages import Series, Target, ThreadSeries
from wqlab_contracts.specs.rules import ListRule

from ..http.problems import ApiProblem
from ..models import RuleDecisionRow, SeenMail, StoredRule
from ..storage.db import clock
from ..wait import QuotaUsedUp
from .decide import other_revisions

WAIT = timedelta(days=3)
"""Longest time for which a series waits for the end of quiet hours, for budget or for quota."""
BUDGET_WINDOW = timedelta(days=1)
_QUIET_RETRY = timedelta(minutes=5)
_BUDGET_RETRY = timedelta(minutes=10)
_QUOTA_RETRY = (timedelta(minutes=1), timedelta(hours=1))


@dataclass(frozen=True)
class Steps:
    """What other domains do for a decision."""

    minutes: Callable[[Session, SubmissionRequest, str], float]
    """Return the device time (minutes) that the quote of an owner's request predicts."""
    create: Callable[[Session, SubmissionRequest, str, str, str], int]
    """Create a submission for an account, with an idempotency key and the rule's name, and return its id. Raises
    ApiProblem."""
    cancel: Callable[[Session, int, str], bool]
    """Cancel a submission on behalf of a rule, unless one of its runs has begun. Return True if it was canceled."""
    checked: frozenset[str] = frozenset()
    """Archives that check senders: only in these does a later revision cancel an earlier one."""


def due(session: Session) -> list[int]:
    """Return the ids of the decisions that wait and are due, oldest first."""
    waiting = select(RuleDecisionRow.id).where(
        RuleDecisionRow.state == DecisionState.WAITING, RuleDecisionRow.retry_at <= clock(session)
    )
    return list(session.scalars(waiting.order_by(RuleDecisionRow.id)))


def request_of(rule: ListRule, message_id: str, revision: int, targets: list[str]) -> SubmissionRequest:
    """Return the request of a submission that measures a revision. Raises ValidationError for an invalid Message-ID."""
    thread = ThreadSeries(message_id=message_id, revision=revision or None)
    pairs = (target.partition("@") for target in targets)
    return SubmissionRequest(
        series=Series(thread=thread),
        tree=rule.tree,
        targets=[Target(plan=plan, device_type=device_type) for plan, _, device_type in pairs],
    )


def take(session: Session, decision_id: int, steps: Steps) -> None:
    """Create the submission of a waiting decision, or record why it has to wait or why there will be none.

    The submission and the decision are written in one transaction, so that neither exists without the other.
    """
    row = session.scalar(
        select(RuleDecisionRow)
        .where(RuleDecisionRow.id == decision_id, RuleDecisionRow.state == DecisionState.WAITING)
        .with_for_update(skip_locked=True)
    )
    if row is None:
        return
    now = clock(session)
    stored = session.get(StoredRule, row.rule)
    mail = session.get(SeenMail, (row.archive, row.message_id))
    if stored is None or stored.enabled_at is None:
        _end(row, now, DecisionReason.SWITCHED_OFF, f"rule {row.rule} was switched off or removed")
    elif mail is not None and mail.removed:
        _end(row, now, DecisionReason.REMOVED, "the archive has removed a mail of it")
    elif row.reason is not None and now > row.created_at + WAIT:
        _end(row, now, row.reason, f"it waited for {WAIT.days} days: {row.detail}")
    elif stored.rule.is_quiet(now):
        _wait(row, now + _QUIET_RETRY, DecisionReason.QUIET_HOURS, "it waits for the end of the rule's quiet hours")
    else:
        _submit(session, row, stored.rule, steps, now)
        if row.state is DecisionState.TAKEN:
            references = [] if mail is None else [mail.mail.in_reply_to or "", *mail.mail.references]
            _cancel_earlier(session, row, references, steps)


def _submit(session: Session, row: RuleDecisionRow, rule: ListRule, steps: Steps, now: datetime) -> None:
    try:
        request = request_of(rule, row.message_id, row.revision, row.targets)
    except ValidationError as error:
        _end(row, now, DecisionReason.INVALID, f"no submission can be made of it: {error.errors()[0]['msg']}")
        return
    row.minutes = steps.minutes(session, request, rule.owner)
    used = minutes_used(session, rule.name, now)
    budget = rule.minutes_a_day
    if row.minutes > budget:
        detail = f"it needs {row.minutes:.0f} minutes of devices, the rule has {budget} a day; raise minutes_a_day"
        _end(row, now, DecisionReason.OVER_BUDGET, detail)
        return
    if used + row.minutes > budget:
        detail = f"it needs {row.minutes:.0f} minutes of devices; {used:.0f} of {budget} a day are used"
        _wait(row, now + _BUDGET_RETRY, DecisionReason.OVER_BUDGET, detail)
        return
    key = hashlib.sha256(f"{row.rule} {row.root} {row.revision}".encode()).hexdigest()
    try:
        with session.begin_nested():
            row.submission_id = steps.create(session, request, rule.owner, f"list {key}", rule.name)
    except ApiProblem as problem:
        _end(row, now, DecisionReason.INVALID, problem.detail)
        return
    except QuotaUsedUp as wait:
        shortest, longest = _QUOTA_RETRY
        pause = min(max(wait.pause or shortest, shortest), longest)
        _wait(row, now + pause, DecisionReason.QUOTA, f"{rule.owner}: {wait}")
        return
    row.state, row.reason, row.detail = DecisionState.TAKEN, None, ""
    row.decided_at, row.retry_at = now, None


def minutes_used(session: Session, rule: str, now: datetime) -> float:
    """Return the device time, by quotes, of what a rule took in the last 24 hours."""
    used = select(func.sum(RuleDecisionRow.minutes)).where(
        RuleDecisionRow.rule == rule,
        RuleDecisionRow.state == DecisionState.TAKEN,
        RuleDecisionRow.decided_at > now - BUDGET_WINDOW,
    )
    return session.scalar(used) or 0.0


def _cancel_earlier(session: Session, row: RuleDecisionRow, references: list[str], steps: Steps) -> None:
    """Cancel the submissions of earlier revisions whose runs have not begun: nobody waits for their result any more."""
    if row.archive not in steps.checked:
        return
    session.flush()
    earlier = other_revisions(row.author_address, row.subject_key, references).where(
        RuleDecisionRow.state == DecisionState.TAKEN, RuleDecisionRow.revision < row.revision
    )
    for other in session.scalars(earlier.with_for_update()):
        if other.submission_id is not None and steps.cancel(session, other.submission_id, row.rule):
            other.detail = f"canceled before it was measured: v{row.revision} has arrived"


def _wait(row: RuleDecisionRow, until: datetime, reason: DecisionReason, detail: str) -> None:
    row.reason, row.detail, row.retry_at = reason, detail, until


def _end(row: RuleDecisionRow, now: datetime, reason: DecisionReason, detail: str) -> None:
    row.state, row.reason, row.detail = DecisionState.NOT_TAKEN, reason, detail
    row.decided_at, row.retry_at = now, None
