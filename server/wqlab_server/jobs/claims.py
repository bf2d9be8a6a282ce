"""What applies, builds and runs have in common: they are queued, claimed with a fence, kept alive, and given back."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from wqlab_contracts.celery_names import APPLY, BUILD_QUEUE
from wqlab_contracts.enums import JobState, Outcome
from wqlab_contracts.messages import Failure

from ..models import Apply, Build, Lookup, Run, fences
from ..settings import Settings
from ..storage.db import Message, clock, post
from .errors import NotClaimable, StaleFence
from .state import move

Job = Apply | Build | Run | Lookup


def describe(job: Job) -> str:
    return f"{type(job).__name__.lower()} {job.id}"


def next_fence(session: Session) -> int:
    return int(session.execute(fences.next_value()).scalar_one())


def queue_apply(session: Session, apply: Apply) -> None:
    """WAITING -> QUEUED, and wakes a build worker. Submissions begin with it, and so does the lab's own kernel."""
    move(apply, JobState.QUEUED)
    nudge(session, apply, APPLY, BUILD_QUEUE, clock(session))


def take(session: Session, job: Job, holder: str, seconds: float, fence: int) -> None:
    """QUEUED -> RUNNING for `holder`. Raises NotClaimable in any other state, or when it is being canceled."""
    if job.state is not JobState.QUEUED:
        raise NotClaimable(describe(job), f"it is {job.state}")
    if job.cancel_requested_at is not None:
        raise NotClaimable(describe(job), "it is being canceled")
    now = clock(session)
    move(job, JobState.RUNNING)
    job.fence = fence
    job.holder = holder
    job.claim_nonce = None
    job.expires_at = now + timedelta(seconds=seconds)
    job.attempts += 1
    job.started_at = job.started_at or now
    job.nudges = 0


def repeated(session: Session, job: Job, nonce: str | None) -> datetime | None:
    """The database's time, if a request with `nonce` made the claim that holds the job now: its answer was lost."""
    if nonce is None or job.claim_nonce != nonce or job.fence is None:
        return None
    try:
        return held(session, job, job.fence)
    except StaleFence:
        return None


def held(session: Session, job: Job, fence: int) -> datetime:
    """The database's time, if `fence` holds the job now. Raises StaleFence otherwise."""
    now = clock(session)
    if job.state is not JobState.RUNNING or job.fence != fence or job.expires_at is None or job.expires_at <= now:
        raise StaleFence(describe(job), fence)
    return now


def ran_out(session: Session, job: Job) -> bool:
    """Whether its holder has not said in time that it lives."""
    return job.state is JobState.RUNNING and job.expires_at is not None and job.expires_at <= clock(session)


def extend(job: Job, now: datetime, seconds: float) -> None:
    job.expires_at = now + timedelta(seconds=seconds)


def requeue(job: Job) -> None:
    """RUNNING -> QUEUED; the fence stays, so that its late holder is told that it is stale."""
    move(job, JobState.QUEUED)
    job.expires_at = None
    job.nudged_at = None
    job.nudges = 0
    job.progress, job.progress_done, job.progress_total = "", 0, 0


def finish(session: Session, job: Job, outcome: Outcome, failure: Failure | None) -> None:
    """Any unfinished state -> FINISHED."""
    move(job, JobState.FINISHED)
    job.outcome = outcome
    job.failure = failure
    job.expires_at = None
    job.finished_at = clock(session)
    job.progress = ""


def nudge(session: Session, job: Job, task: str, queue: str, now: datetime) -> None:
    """Wakes a worker for `job` after the commit, and notes that it did."""
    job.nudged_at = now
    job.nudges += 1
    post(session, Message(task, job.id, queue))


def nudge_due(nudged_at: datetime | None, nudges: int, now: datetime, settings: Settings) -> bool:
    """Whether a job's message is due: at once for a new one, then with doubling waits, so that ticks never flood."""
    if nudged_at is None:
        return True
    wait_s = min(settings.nudge_first_s * 2 ** max(nudges - 1, 0), settings.nudge_longest_s)
    return now >= nudged_at + timedelta(seconds=wait_s)
