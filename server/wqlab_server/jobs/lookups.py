"""Lookups: questions of a form that a worker answers, such as the branches of a repository or the patches of a branch.

The answer is reused for a short time, and deleted after a day.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import ClassVar, TypeVar

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from wqlab_contracts.enums import JobState, Outcome

from ..models import BranchList, BranchReading, Job, ListPreview, ThreadLookup
from ..storage.db import clock
from ..storage.times import is_recent
from ..wait import Wait
from . import claims
from .kinds import Kind

CACHE_TIME = timedelta(minutes=1)
"""How long the result of a lookup is reused."""
FAILURE_CACHE_TIME = timedelta(seconds=10)
"""How long the failure of a lookup is reused."""
RETENTION = timedelta(days=1)
"""How long lookups are kept."""
MAX_UNFINISHED = 4
"""Maximum number of unfinished lookups of one kind and owner."""

LookupT = TypeVar("LookupT", BranchList, ThreadLookup, BranchReading, ListPreview)


class LookupKind(Kind[LookupT]):
    """A kind of lookup. Somebody waits for it, so it is not tried again."""

    retried = False
    worker_timeout = timedelta(minutes=1)
    plural: ClassVar[str]
    """Name of several, for messages."""


def request(session: Session, kind: type[LookupKind[LookupT]], new: LookupT) -> int:
    """Return the id of an unfinished or recent lookup with the key of `new`; else queue `new` and return its id.

    Raises Wait if the owner of `new` has too many unfinished lookups of this kind.
    """
    model, now = kind.model, clock(session)
    last = session.scalar(
        select(model).where(model.key == new.key).order_by(model.id.desc()).limit(1).with_for_update()
    )
    if last is not None and _is_current(last, now):
        return last.id
    unfinished = select(func.count()).select_from(model).where(model.owner == new.owner)
    if (session.scalar(unfinished.where(model.state != JobState.FINISHED)) or 0) >= MAX_UNFINISHED:
        raise Wait(
            f"{MAX_UNFINISHED} of your {kind.plural} are unfinished; wait until one is finished",
            pause=timedelta(seconds=5),
        )
    old = select(model.id).where(model.created_at < now - RETENTION)
    session.execute(delete(Job).where(Job.id.in_(old)).execution_options(synchronize_session=False))
    claims.queue(session, new)
    return new.id


def _is_current(lookup: Job, now: datetime) -> bool:
    """Return True if the lookup is unfinished, or its result recent enough to be reused."""
    if lookup.finished_at is None:
        return True
    kept = CACHE_TIME if lookup.outcome is Outcome.PASSED else FAILURE_CACHE_TIME
    return is_recent(lookup.finished_at, now, kept)
