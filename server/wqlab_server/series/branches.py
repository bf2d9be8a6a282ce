"""The branches of a repository: asked of a worker, its answer kept for a while."""

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
from ..jobs.errors import StaleFence, infrastructure
from ..jobs.state import move
from ..models import Lookup
from ..settings import Settings
from ..storage.db import clock
from ..storage.events import LOOKUP_CHANNEL, notify

FRESH = timedelta(minutes=1)
"""How long an answer is used again."""
FAILED_FRESH = timedelta(seconds=10)
PATIENCE = timedelta(minutes=1)
"""How long a lookup waits for a worker."""
KEPT = timedelta(days=1)
AT_ONCE = 4
"""Unfinished lookups of one person."""


def ask(session: Session, url: str, owner: str, settings: Settings) -> int:
    """The lookup that answers for `url`: one that is under way or has just answered, else a new one.

    Raises ApiProblem 422 for a URL that is not fetched from, 429 when the owner has too many under way.
    """
    problem = url_problem(url, settings.local_git_path_list)
    if problem is not None:
        raise ApiProblem(422, problem, errors=[{"parameter": "url", "in": "query", "detail": problem}])
    now = clock(session)
    last = session.scalar(select(Lookup).where(Lookup.url == url).order_by(Lookup.id.desc()).limit(1).with_for_update())
    if last is not None:
        _settle(session, last, now)
        if _answers(last, now):
            if last.state is JobState.QUEUED and claims.nudge_due(last.nudged_at, last.nudges, now, settings):
                claims.nudge(session, last, LOOKUP, LOOKUP_QUEUE, now)
            return last.id
    unfinished = select(func.count()).where(Lookup.owner == owner, Lookup.state != JobState.FINISHED)
    if (session.scalar(unfinished.where(Lookup.created_at > now - PATIENCE)) or 0) >= AT_ONCE:
        raise ApiProblem(
            429,
            f"{AT_ONCE} repositories are being looked up for you already; wait for one",
            headers={"Retry-After": "5"},
        )
    session.execute(delete(Lookup).where(Lookup.created_at < now - KEPT))
    lookup = Lookup(url=url, owner=owner, state=JobState.WAITING)
    session.add(lookup)
    session.flush()
    move(lookup, JobState.QUEUED)
    claims.nudge(session, lookup, LOOKUP, LOOKUP_QUEUE, now)
    return lookup.id


def read(session: Session, lookup_id: int) -> GitBranches:
    """What is known now. Raises ApiProblem 404."""
    lookup = _lock(session, lookup_id)
    _settle(session, lookup, clock(session))
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


def _answers(lookup: Lookup, now: datetime) -> bool:
    if lookup.finished_at is None:
        return True
    return now < lookup.finished_at + (FRESH if lookup.outcome is Outcome.PASSED else FAILED_FRESH)


def _settle(session: Session, lookup: Lookup, now: datetime) -> None:
    """Ends a lookup that no worker came for, or whose worker is gone. No tick does: nobody waits but who asks."""
    if lookup.state is JobState.QUEUED and now >= lookup.created_at + PATIENCE:
        advice = "is a worker for the queue `lookup` running? Branch names can be written by hand meanwhile."
        claims.finish(session, lookup, Outcome.FAILED, infrastructure("no worker looked", advice=advice))
    elif lookup.state is JobState.RUNNING and lookup.expires_at is not None and now >= lookup.expires_at:
        failure = infrastructure(f"worker {lookup.holder} stopped answering")
        claims.finish(session, lookup, Outcome.FAILED, failure)


def _lock(session: Session, lookup_id: int) -> Lookup:
    lookup = session.scalar(select(Lookup).where(Lookup.id == lookup_id).with_for_update())
    if lookup is None:
        raise not_found("lookup", lookup_id)
    return lookup


# --- what a worker asks -----------------------------------------------------------------------------------------


def claim(
    session: Session, lookup_id: int, holder: str, settings: Settings, nonce: str | None
) -> tuple[LookupJob, int]:
    """The job and its fence. Raises NotClaimable, ApiProblem 404."""
    lookup = _lock(session, lookup_id)
    if now := claims.repeated(session, lookup, nonce):
        claims.extend(lookup, now, settings.claim_s)
    else:
        claims.take(session, lookup, holder, settings.claim_s, claims.next_fence(session))
        lookup.claim_nonce = nonce
    return LookupJob(url=lookup.url), lookup.fence or 0


def finish(session: Session, lookup_id: int, fence: int, result: LookupResult) -> None:
    """A repeated finish is accepted and changes nothing. Raises StaleFence, ApiProblem 404."""
    lookup = _lock(session, lookup_id)
    if lookup.state is JobState.FINISHED and lookup.fence == fence:
        if lookup.result == result:
            return
        raise StaleFence(claims.describe(lookup), fence)
    claims.held(session, lookup, fence)
    lookup.result = result
    claims.finish(session, lookup, result.outcome, result.failure)
    notify(session, LOOKUP_CHANNEL, lookup.id)
