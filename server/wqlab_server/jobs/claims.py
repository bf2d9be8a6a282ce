"""Queue, claim, extend, requeue and finish jobs. Claims carry a fence."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from wqlab_contracts.celery_names import JOB, JOB_QUEUES
from wqlab_contracts.enums import JobState, Outcome
from wqlab_contracts.messages import Failure

from ..models import Job, fences
from ..settings import Settings
from ..storage.db import Message, clock, post
from ..storage.times import is_recent
from .errors import NotClaimable, StaleFence, canceled_failure
from .state import change_state


def describe(job: Job) -> str:
    """Return the job's name in messages, such as `build 12` or `commit list 3`."""
    return f"{re.sub('(?<!^)(?=[A-Z])', ' ', type(job).__name__).lower()} {job.id}"


def next_fence(session: Session) -> int:
    """Draw a fence that is greater than every fence before it."""
    return int(session.execute(fences.next_value()).scalar_one())


def queue(session: Session, job: Job) -> None:
    """Move a job from WAITING to QUEUED and notify a worker. A new job is added to the session."""
    if job.id is None:
        job.state = JobState.WAITING
        session.add(job)
        session.flush()
    change_state(job, JobState.QUEUED)
    nudge(session, job, clock(session))


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


def cancel(session: Session, job_id: int, now: datetime) -> None:
    """Cancel a job: at once if no worker has it, else at the worker's next heartbeat or when its claim expires."""
    job = session.get_one(Job, job_id, with_for_update={"of": Job}, populate_existing=True)
    if job.state in {JobState.WAITING, JobState.QUEUED}:
        finish(session, job, Outcome.CANCELED, canceled_failure())
    elif job.state is JobState.RUNNING:
        job.cancel_requested_at = job.cancel_requested_at or now


def nudge(session: Session, job: Job, now: datetime, queue_name: str | None = None) -> None:
    """Record a nudge of `job`, and send its message to a worker after the commit.

    `queue_name`: queue of the lab of a run's device; by default that of the job's kind.
    """
    job.nudged_at = now
    job.nudges += 1
    post(session, Message(JOB, job.id, queue_name or JOB_QUEUES[job.kind]))


def is_nudge_due(nudged_at: datetime | None, nudges: int, now: datetime, settings: Settings) -> bool:
    """Return True if the job's message is due: at once for a new job, then with exponential backoff."""
    if nudged_at is None:
        return True
    wait_s = min(settings.nudge_first_s * 2 ** max(nudges - 1, 0), settings.nudge_longest_s)
    return not is_recent(nudged_at, now, timedelta(seconds=wait_s))
