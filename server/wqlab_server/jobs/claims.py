"""Queue, claim, extend, requeue and finish jobs. Claims carry a fence.

Jobs are applies, builds, runs, lookups and list reads.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from wqlab_contracts.celery_names import APPLY, APPLY_QUEUE
from wqlab_contracts.enums import JobState, Outcome
from wqlab_contracts.messages import Failure

from ..models import (
    Apply,
    BranchReading,
    Build,
    CommitList,
    ForgeHead,
    ListRead,
    Lookup,
    Run,
    ThreadLookup,
    fences,
)
from ..settings import Settings
from ..storage.db import Message, clock, post
from ..storage.times import is_recent
from .errors import NotClaimable, StaleFence
from .state import change_state

Job = Apply | BranchReading | Build | Run | CommitList | ForgeHead | ListRead | Lookup | ThreadLookup


def describe(job: Job) -> str:
    """Return the job's name in messages, such as `build 12` or `list read 3`."""
    return f"{re.sub('(?<!^)(?=[A-Z])', ' ', type(job).__name__).lower()} {job.id}"


def next_fence(session: Session) -> int:
    """Draw a fence that is greater than every fence before it."""
    return int(session.execute(fences.next_value()).scalar_one())


def queue_apply(session: Session, apply: Apply) -> None:
    """Move an apply from WAITING to QUEUED and notify an apply worker.

    This is the first step of a submission, and of the golden kernel.
    """
    change_state(apply, JobState.QUEUED)
    nudge(session, apply, APPLY, APPLY_QUEUE, clock(session))


def take(session: Session, job: Job, holder: str, seconds: float, fence: int) -> None:
    """Move a job from QUEUED to RUNNING for `holder`, with a claim of `seconds`.

    Raises NotClaimable if the job is not queued or is being canceled.
    """
    if job.state is not JobState.QUEUED:
        raise NotClaimable(describe(job), f"it is {job.state}")
    if job.cancel_requested_at is not None:
        raise NotClaimable(describe(job), "it is being canceled")
    now = clock(session)
    change_state(job, JobState.RUNNING)
    job.fence = fence
    job.holder = holder
    job.claim_nonce = None
    job.expires_at = now + timedelta(seconds=seconds)
    job.attempts += 1
    job.started_at = job.started_at or now
    job.nudges = 0


def take_once(session: Session, job: Job, holder: str, seconds: float, nonce: str | None) -> int:
    """Move a job to RUNNING for `holder` with a new fence, and return the fence.

    A request that repeats the one which made the live claim, because its answer was lost, extends that claim. Raises
    NotClaimable as `take` does.
    """
    if now := find_repeated_claim(session, job, nonce):
        extend(job, now, seconds)
    else:
        take(session, job, holder, seconds, next_fence(session))
        job.claim_nonce = nonce
    return job.fence or 0


def find_repeated_claim(session: Session, job: Job, nonce: str | None) -> datetime | None:
    """Return the database's time if a request with `nonce` made the live claim (its response was lost), else None."""
    if nonce is None or job.claim_nonce != nonce or job.fence is None:
        return None
    try:
        return check_fence(session, job, job.fence)
    except StaleFence:
        return None


def check_fence(session: Session, job: Job, fence: int) -> datetime:
    """Return the database's time if `fence` holds the job now. Raises StaleFence otherwise."""
    now = clock(session)
    if job.state is not JobState.RUNNING or job.fence != fence or job.expires_at is None or job.expires_at <= now:
        raise StaleFence(describe(job), fence)
    return now


def is_expired(session: Session, job: Job) -> bool:
    """Return True if the job's claim has expired without a heartbeat."""
    return job.state is JobState.RUNNING and job.expires_at is not None and job.expires_at <= clock(session)


def extend(job: Job, now: datetime, seconds: float) -> None:
    """Extend the job's claim to `seconds` after `now`."""
    job.expires_at = now + timedelta(seconds=seconds)


def requeue(job: Job) -> None:
    """Move a job from RUNNING to QUEUED. The fence is kept, so that the old holder's late requests are refused."""
    change_state(job, JobState.QUEUED)
    job.expires_at = None
    job.nudged_at = None
    job.nudges = 0
    job.progress, job.progress_done, job.progress_total = "", 0, 0


def finish(session: Session, job: Job, outcome: Outcome, failure: Failure | None) -> None:
    """Move a job from any unfinished state to FINISHED."""
    change_state(job, JobState.FINISHED)
    job.outcome = outcome
    job.failure = failure
    job.expires_at = None
    job.finished_at = clock(session)
    job.progress = ""


def nudge(session: Session, job: Job, task: str, queue: str, now: datetime) -> None:
    """Record a nudge of `job`, and send its message to a worker after the commit."""
    job.nudged_at = now
    job.nudges += 1
    post(session, Message(task, job.id, queue))


def is_nudge_due(nudged_at: datetime | None, nudges: int, now: datetime, settings: Settings) -> bool:
    """Return True if the job's message is due: at once for a new job, then with exponential backoff."""
    if nudged_at is None:
        return True
    wait_s = min(settings.nudge_first_s * 2 ** max(nudges - 1, 0), settings.nudge_longest_s)
    return not is_recent(nudged_at, now, timedelta(seconds=wait_s))
