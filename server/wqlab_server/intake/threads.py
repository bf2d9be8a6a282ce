"""Lookups of threads: a worker finds the series of a Message-ID in the archives, for a look before it is submitted."""

from __future__ import annotations

from sqlalchemy.orm import Session

from wqlab_contracts.api.threads import ThreadPreview
from wqlab_contracts.celery_names import THREAD_LOOKUP
from wqlab_contracts.enums import JobState
from wqlab_contracts.loading import DataFolder
from wqlab_contracts.messages import ThreadSeries, ThreadSource
from wqlab_contracts.messages.thread_lookups import ThreadLookupJob, ThreadLookupResult

from ..http.archives import archive_problem
from ..http.problems import ApiProblem
from ..jobs import lookups
from ..models import ThreadLookup
from ..settings import Settings
from ..storage.db import clock
from ..storage.events import THREAD_LOOKUP_CHANNEL


def request(session: Session, series: ThreadSeries, data: DataFolder, owner: str, settings: Settings) -> int:
    """Return the id of a lookup of the series: an unfinished or recent one, else a new one.

    Raises ApiProblem 422 if the lab has no archive, and 429 if the owner has too many unfinished lookups.
    """
    problem = archive_problem(data)
    if problem is not None:
        raise ApiProblem(422, problem, errors=[{"parameter": "message_id", "in": "query", "detail": problem}])
    new = ThreadLookup(
        message_id=series.message_id,
        revision=series.revision,
        source=ThreadSource(archives=list(data.archives)),
        owner=owner,
        state=JobState.WAITING,
    )
    same = [
        ThreadLookup.message_id == series.message_id,
        ThreadLookup.revision.is_not_distinct_from(series.revision),
        ThreadLookup.source == new.source,
    ]
    return lookups.request(session, new, same, THREAD_LOOKUP, settings)


def read(session: Session, lookup_id: int) -> ThreadPreview:
    """Return the state of a lookup and, once it is finished, what it found. Raises ApiProblem 404 if it is unknown."""
    lookup = lookups.lock(session, ThreadLookup, lookup_id)
    lookups.finish_if_expired(session, lookup, clock(session))
    return ThreadPreview(
        message_id=lookup.message_id,
        revision=lookup.revision,
        state=lookup.state,
        outcome=lookup.outcome,
        failure=lookup.failure,
        thread=lookup.result.thread if lookup.result else None,
        inspection=lookup.result.inspection if lookup.result else None,
        looked_at=lookup.finished_at,
    )


# --- worker requests --------------------------------------------------------------------------------------------


def claim(
    session: Session, lookup_id: int, holder: str, settings: Settings, nonce: str | None
) -> tuple[ThreadLookupJob, int]:
    """Claim a lookup and return the job and its fence.

    Raises NotClaimable if it is not queued, and ApiProblem 404 if it is unknown.
    """
    lookup = lookups.lock(session, ThreadLookup, lookup_id)
    fence = lookups.claim(session, lookup, holder, settings, nonce)
    series = ThreadSeries(message_id=lookup.message_id, revision=lookup.revision)
    return ThreadLookupJob(series=series, archives=lookup.source.archives), fence


def finish(session: Session, lookup_id: int, fence: int, result: ThreadLookupResult) -> None:
    """Store the result of a lookup and finish it. Repeating the same request changes nothing.

    Raises StaleFence if `fence` is no longer that of the lookup or the lookup was finished with another result, and
    ApiProblem 404 if there is no such lookup.
    """
    lookup = lookups.lock(session, ThreadLookup, lookup_id)
    if lookups.finish(session, lookup, fence, result, THREAD_LOOKUP_CHANNEL):
        lookup.result = result
