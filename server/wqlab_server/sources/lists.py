"""Source: series of mailing lists that a watch takes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from pydantic import ValidationError
from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_contracts.enums import AuditAction, DecisionReason, DecisionState, SubmissionState
from wqlab_contracts.specs import ListWatch

from ..intake.decide import other_revisions
from ..intake.watches import LIST_SOURCE, request_of
from ..models import Order, Run, SeenMail, Submission, Watch, WatchDecisionRow
from ..orders import orders
from ..orders.source import Context, Proposal, Refused, Source, Stop, TooLarge
from ..storage.audit import Actor, record
from ..storage.db import clock
from ..submissions import service as submissions


class _NotTaken(Stop):
    def __init__(self, reason: DecisionReason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class ListSource(Source):
    """Series that a watch has selected. Keys are ids of decisions."""

    name = LIST_SOURCE
    longest_wait = timedelta(days=3)

    def items(self, context: Context) -> Sequence[int]:
        unordered = orders.not_ordered(self.name, WatchDecisionRow.id)
        waiting = select(WatchDecisionRow.id).where(WatchDecisionRow.state == DecisionState.WAITING, unordered)
        return context.session.scalars(waiting.order_by(WatchDecisionRow.id)).all()

    def find(self, context: Context, item: int | str) -> None:
        row = context.session.get_one(WatchDecisionRow, item)
        orders.place(context.session, self.name, row.id, watch=row.watch)

    def propose(self, context: Context, order: Order) -> Proposal:
        session = context.session
        row = _lock(session, order)
        if row.state is not DecisionState.WAITING:
            raise Stop(row.detail)
        watch, mail = session.get_one(Watch, row.watch), session.get(SeenMail, (row.archive, row.message_id))
        spec = watch.spec
        if watch.enabled_at is None or not isinstance(spec, ListWatch):
            raise _NotTaken(DecisionReason.DISABLED, f"watch {row.watch} was disabled or removed")
        if mail is not None and mail.removed:
            raise _NotTaken(DecisionReason.REMOVED, "the archive has removed a mail of it")
        try:
            request = request_of(spec, row.message_id, row.revision, row.targets)
        except ValidationError as error:
            raise Refused(self.mistakes, f"no submission can be made of it: {error.errors()[0]['msg']}") from None
        return Proposal(request, spec.owner, on_behalf=True)

    def submitted(self, context: Context, order: Order, submission: Submission) -> None:
        row = _lock(context.session, order)
        row.state, row.reason, row.detail = DecisionState.TAKEN, None, ""
        row.submission_id, row.decided_at = submission.id, clock(context.session)
        if row.archive in context.data.checked_archives:
            _cancel_earlier(context.session, row)

    def waits(self, context: Context, order: Order, reason: Exception) -> None:
        row = _lock(context.session, order)
        row.reason, row.detail = DecisionReason.QUOTA, str(reason)
        if isinstance(reason, orders.QuietHours):
            row.reason = DecisionReason.QUIET_HOURS
        elif isinstance(reason, orders.BudgetUsedUp):
            row.reason = DecisionReason.OVER_BUDGET

    def stopped(self, context: Context, order: Order, stop: Stop) -> None:
        row = _lock(context.session, order)
        if row.state is not DecisionState.WAITING:
            return
        reason = row.reason or DecisionReason.INVALID
        if isinstance(stop, _NotTaken):
            reason = stop.reason
        elif isinstance(stop, Refused):
            reason = DecisionReason.OVER_BUDGET if isinstance(stop, TooLarge) else DecisionReason.INVALID
        row.state, row.reason, row.detail = DecisionState.NOT_TAKEN, reason, str(stop)
        row.decided_at = clock(context.session)


def _lock(session: Session, order: Order) -> WatchDecisionRow:
    return session.get_one(WatchDecisionRow, int(order.key), with_for_update=True)


def _cancel_earlier(session: Session, row: WatchDecisionRow) -> None:
    """Cancel the submissions of earlier revisions of the series, except those with a run that has begun."""
    session.flush()
    mail = session.get(SeenMail, (row.archive, row.message_id))
    references = [] if mail is None else [mail.mail.in_reply_to or "", *mail.mail.references]
    earlier = other_revisions(row.author_address, row.subject_key, references).where(
        WatchDecisionRow.state == DecisionState.TAKEN, WatchDecisionRow.revision < row.revision
    )
    for other in session.scalars(earlier.with_for_update()):
        if other.submission_id is not None and _cancel(session, other.submission_id, row.watch):
            other.detail = f"canceled before it was measured: v{row.revision} has arrived"


def _cancel(session: Session, submission_id: int, watch: str) -> bool:
    """Cancel a submission on behalf of a watch, unless one of its runs has begun. Return True if it was canceled."""
    submission = submissions.lock(session, submission_id)
    if submission.state is SubmissionState.FINISHED or submission.cancel_requested_at is not None:
        return False
    begun = select(Run.id).where(Run.submission_id == submission_id, Run.started_at.is_not(None)).limit(1)
    if session.scalar(begun) is not None:
        return False
    submissions.cancel(session, submission_id)
    record(session, Actor(name=f"watch {watch}"), AuditAction.CANCEL_SUBMISSION, f"submission/{submission_id}")
    return True
