"""Lookups of branches: a worker lists the branches of a repository, and the result is cached for a short time."""

from __future__ import annotations

from sqlalchemy.orm import Session

from wqlab_contracts.api.series import GitBranches
from wqlab_contracts.enums import Outcome
from wqlab_contracts.messages.lookups import LookupJob, LookupResult

from ..http.git_urls import url_problem
from ..http.problems import ApiProblem, not_found
from ..jobs import lookups
from ..models import BranchList
from ..settings import Settings


class BranchListKind(lookups.LookupKind[BranchList]):
    """Listings of branches. Those for watched trees are ordered and read by `intake.watched_trees`."""

    model = BranchList
    name = "the listing of branches"
    plural = "listings of branches"
    alternative = "the name of a branch can be typed in meanwhile"


def request(session: Session, url: str, owner: str, settings: Settings) -> int:
    """Return the id of a lookup of `url`: an unfinished or recent one, else a new one.

    Raises ApiProblem 422 if the URL is refused, and Wait if the owner has too many unfinished lookups.
    """
    problem = url_problem(url, settings.local_git_path_list)
    if problem is not None:
        raise ApiProblem(422, problem, errors=[{"parameter": "url", "in": "query", "detail": problem}])
    job = LookupJob(url=url)
    return lookups.request(session, BranchListKind, BranchList(payload=job, key=job.model_dump_json(), owner=owner))


def read(session: Session, lookup_id: int) -> GitBranches:
    """Return the state of a lookup and, once it is finished, its branches. Raises ApiProblem 404 if it is unknown."""
    lookup = session.get(BranchList, lookup_id, populate_existing=True)
    if lookup is None:
        raise not_found("listing of branches", lookup_id)
    result = lookup.result or LookupResult(outcome=Outcome.FAILED)
    return GitBranches(
        url=lookup.payload.url,
        state=lookup.state,
        outcome=lookup.outcome,
        failure=lookup.failure,
        branches=result.branches,
        head=result.head,
        truncated=result.truncated,
        looked_at=lookup.finished_at,
    )
