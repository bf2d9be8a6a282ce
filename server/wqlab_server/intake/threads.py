"""Lookups of threads: a worker finds the series of a Message-ID in the archives, for a look before it is submitted."""

from __future__ import annotations

from sqlalchemy.orm import Session

from wqlab_contracts.api.threads import ThreadPreview
from wqlab_contracts.loading import DataFolder
from wqlab_contracts.messages import ThreadSeries
from wqlab_contracts.messages.thread_lookups import ThreadLookupJob

from ..http.archives import archive_problem
from ..http.problems import ApiProblem, not_found
from ..jobs import lookups
from ..models import ThreadLookup


class ThreadLookupKind(lookups.LookupKind[ThreadLookup]):
    """Searches for a mailed series."""

    model = ThreadLookup
    name = "the search for a mailed series"
    plural = "searches for mailed series"
    alternative = "the series can be submitted without a preview"


def request(session: Session, series: ThreadSeries, data: DataFolder, owner: str) -> int:
    """Return the id of a lookup of the series: an unfinished or recent one, else a new one.

    Raises ApiProblem 422 if the lab has no archive for it, and 429 if the owner has too many unfinished lookups.
    """
    problem = archive_problem(data, series)
    if problem is not None:
        raise ApiProblem(422, problem, errors=[{"parameter": "message_id", "in": "query", "detail": problem}])
    job = ThreadLookupJob(series=series, archives=list(data.archives))
    return lookups.request(session, ThreadLookupKind, ThreadLookup(payload=job, key=job.model_dump_json(), owner=owner))


def read(session: Session, lookup_id: int) -> ThreadPreview:
    """Return the state of a lookup and, once it is finished, what it found. Raises ApiProblem 404 if it is unknown."""
    lookup = session.get(ThreadLookup, lookup_id, populate_existing=True)
    if lookup is None:
        raise not_found("search for a mailed series", lookup_id)
    return ThreadPreview(
        message_id=lookup.payload.series.message_id,
        revision=lookup.payload.series.revision,
        state=lookup.state,
        outcome=lookup.outcome,
        failure=lookup.failure,
        thread=lookup.result.thread if lookup.result else None,
        inspection=lookup.result.inspection if lookup.result else None,
        looked_at=lookup.finished_at,
    )
