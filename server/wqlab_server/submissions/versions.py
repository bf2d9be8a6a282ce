"""Versions of a series."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select, type_coerce
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Session, defer

from wqlab_contracts.api.steps import SubmissionVersion

from ..models import Apply, Submission
from ..views.build import VerdictCounts, submission_summary
from ..views.load import deciding_verdicts, target_summaries

MAX_VERSIONS = 100


def of_series(session: Session, submission: Submission) -> list[SubmissionVersion]:
    """Return the submissions of the same series, newest first; for a settings study only the submission itself."""
    rows: Sequence[Submission] = [submission]
    if submission.request.series is not None and submission.series_key:
        rows = session.scalars(
            select(Submission)
            .where(Submission.series_key == submission.series_key)
            .options(defer(Submission.request))
            .order_by(Submission.id.desc())
            .limit(MAX_VERSIONS)
        ).all()
    return _views(session, rows)


def _views(session: Session, rows: Sequence[Submission]) -> list[SubmissionVersion]:
    ids = [row.id for row in rows]
    verdicts, targets = deciding_verdicts(session, ids), target_summaries(session, ids)
    result = type_coerce(Apply.result, JSONB)
    sources = {
        submission_id: (base_commit, tree_oid)
        for submission_id, base_commit, tree_oid in session.execute(
            select(
                Apply.submission_id,
                result["baseline"]["base_commit"].astext,
                result["candidate"]["tree_oid"].astext,
            ).where(Apply.submission_id.in_(ids))
        )
    }
    views = []
    for row in rows:
        summary = submission_summary(row, verdicts.get(row.id, VerdictCounts()), targets.get(row.id, []))
        base_commit, tree_oid = sources.get(row.id, (None, None))
        fields = {name: getattr(summary, name) for name in type(summary).model_fields}
        views.append(SubmissionVersion(**fields, base_commit=base_commit, tree_oid=tree_oid))
    return views
