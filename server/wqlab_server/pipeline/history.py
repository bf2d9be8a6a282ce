"""Add measured heads to the history, and confirm suspected shifts by paired runs of both sides.

Each step is one transaction that holds the row of the watched tree, so that a second server repeats none.
"""

from __future__ import annotations

from datetime import timedelta

import structlog
from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_contracts.enums import (
    AuditAction,
    ErrorKind,
    Outcome,
    Question,
    ShiftState,
    SubmissionState,
)
from wqlab_contracts.loading import DataError, DataFolder
from wqlab_contracts.messages import CommitPair

from ..history import record
from ..history.shifts import judge
from ..http.problems import ApiProblem
from ..models import Comparison, HistoryLine, HistoryShift, Run, Submission, WatchedHead, WatchedTree
from ..settings import Settings
from ..storage import audit
from ..storage.audit import OPERATOR
from ..storage.db import SessionFactory, clock, transaction
from ..storage.live_data import LiveData
from ..wait import Wait
from .admission import submit_pair, text_of
from .tick_errors import isolate_errors

ATTEMPTS = 3
"""Submissions for one shift that the lab fails to measure, before it is left to a person."""
_RETRY_AFTER = timedelta(minutes=15)

log = structlog.get_logger(__name__)


def advance_history(factory: SessionFactory, settings: Settings, data: LiveData) -> None:
    """Take every step of the history that is possible: add points, open shifts, confirm and judge them."""
    with transaction(factory) as session:
        measured = record.not_recorded(session)
    for tree, heads in measured.items():
        for head_id in heads:
            with isolate_errors(factory, "history", head_id), transaction(factory) as session:
                _record(session, tree, head_id)
    try:
        current = data.current()
    except DataError:
        return  # the tick logs it
    with transaction(factory) as session:
        waiting = session.scalars(
            select(HistoryShift.id)
            .where(
                HistoryShift.state == ShiftState.NEW,
                HistoryShift.submission_id.is_not(None) | (HistoryShift.attempts < ATTEMPTS),
            )
            .order_by(HistoryShift.id)
        ).all()
    for shift_id in waiting:
        with isolate_errors(factory, "shift", shift_id):
            try:
                with transaction(factory) as session:
                    _advance(session, shift_id, current, settings)
            except (Wait, ApiProblem) as obstacle:
                reason = text_of(obstacle) if isinstance(obstacle, ApiProblem) else str(obstacle)
                with transaction(factory) as session:
                    shift = session.get_one(HistoryShift, shift_id, with_for_update=True)
                    if shift.reason != f"waits: {reason}":
                        shift.reason = f"waits: {reason}"


def _record(session: Session, tree: str, head_id: int) -> None:
    session.get_one(WatchedTree, tree, with_for_update=True)
    head = session.get_one(WatchedHead, head_id, populate_existing=True)
    if head.in_history_at is None:
        lines = record.record(session, head)
        log.info("history_recorded", tree=tree, head=head_id, lines=len(lines))


def _advance(session: Session, shift_id: int, data: DataFolder, settings: Settings) -> None:
    """Confirm or judge a shift. Raises Wait or ApiProblem if no submission can be made now."""
    line = session.scalars(
        select(HistoryLine)
        .join(HistoryShift, HistoryShift.line_id == HistoryLine.id)
        .where(HistoryShift.id == shift_id)
    ).one()
    tree = session.get_one(WatchedTree, line.tree_name, with_for_update=True)
    shift = session.get_one(HistoryShift, shift_id, with_for_update=True, populate_existing=True)
    if shift.state is not ShiftState.NEW:
        return
    if shift.submission_id is None:
        if shift.attempts < ATTEMPTS and _is_due(session, shift):
            _confirm(session, shift, tree=tree, line=line, data=data, settings=settings)
        return
    submission = session.get_one(Submission, shift.submission_id)
    if submission.state is SubmissionState.FINISHED:
        _conclude(session, line, shift, submission)


def _is_due(session: Session, shift: HistoryShift) -> bool:
    if shift.submitted_at is None:
        return True
    return clock(session) >= shift.submitted_at + (1 << shift.attempts - 1) * _RETRY_AFTER


# --- confirm ----------------------------------------------------------------------------------------------------


def _confirm(
    session: Session,
    shift: HistoryShift,
    *,
    tree: WatchedTree,
    line: HistoryLine,
    data: DataFolder,
    settings: Settings,
) -> None:
    """Submit both sides of a shift, or take the submission that an equal shift of another line has."""
    now = clock(session)
    same = _submission_of_equal_shift(session, line, shift)
    if same is not None:
        shift.submission_id, shift.submitted_at, shift.reason = same, now, ""
        shift.attempts += 1
        return
    before, after = (session.get_one(WatchedHead, id_) for id_ in (shift.before_id, shift.after_id))
    attempt = shift.attempts + 1
    admitted = submit_pair(
        session,
        tree,
        CommitPair(baseline=before.commit, candidate=after.commit, ref=after.name),
        [f"{line.plan_name}@{line.device_type}"],
        measured_on=after.devices,
        key=f"shift:{shift.id}:{attempt}",
        data=data,
        settings=settings,
    )
    made = admitted.submission
    shift.submission_id, shift.attempts, shift.submitted_at, shift.reason = made.id, attempt, now, ""
    shift.quoted_s = (shift.quoted_s or 0.0) + admitted.quoted_s
    audit.record(
        session, OPERATOR, AuditAction.CREATE_SUBMISSION, f"submission/{made.id}",
        watched_tree=tree.name, shift=shift.id, baseline=before.commit, candidate=after.commit,
    )  # fmt: skip
    log.info("shift_submitted", shift=shift.id, submission=made.id)


def _submission_of_equal_shift(session: Session, line: HistoryLine, shift: HistoryShift) -> int | None:
    """Return the newest submission of the same two heads, plan and device type, unless it failed in the lab."""
    found = session.execute(
        select(Submission.id, Submission.outcome)
        .join(HistoryShift, HistoryShift.submission_id == Submission.id)
        .join(HistoryLine, HistoryLine.id == HistoryShift.line_id)
        .where(
            HistoryShift.id != shift.id,
            HistoryShift.before_id == shift.before_id,
            HistoryShift.after_id == shift.after_id,
            HistoryLine.plan_name == line.plan_name,
            HistoryLine.device_type == line.device_type,
        )
        .order_by(Submission.id.desc())
        .limit(1)
    ).first()
    return found.id if found is not None and found.outcome in {None, Outcome.PASSED} else None


# --- conclude ---------------------------------------------------------------------------------------------------


def _conclude(session: Session, line: HistoryLine, shift: HistoryShift, submission: Submission) -> None:
    """Judge a shift by its submission, or say why it could not be measured."""
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
    shift.submission_id = None  # tried again, unless another attempt would end in the same way
    if failure is None or failure.kind is not ErrorKind.INFRASTRUCTURE:
        shift.attempts = ATTEMPTS
