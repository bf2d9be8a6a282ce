"""Requests of workers that read lists: claim a read, tell its progress, finish it."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.orm import Session

from wqlab_contracts.enums import JobState
from wqlab_contracts.messages.events import Progress
from wqlab_contracts.messages.list_reads import ListReadJob, ListReadResult

from ..http.problems import not_found
from ..jobs import claims
from ..jobs.errors import StaleFence
from ..models import ListRead
from ..settings import Settings
from ..storage.events import LIST_READ_CHANNEL, notify
from . import previews, watched_lists
from .match_rules import Propose


def lock(session: Session, read_id: int) -> ListRead:
    """Lock and return a read. Raises ApiProblem 404."""
    row = watched_lists.lock(session, read_id)
    if row is None:
        raise not_found("list read", read_id)
    return row


def claim(
    session: Session, read_id: int, holder: str, settings: Settings, nonce: str | None
) -> tuple[ListReadJob, int]:
    """Claim a read and return the job and its fence.

    Raises NotClaimable if it is not queued, and ApiProblem 404 if it is unknown.
    """
    row = lock(session, read_id)
    fence = claims.take_once(session, row, holder, settings.claim_s, nonce)
    job = ListReadJob(source=row.source, heads_only=row.rule is not None, limit=row.mail_limit)
    return job, fence


def progress(session: Session, read_id: int, fence: int, events: Sequence[Progress]) -> None:
    """Store the last progress. Raises StaleFence."""
    row = lock(session, read_id)
    claims.check_fence(session, row, fence)
    if events:
        row.progress, row.progress_done, row.progress_total = events[-1].text, events[-1].done, events[-1].total


def finish(
    session: Session,
    read_id: int,
    fence: int,
    result: ListReadResult,
    *,
    settings: Settings,
    minutes: previews.Minutes,
    propose: Propose,
) -> None:
    """Store what was read, with the list's new position, and finish the read. A repeated request changes nothing.

    Raises StaleFence if `fence` is no longer that of the read, and ApiProblem 404 if there is no such read.
    """
    row = lock(session, read_id)
    if row.state is JobState.FINISHED and row.fence == fence and row.outcome is result.outcome:
        return
    if row.state is JobState.FINISHED:
        raise StaleFence(claims.describe(row), fence)
    claims.check_fence(session, row, fence)
    watched_lists.store(session, row, result, settings)
    previews.store(session, row, result, minutes, propose)
    notify(session, LIST_READ_CHANNEL, row.id)
