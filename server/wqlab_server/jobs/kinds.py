"""What the kinds of jobs have in common, and where they may differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar, Generic, TypeVar

from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_contracts.enums import Outcome
from wqlab_contracts.messages import ClaimRequest, Failure, Progress, RunEvent
from wqlab_contracts.messages.jobs import JobPayload, JobResult

from ..http.problems import ApiProblem, not_found
from ..models import Job
from ..settings import Settings
from ..storage.db import clock
from ..storage.events import JOB_CHANNEL, notify
from ..storage.live_data import LiveData
from . import claims
from .errors import infrastructure_failure
from .state import Ended, decide_job

JobT = TypeVar("JobT", bound=Job)


@dataclass(frozen=True)
class Context:
    """What the handling of a job may use."""

    session: Session
    settings: Settings
    data: LiveData


class Kind(Generic[JobT]):
    """One kind of job. A domain makes a subclass for each of its kinds, and says what a job that has ended means.

    Every method but `lock` gets a job that is locked.
    """

    model: type[JobT]
    retried: ClassVar[bool] = True
    """True if a failure of the lab is tried again."""
    worker_timeout: ClassVar[timedelta | None] = None
    """How long a job waits for a worker before it fails; None: it waits until one is there."""
    name: ClassVar[str] = ""
    """What it is called in messages to a user who waits for it."""
    alternative: ClassVar[str] = ""
    """What a user can do if no worker takes the job."""

    def lock(self, session: Session, job_id: int) -> JobT:
        """Lock and return a job, re-read from the database. Raises ApiProblem 404."""
        job = session.scalar(
            select(self.model)
            .where(self.model.id == job_id)
            .with_for_update()
            .execution_options(populate_existing=True)
        )
        if job is None:
            raise not_found("job", job_id)
        return job

    # --- a worker's requests ------------------------------------------------------------------------------------

    def claim_s(self, settings: Settings) -> float:
        """Return how long (seconds) a claim holds without a heartbeat."""
        return settings.claim_s

    def take(self, context: Context, job: JobT, request: ClaimRequest) -> JobPayload:
        """Claim the job and return what the worker gets. Raises NotClaimable."""
        claims.take(
            context.session, job, request.worker, self.claim_s(context.settings), claims.next_fence(context.session)
        )
        self.begun(context, job)
        return self.payload(context, job)

    def repeat(self, context: Context, job: JobT, now: datetime) -> JobPayload:
        """Extend the claim of a worker that did not get the answer, and return what it gets."""
        self.extend(context, job, now)
        return self.payload(context, job)

    def extend(self, context: Context, job: JobT, now: datetime) -> None:
        """Extend the claim from `now`."""
        claims.extend(job, now, self.claim_s(context.settings))

    def record(self, context: Context, job: JobT, events: Sequence[RunEvent]) -> None:
        """Store events; all kinds but a run have only progress, of which the last counts. Raises ApiProblem 422."""
        if not all(isinstance(event, Progress) for event in events):
            raise ApiProblem(422, f"{claims.describe(job)} has no events but its progress")
        last = events[-1] if events else None
        new = (last.text, last.done, last.total) if isinstance(last, Progress) else None
        if new is not None and new != (job.progress, job.progress_done, job.progress_total):
            job.progress, job.progress_done, job.progress_total = new
            self.progressed(context, job)

    def finish(self, context: Context, job: JobT, result: JobResult) -> None:
        """Store the result of an attempt, and end the job or queue it again. Raises ApiProblem 422."""
        self.check(context, job, result)
        job.result = result
        self.end(context, job, result.outcome, result.failure)

    def expire(self, context: Context, job: JobT) -> None:
        """End the attempt of a worker whose claim has expired."""
        failure = infrastructure_failure(
            f"{claims.describe(job)}: worker {job.holder} stopped answering",
            advice="see the worker's log; the job is retried if it has attempts left",
        )
        self.end(context, job, Outcome.FAILED, failure)

    def end(self, context: Context, job: JobT, outcome: Outcome, failure: Failure | None) -> None:
        """Finish the job, or queue it again after a failure of the lab."""
        decision = decide_job(
            outcome,
            failure,
            attempts=job.attempts,
            bound=context.settings.job_attempts if self.retried else 1,
            cancel_requested=job.cancel_requested_at is not None,
        )
        if isinstance(decision, Ended):
            self.conclude(context, job, decision)
        else:
            claims.requeue(job)
            claims.nudge(context.session, job, clock(context.session))
            self.requeued(context, job, decision.failure)

    def conclude(self, context: Context, job: JobT, ended: Ended) -> None:
        """Finish the job, whether a worker has it or not, and notify whoever waits for its end."""
        claims.finish(context.session, job, ended.outcome, ended.failure)
        self.ended(context, job)
        notify(context.session, JOB_CHANNEL, job.id)

    # --- what a domain does -------------------------------------------------------------------------------------

    def payload(self, context: Context, job: JobT) -> JobPayload:
        """Return what a worker gets."""
        assert job.payload is not None  # noqa: S101 - only kinds that override this have none
        return job.payload  # type: ignore[no-any-return]

    def check(self, context: Context, job: JobT, result: JobResult) -> None:
        """Raise ApiProblem 422 if a result is incomplete."""

    def begun(self, context: Context, job: JobT) -> None:
        """Act on a claim."""

    def progressed(self, context: Context, job: JobT) -> None:
        """Act on progress."""

    def requeued(self, context: Context, job: JobT, failure: Failure) -> None:
        """Act on an attempt that the lab has failed, so that the job is queued again."""

    def ended(self, context: Context, job: JobT) -> None:
        """Act on the end of the job."""
