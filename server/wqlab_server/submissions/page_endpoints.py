"""One submission as its page shows it: its steps in one answer, its versions, two versions beside each other."""

from __future__ import annotations

from fastapi import APIRouter

from wqlab_contracts.api.steps import SubmissionComparison, SubmissionSteps, SubmissionVersion

from ..http.auth import Reader
from ..http.deps import Db
from ..http.paging import Id
from ..http.problems import documented
from . import queries, versions
from .steps import steps

router = APIRouter(prefix="/submissions", tags=["submissions"], responses=documented(401, 403, 404, 422, 429))


@router.get("/{submission_id}/steps")
def get_submission_steps(submission_id: Id, session: Db, _: Reader) -> SubmissionSteps:
    """Apply, builds, runs, blocks and boots with their states and failures; without samples, figures and environments,
    so that a page can read it again whenever an event comes."""
    return steps(session, queries.get(session, submission_id))


@router.get("/{submission_id}/versions")
def list_submission_versions(submission_id: Id, session: Db, _: Reader) -> list[SubmissionVersion]:
    """Every submission of the same series (equal `series_key`), this one among them, newest first, at most 100. A
    settings study has no versions but itself."""
    return versions.of_series(session, queries.get(session, submission_id))


@router.get("/{submission_id}/compare/{other_id}")
def compare_submissions(submission_id: Id, other_id: Id, session: Db, _: Reader) -> SubmissionComparison:
    """Two submissions' figures beside each other, target by target. Each has its own baseline, its own boots and
    perhaps its own device: they are not paired, and nothing here is tested."""
    return versions.side_by_side(session, queries.get(session, submission_id), queries.get(session, other_id))
