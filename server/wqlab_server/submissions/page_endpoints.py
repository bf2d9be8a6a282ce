"""Endpoints for a submission's page: its steps, the versions of its series, and two submissions side by side."""

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
    """Apply, builds, runs, blocks and boots with their states and failures. Samples, figures and environments are left
    out, so that a page can reload it at every event."""
    return steps(session, queries.get(session, submission_id))


@router.get("/{submission_id}/versions")
def list_submission_versions(submission_id: Id, session: Db, _: Reader) -> list[SubmissionVersion]:
    """All submissions of the same series (equal `series_key`), this one included, newest first, at most 100. A settings
    study has no other versions."""
    return versions.of_series(session, queries.get(session, submission_id))


@router.get("/{submission_id}/compare/{other_id}", responses=documented(rules="a submission is compared with itself"))
def compare_submissions(submission_id: Id, other_id: Id, session: Db, _: Reader) -> SubmissionComparison:
    """Compare the figures of two submissions side by side, target by target. Each submission has its own baseline, its
    own boots and possibly its own device: they are not paired and not tested against each other."""
    return versions.compare_submissions(session, queries.get(session, submission_id), queries.get(session, other_id))
