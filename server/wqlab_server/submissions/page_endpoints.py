"""REST endpoints for the steps of a submission, the versions of its series, and the range-diff between two of them."""

from __future__ import annotations

from anyio import from_thread
from fastapi import APIRouter, Request

from wqlab_contracts.api.steps import PatchPair, SubmissionSteps, SubmissionVersion
from wqlab_report.range_diff import patches_of, range_diff

from ..http.auth import Reader
from ..http.deps import Db, Store
from ..http.downloads import deleted
from ..http.inspection_process import InspectionFailed, run_in_process
from ..http.limits import slow_responses
from ..http.paging import Id
from ..http.problems import ApiProblem, documented
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


@router.get("/{submission_id}/range-diff/{other_id}", responses=documented(410, 503, rules="the series are too large"))
def compare_series(
    *, submission_id: Id, other_id: Id, request: Request, session: Db, store: Store, _: Reader
) -> list[PatchPair]:
    """Compare the series of two submissions patch by patch, as git-range-diff(1) does, in the order of the second."""
    texts = []
    for number in (submission_id, other_id):
        mbox, deleted_at = queries.series_of(session, queries.get(session, number))
        if deleted_at is not None:
            raise deleted(mbox.name, deleted_at)
        texts.append(store.read(mbox.sha256).decode("utf-8", errors="replace"))
    with slow_responses(request).inspections.use(request):
        try:
            return from_thread.run(run_in_process, _range_diff, *texts)
        except InspectionFailed as error:
            raise ApiProblem(422, "the series are too large to compare: use git range-diff") from error


def _range_diff(first: str, second: str) -> list[PatchPair]:
    found = range_diff(patches_of(first), patches_of(second))
    return [PatchPair(**(vars(pair) | {"difference": list(pair.difference)})) for pair in found]
