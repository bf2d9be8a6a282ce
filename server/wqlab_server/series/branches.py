"""Lookups: a worker lists the branches of a repository, and the result is cached for a short time."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from wqlab_contracts.api.series import GitBranches
from wqlab_contracts.celery_names import LOOKUP, LOOKUP_QUEUE
from wqlab_contracts.enums import JobState, Outcome
from wqlab_contracts.messages.lookups import LookupJob, LookupResult

from ..http.git_urls import url_problem
from ..http.problems import ApiProblem, not_found
from ..jobs import claims
from ..jobs.errors import StaleFence, infrastructure_failure
from ..jobs.state import change_state
from ..models import Lookup
from ..settings import Settings
from ..storage.db import clock
from ..storage.events import LOOKUP_CHANNEL, notify
from ..storage.times import is_recent

CACHE_TIME = timedelta(minutes=1)
"""How long the result of a lookup is reused."""
FAILURE_CACHE_TIME = timedelta(seconds=10)
"""How long the failure of a lookup is reused."""
WORKER_TIMEOUT = timedelta(minutes=1)
"""How long a lookup waits for a worker."""
RETENTION = timedelta(days=1)
"""How long lookups are kept."""
MAX_UNFINISHED = 4
"""Maximum number of unfinished lookups of one owner."""


def request(session: Session, url: str, owner: str, settings: Settings) -> int:
    """Return the id of a lookup of `url`: an unfinished or recent one, else a new one.

    Raises ApiProblem 422 if the URL is refused, and 429 if the owner has too many unfinished lookups.
    """
    problem = url_problem(url, settings.local_git_path_list)
    if problem is not None:
        raise ApiProblem(422, problem, errors=[{"parameter": "url", "in": "query", "detail": problem}])
    now = clock(session)
    last = session.scalar(select(Lookup).where(Lookup.url == url).order_by(Lookup.id.desc()).limit(1).with_for_update())
    if last is not None:
        _finish_if_expired(session, last, now)
        if _is_current(last, now):
            if last.state is JobState.QUEUED and claims.is_nudge_due(last.nudged_at, last.nudges, now, settings):
                claims.nudge(session, last, LOOKUP, LOOKUP_QUEUE, now)
            return last.id
    unfinished = select(func.count()).where(Lookup.owner == owner, Lookup.state != JobState.FINISHED)
    if (session.scalar(unfinished.where(Lookup.created_at > now - WORKER_TIMEOUT)) or 0) >= MAX_UNFINISHED:
        raise ApiProblem(
            429,
            f"{MAX_UNFINISHED} of your repository lookups are unfinished; wait until one is finished",
            headers={"Retry-After": "5"},
        )
    session.execute(delete(Lookup).where(Lookup.created_at < now - RETENTION))
    lookup = Lookup(url=url, owner=owner, state=JobState.WAITING)
    session.add(lookup)
    session.flush()
    change_state(lookup, JobState.QUEUED)
    claims.nudge(session, lookup, LOOKUP, LOOKUP_QUEUE, now)
    return lookup.id


def read(session: Session, lookup_id: int) -> GitBranches:
    """Return the state of a lookup and, once it is finished, its branches. Raises ApiProblem 404 if it is unknown."""
    lookup = _lock(session, lookup_id)
    _finish_if_expired(session, lookup, clock(session))
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


def _is_current(lookup: Lookup, now: datetime) -> bool:
    """Return True if the lookup is unfinished, or its result recent enough to be reused."""
    if lookup.finished_at is None:
        return True
    kept = CACHE_TIME if lookup.outcome is Outcome.PASSED else FAILURE_CACHE_TIME
    return is_recent(lookup.finished_at, now, kept)


def _finish_if_expired(session: Session, lookup: Lookup, now: datetime) -> None:
    """Finish, as failed, a lookup that no worker claimed in time or whose claim has expired.

    The tick does not do this, because only the client that requested the lookup waits for it.
    """
    if lookup.state is JobState.QUEUED and not is_recent(lookup.created_at, now, WORKER_TIMEOUT):
        advice = "check that a worker for the queue `lookup` is running; branch names can be typed in meanwhile"
        failure = infrastructure_failure("no worker claimed the lookup", advice=advice)
        claims.finish(session, lookup, Outcome.FAILED, failure)
    elif lookup.state is JobState.RUNNING and lookup.expires_at is not None and now >= lookup.expires_at:
        failure = infrastructure_failure(f"worker {lookup.holder} stopped responding")
        claims.finish(session, lookup, Outcome.FAILED, failure)


def _lock(session: Session, lookup_id: int) -> Lookup:
    lookup = session.scalar(select(Lookup).where(Lookup.id == lookup_id).with_for_update())
    if lookup is None:
        raise not_found("lookup", lookup_id)
    return lookup


# --- worker requests --------------------------------------------------------------------------------------------


def claim(
    session: Session, lookup_id: int, holder: str, settings: Settings, nonce: str | None
) -> tuple[LookupJob, int]:
    """Claim a lookup and return the job and its fence.

    Raises NotClaimable if it is not queued, and ApiProblem 404 if it is unknown.
    """
    lookup = _lock(session, lookup_id)
    if now := claims.find_repeated_claim(session, lookup, nonce):
        claims.extend(lookup, now, settings.claim_s)
    else:
        claims.take(session, lookup, holder, settings.claim_s, claims.next_fence(session))
        lookup.claim_nonce = nonce
    return LookupJob(url=lookup.url), lookup.fence or 0


def finish(session: Session, lookup_id: int, fence: int, result: LookupResult) -> None:
    """Store the result of a branch lookup and finish it. Repeating the same request changes nothing.

    Raises StaleFence if `fence` is no longer that of the lookup or the lookup was finished with another result, and
    ApiProblem 404 if there is no such lookup.
    """
    lookup = _lock(session, lookup_id)
    if lookup.state is JobState.FINISHED and lookup.fence == fence:
        if lookup.result == result:
            return
        raise StaleFence(claims.describe(lookup), fence)
    claims.check_fence(session, lookup, fence)
    lookup.result = result
    claims.finish(session, lookup, result.outcome, result.failure)
    notify(session, LOOKUP_CHANNEL, lookup.id)
