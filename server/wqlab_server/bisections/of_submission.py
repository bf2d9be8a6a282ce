"""Find the bisections that a submission belongs to."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Integer, or_, select, type_coerce
from sqlalchemy.dialects.postgresql import JSONB

from ..models import Bisection, BisectionStep, HistoryShift, WatchedHead


def about_submission(submission_id: int) -> ColumnElement[bool]:
    """Match the bisections that a submission belongs to.

    These are the ones that made it as a step, that a person began from its report, and that search a shift which it
    suspected or confirmed.
    """
    made = select(BisectionStep.bisection_id).where(BisectionStep.submission_id == submission_id)
    head = select(WatchedHead.id).where(WatchedHead.submission_id == submission_id)
    shifted = select(HistoryShift.bisection_id).where(
        HistoryShift.bisection_id.is_not(None),
        or_(HistoryShift.submission_id == submission_id, HistoryShift.after_id.in_(head)),
    )
    named = type_coerce(Bisection.request, JSONB)["submission"].astext.cast(Integer) == submission_id
    return or_(Bisection.id.in_(made), Bisection.id.in_(shifted), named)
