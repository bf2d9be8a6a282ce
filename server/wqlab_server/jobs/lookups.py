"""Lookups: questions of the submission form that a worker answers, such as the branches of a repository or the patches
of a branch.

A lookup is a job without a submission. Only the client that requested it waits for it, so no tick looks after it: it is
nudged and ended when it is read. Its answer is reused for a short time, and deleted after a day.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

from sqlalchemy import ColumnElement, and_, delete, func, or_, select
from sqlalchemy.orm import Session

from wqlab_contracts.celery_names import APPLY_QUEUE, LOOKUP_QUEUE
from wqlab_contracts.enums import JobState, Outcome
from wqlab_contracts.messages import Failure

from ..http.problems import ApiProblem, not_found
from ..models import BranchReading, Lookup, ThreadLookup
from ..settings import Settings
from ..storage.db import clock
from ..storage.events import notify
from ..storage.times import is_recent
from . import claims
from .errors import StaleFence, infrastructure_failure
from .state import change_state

CACHE_TIME = timedelta(minutes=1)
"""How long the result of a lookup is reused."""
FAILURE_CACHE_TIME = timedelta(seconds=10)
"""How long the failure of a lookup is reused."""
WORKER_TIMEOUT = timedelta(minutes=1)
"""How long a lookup waits for a worker."""
READING_WORKER_TIMEOUT = timedelta(minutes=10)
"""How long the reading of a branch waits for a worker, which may fetch another branch meanwhile."""
RETENTION = timedelta(days=1)
"""How long lookups are kept."""
MAX_UNFINISHED = 4
"""Maximum number of unfinished lookups of one kind and owner."""

LookupT = TypeVar("LookupT", Lookup, ThreadLookup, BranchReading)
AnyLookup = Lookup | ThreadLookup | BranchReading


@dataclass(frozen=True)
class _Kind:
    """What differs between kinds of lookups."""

    names: tuple[str, str]
    """Name for messages, singular and plural."""
    queue: str
    worker_timeout: timedelta
    alternative: str
    """What the user can do if no worker answers; part of an error message."""


_KINDS: Mapping[type[AnyLookup], _Kind] = {
    Lookup: _Kind(
        ("listing of branches", "listings of branches"),
        LOOKUP_QUEUE,
        WORKER_TIMEOUT,
        "the name of a branch can be typed in meanwhile",
    ),
    ThreadLookup: _Kind(
        ("search for a mailed series", "searches for mailed series"),
        LOOKUP_QUEUE,
        WORKER_TIMEOUT,
        "the series can be submitted without a preview",
    ),
    BranchReading: _Kind(
        ("reading of a branch", "readings of branches"),
        APPLY_QUEUE,
        READING_WORKER_TIMEOUT,
        "the branch can be submitted without its proposals",
    ),
}


class Result(Protocol):
    """Result of a lookup."""

    @property
    def outcome(self) -> Outcome: ...

    @property
    def failure(self) -> Failure | None: ...


def request(session: Session, new: LookupT, same: Sequence[ColumnElement[bool]], task: str, settings: Settings) -> int:
    """Return the id of an unfinished or recent lookup that meets the conditions `same`; else add `new` and return its.

    Raises ApiProblem 429 if the owner of `new` has too many unfinished lookups.
    """
    model = type(new)
    kind = _KINDS[model]
    now = clock(session)
    last = session.scalar(select(model).where(*same).order_by(model.id.desc()).limit(1).with_for_update())
    if last is not None:
        finish_if_expired(session, last, now)
        if _is_current(last, now):
            if last.state is JobState.QUEUED and claims.is_nudge_due(last.nudged_at, last.nudges, now, settings):
                claims.nudge(session, last, task, kind.queue, now)
            return last.id
    # Others are over too, but finished only when their client reads them again.
    unfinished = or_(
        and_(model.state == JobState.QUEUED, model.created_at > now - kind.worker_timeout),
        and_(model.state == JobState.RUNNING, model.expires_at > now),
    )
    if (session.scalar(select(func.count()).where(model.owner == new.owner, unfinished)) or 0) >= MAX_UNFINISHED:
        raise ApiProblem(
            429,
            f"{MAX_UNFINISHED} of your {kind.names[1]} are unfinished; wait until one is finished",
            headers={"Retry-After": "5"},
        )
    session.execute(delete(model).where(model.created_at < now - RETENTION))
    session.add(new)
    session.flush()
    change_state(new, JobState.QUEUED)
    claims.nudge(session, new, task, kind.queue, now)
    return new.id


def _is_current(lookup: AnyLookup, now: datetime) -> bool:
    """Return True if the lookup is unfinished, or its result recent enough to be reused."""
    if lookup.finished_at is None:
        return True
    kept = CACHE_TIME if lookup.outcome is Outcome.PASSED else FAILURE_CACHE_TIME
    return is_recent(lookup.finished_at, now, kept)


def finish_if_expired(session: Session, lookup: AnyLookup, now: datetime) -> None:
    """Finish, as failed, a lookup that no worker claimed in time or whose claim has expired."""
    kind = _KINDS[type(lookup)]
    if lookup.state is JobState.QUEUED and not is_recent(lookup.created_at, now, kind.worker_timeout):
        advice = f"check that a worker for the queue `{kind.queue}` is running; {kind.alternative}"
        failure = infrastructure_failure(f"no worker began the {kind.names[0]}", advice=advice)
        claims.finish(session, lookup, Outcome.FAILED, failure)
    elif lookup.state is JobState.RUNNING and lookup.expires_at is not None and now >= lookup.expires_at:
        failure = infrastructure_failure(f"worker {lookup.holder} stopped responding")
        claims.finish(session, lookup, Outcome.FAILED, failure)


def lock(session: Session, model: type[LookupT], lookup_id: int) -> LookupT:
    """Lock and return a lookup. Raises ApiProblem 404."""
    lookup = session.scalar(select(model).where(model.id == lookup_id).with_for_update())
    if lookup is None:
        raise not_found(_KINDS[model].names[0], lookup_id)
    return lookup


def claim(session: Session, lookup: AnyLookup, holder: str, settings: Settings, nonce: str | None) -> int:
    """Claim a lookup and return its fence. Raises NotClaimable if it is not queued."""
    return claims.take_once(session, lookup, holder, settings.claim_s, nonce)


def finish(session: Session, lookup: AnyLookup, fence: int, result: Result, channel: str) -> bool:
    """Finish a lookup and notify `channel`; return False if this finish was recorded before.

    The caller stores the result.

    Raises StaleFence if `fence` is no longer that of the lookup, or the lookup was finished with another result.
    """
    if lookup.state is JobState.FINISHED and lookup.fence == fence:
        if lookup.result == result:
            return False
        raise StaleFence(claims.describe(lookup), fence)
    claims.check_fence(session, lookup, fence)
    claims.finish(session, lookup, result.outcome, result.failure)
    notify(session, channel, lookup.id)
    return True
