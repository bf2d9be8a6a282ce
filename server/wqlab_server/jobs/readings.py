"""Readings: jobs whose result is stored in their row, and which are tried again after a failure of the lab."""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Session

from wqlab_contracts.celery_names import APPLY_QUEUE
from wqlab_contracts.enums import JobState, Outcome
from wqlab_contracts.messages import Failure

from ..models import CommitList, ForgeHead
from ..settings import Settings
from ..storage.db import clock
from . import claims
from .errors import StaleFence, infrastructure_failure
from .state import Ended, decide_job

Reading = CommitList | ForgeHead


def finish(
    session: Session, row: Reading, fence: int, result: Any, settings: Settings, *, task: str, canceled: bool
) -> bool:
    """Store the result of a locked reading, or queue it again after a failure of the lab. Returns True if it ended now.

    Repeating the request changes nothing. Raises StaleFence if `fence` is no longer that of the reading.
    """
    if row.state is JobState.FINISHED and row.fence == fence:
        if row.result != result:
            raise StaleFence(claims.describe(row), fence)
        return False
    claims.check_fence(session, row, fence)
    ended = _end(session, row, result.outcome, result.failure, settings, task=task, canceled=canceled)
    if ended:
        row.result = result
    return ended


def look_after(session: Session, row: Reading, settings: Settings, *, task: str, canceled: bool) -> bool:
    """Send the message of a locked reading again if it is due; queue it again or end it if its worker has stopped.

    Returns True if it ended now.
    """
    now = clock(session)
    if row.state is JobState.QUEUED and claims.is_nudge_due(row.nudged_at, row.nudges, now, settings):
        claims.nudge(session, row, task, APPLY_QUEUE, now)
    if not claims.is_expired(session, row):
        return False
    failure = infrastructure_failure(f"worker {row.holder} stopped responding")
    return _end(session, row, Outcome.FAILED, failure, settings, task=task, canceled=canceled)


def _end(
    session: Session,
    row: Reading,
    outcome: Outcome,
    failure: Failure | None,
    settings: Settings,
    *,
    task: str,
    canceled: bool,
) -> bool:
    decision = decide_job(
        outcome, failure, attempts=row.attempts, bound=settings.job_attempts, cancel_requested=canceled
    )
    if isinstance(decision, Ended):
        claims.finish(session, row, decision.outcome, decision.failure)
        return True
    claims.requeue(row)
    claims.nudge(session, row, task, APPLY_QUEUE, clock(session))
    return False
