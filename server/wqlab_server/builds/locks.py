"""Row locks of applies and builds. Lock order: a submission before its jobs."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from ..http.problems import not_found
from ..models import (
    Apply,
    Build,
    Submission,
    SubmissionBuild,
)


def lock_submissions(session: Session, ids: Sequence[int]) -> None:
    """Lock submissions in the order of their ids, so that concurrent callers cannot deadlock."""
    if ids:
        session.execute(
            select(Submission.id).where(Submission.id.in_(ids)).order_by(Submission.id).with_for_update()
        ).all()


def lock_apply(session: Session, apply_id: int) -> Apply:
    """Lock the apply's submission, then the apply, and return the apply. Raises ApiProblem 404."""
    submission_id = session.scalar(select(Apply.submission_id).where(Apply.id == apply_id))
    lock_submissions(session, [submission_id] if submission_id is not None else [])
    apply = session.scalar(select(Apply).where(Apply.id == apply_id).with_for_update())
    if apply is None:
        raise not_found("apply", apply_id)
    return apply


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


def lock_build(session: Session, build_id: int) -> tuple[Build, list[int]]:
    """Lock the submissions that use a build, then the build; return it with their ids. Raises ApiProblem 404."""
    submission_ids = submissions_using(session, build_id)
    lock_submissions(session, submission_ids)
    build = session.scalar(select(Build).where(Build.id == build_id).with_for_update())
    if build is None:
        raise not_found("build", build_id)
    return build, submission_ids
