"""Lookups of branches: a worker lists the branches of a repository, and the result is cached for a short time."""

from __future__ import annotations

from sqlalchemy.orm import Session

from wqlab_contracts.api.series import GitBranches
from wqlab_contracts.celery_names import LOOKUP
from wqlab_contracts.enums import JobState, Outcome
from wqlab_contracts.messages.lookups import LookupJob, LookupResult

from ..http.git_urls import url_problem
from ..http.problems import ApiProblem
from ..jobs import lookups
from ..models import Lookup
from ..settings import Settings
from ..storage.db import clock
from ..storage.events import LOOKUP_CHANNEL


def request(session: Session, url: str, owner: str, settings: Settings) -> int:
    """Return the id of a lookup of `url`: an unfinished or recent one, else a new one.

    Raises ApiProblem 422 if the URL is refused, and 429 if the owner has too many unfinished lookups.
    """
    problem = url_problem(url, settings.local_git_path_list)
    if problem is not None:
        raise ApiProblem(422, problem, errors=[{"parameter": "url", "in": "query", "detail": problem}])
    new = Lookup(url=url, refs=[], private_network=False, owner=owner, state=JobState.WAITING)
    return lookups.request(
        session, new, [Lookup.url == url, Lookup.refs == [], Lookup.private_network.is_(False)], LOOKUP, settings
    )


def read(session: Session, lookup_id: int) -> GitBranches:
    """Return the state of a lookup and, once it is finished, its branches. Raises ApiProblem 404 if it is unknown."""
    lookup = lookups.lock(session, Lookup, lookup_id)
    lookups.finish_if_expired(session, lookup, clock(session))
    result = lookup.result or LookupResult(outcome=Outcome.FAILED)
    return GitBranches(
        url=lookup.url,
        state=lookup.state,
        outcome=lookup.outcome,
        failure=lookup.failure,
        branches=result.branches,
        head=result.head,
        truncated=result.truncated,
        looked_at=lookup.finished_at,
    )


# --- worker requests --------------------------------------------------------------------------------------------


def claim(
    session: Session, lookup_id: int, holder: str, settings: Settings, nonce: str | None
) -> tuple[LookupJob, int]:
    """Claim a lookup and return the job and its fence.

    Raises NotClaimable if it is not queued, and ApiProblem 404 if it is unknown.
    """
    lookup = lookups.lock(session, Lookup, lookup_id)
    fence = lookups.claim(session, lookup, holder, settings, nonce)
    return LookupJob(url=lookup.url, refs=lookup.refs, private_network=lookup.private_network), fence


def finish(session: Session, lookup_id: int, fence: int, result: LookupResult) -> None:
    """Store the result of a branch lookup and finish it. Repeating the same request changes nothing.

    Raises StaleFence if `fence` is no longer that of the lookup or the lookup was finished with another result, and
    ApiProblem 404 if there is no such lookup.
    """
    lookup = lookups.lock(session, Lookup, lookup_id)
    if lookups.finish(session, lookup, fence, result, LOOKUP_CHANNEL):
        lookup.result = result
