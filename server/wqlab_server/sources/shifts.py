"""Source: suspected shifts of the history, which a second paired run of both sides confirms."""

from __future__ import annotations

from collections.abc import Sequence

import structlog
from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_contracts.enums import ErrorKind, OrderState, Question, ShiftState
from wqlab_contracts.messages import CommitPair

from ..history.shifts import SOURCE, judge, order_key
from ..models import Comparison, HistoryLine, HistoryShift, Order, Run, Submission, WatchedHead
from ..orders import orders
from ..orders.source import Context, Proposal, Source, Stop, lab_failure
from ..storage.db import clock
from .commit_pairs import lock_tree, propose_pair

log = structlog.get_logger(__name__)


class ShiftSource(Source):
    """New shifts. Those of several lines between the same heads, plan and device type are one order.

    Keys are `BEFORE:AFTER:PLAN@DEVICE-TYPE`, with the ids of both heads.
    """

    name = SOURCE
    tries = 3
    mistakes = ErrorKind.INFRASTRUCTURE

    def items(self, context: Context) -> Sequence[int]:
        new = select(HistoryShift.id).where(HistoryShift.state == ShiftState.NEW, HistoryShift.submission_id.is_(None))
        return context.session.scalars(new.order_by(HistoryShift.id)).all()

    def find(self, context: Context, item: int | str) -> None:
        """Order a shift, or give it the submission that an equal shift of another line has."""
        session = context.session
        shift = session.get_one(HistoryShift, item, with_for_update=True)
        line = session.get_one(HistoryLine, shift.line_id)
        key = order_key(shift, line)
        order = orders.find(session, self.name, key)
        if order is None:
            orders.place(session, self.name, key, watch=line.watch)
        elif order.state in {OrderState.SUBMITTED, OrderState.FINISHED}:
            shift.submission_id, shift.reason = order.submission_id, ""
            if order.state is OrderState.FINISHED:
                _judge(session, shift, line, session.get_one(Submission, order.submission_id))

    def propose(self, context: Context, order: Order) -> Proposal:
        before, after, target = order.key.split(":", 2)
        first, last = (context.session.get_one(WatchedHead, int(each)) for each in (before, after))
        spec = lock_tree(context.session, last.watch)
        pair = CommitPair(baseline=first.commit, candidate=last.commit, ref=last.name)
        return propose_pair(context, spec, pair, [target], last.devices)

    def submitted(self, context: Context, order: Order, submission: Submission) -> None:
        for shift, _ in _shifts(context.session, order):
            shift.submission_id, shift.reason = submission.id, ""

    def waits(self, context: Context, order: Order, reason: Exception) -> None:
        for shift, _ in _shifts(context.session, order):
            shift.reason = f"waits: {reason}"

    def conclude(self, context: Context, order: Order, submission: Submission) -> str:
        failure = lab_failure(submission)
        for shift, line in _shifts(context.session, order):
            _judge(context.session, shift, line, submission)
            if failure and shift.state is ShiftState.NEW:
                shift.submission_id = None
        return failure

    def stopped(self, context: Context, order: Order, stop: Stop) -> None:
        for shift, _ in _shifts(context.session, order):
            shift.reason = str(stop)


def _shifts(session: Session, order: Order) -> Sequence[tuple[HistoryShift, HistoryLine]]:
    """Lock and return the new shifts of an order, with their lines."""
    before, after, target = order.key.split(":", 2)
    plan, _, device_type = target.partition("@")
    found = session.execute(
        select(HistoryShift, HistoryLine)
        .join(HistoryLine, HistoryLine.id == HistoryShift.line_id)
        .where(
            HistoryShift.before_id == int(before),
            HistoryShift.after_id == int(after),
            HistoryShift.state == ShiftState.NEW,
            HistoryLine.plan_name == plan,
            HistoryLine.device_type == device_type,
        )
        .order_by(HistoryShift.id)
        .with_for_update(of=HistoryShift)
    )
    return [(shift, line) for shift, line in found]


def _judge(session: Session, shift: HistoryShift, line: HistoryLine, submission: Submission) -> None:
    """Judge a shift by its finished submission, or say why that did not measure it: a person decides then."""
    row = session.scalar(
        select(Comparison)
        .join(Run, Run.id == Comparison.run_id)
        .where(
            Run.submission_id == submission.id,
            Run.plan_name == line.plan_name,
            Run.device_type == line.device_type,
            Comparison.question == Question.KERNEL,
            Comparison.data["scenario"].astext == line.scenario,
            Comparison.data["setting"].astext == line.setting,
            Comparison.data["metric"].astext == line.metric,
        )
        .limit(1)
    )
    problem = judge(shift, row.data if row is not None else None)
    if problem is None:
        shift.decided_at = clock(session)
        log.info("shift_judged", shift=shift.id, state=shift.state, submission=submission.id)
        return
    failure = submission.failure
    what = failure.summary if failure is not None else problem
    shift.reason = f"submission {submission.id} did not measure it: {what}"
