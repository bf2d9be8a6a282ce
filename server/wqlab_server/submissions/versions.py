"""Versions of a series, and the side-by-side comparison of two submissions."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select, type_coerce
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Session, defer

from wqlab_contracts.api.report import Comparison as ComparisonData
from wqlab_contracts.api.steps import SubmissionComparison, SubmissionVersion
from wqlab_contracts.enums import RunPurpose

from ..http.problems import invalid
from ..models import Apply, Comparison, Run, Submission
from ..views.build import VerdictCounts, submission_summary
from ..views.load import deciding_verdicts, target_summaries
from .side_by_side import Side, compare

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


def compare_submissions(session: Session, first: Submission, second: Submission) -> SubmissionComparison:
    """Compare two submissions side by side. Raises ApiProblem 422 if both are the same submission."""
    if first.id == second.id:
        detail = "a submission cannot be compared with itself; give another submission's id"
        raise invalid([{"parameter": "other_id", "in": "path", "detail": detail}])
    versions = _views(session, [first, second])
    sides = [
        Side(version, row.request, _figures(session, row.id))
        for version, row in zip(versions, (first, second), strict=True)
    ]
    return compare(*sides)


def _figures(session: Session, submission_id: int) -> list[ComparisonData]:
    return list(
        session.scalars(
            select(Comparison.data)
            .join(Run, Run.id == Comparison.run_id)
            .where(Run.submission_id == submission_id, Run.purpose == RunPurpose.MEASURE, Comparison.patch.is_(None))
            .order_by(Comparison.position)
        )
    )
