"""Row locks of submissions. Lock order: a submission before its jobs."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from ..models import Submission, SubmissionBuild


def lock_submissions(session: Session, ids: Sequence[int]) -> None:
    """Lock submissions in the order of their ids, so that concurrent callers cannot deadlock."""
    if ids:
        session.execute(
            select(Submission.id).where(Submission.id.in_(ids)).order_by(Submission.id).with_for_update()
        ).all()


def submissions_using(session: Session, build_id: int) -> list[int]:
    """Return the ids of the submissions that use a build."""
    return list(
        session.scalars(
            select(SubmissionBuild.submission_id)
            .where(SubmissionBuild.build_id == build_id)
            .distinct()
            .order_by(SubmissionBuild.submission_id)
        )
    )
