"""Applies: what a worker gets, and what their claims and ends mean for their submission."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_contracts.celery_names import ADVANCE, SERVER_QUEUE, TICK
from wqlab_contracts.enums import EventKind, Outcome
from wqlab_contracts.messages import ApplyResult, Failure
from wqlab_contracts.messages.jobs import JobPayload, JobResult

from ..http.problems import ApiProblem
from ..jobs.kinds import Context, Kind
from ..jobs.seen_commits import seen_commits
from ..models import Apply, Bisection, BisectionStep, Submission
from ..storage.db import Message, post
from ..storage.events import dump_failure, emit
from .locks import lock_submissions
from .uploads import check_uploaded, uploaded_hashes


class ApplyKind(Kind[Apply]):
    """Applies of series, and of the golden kernel's tree."""

    model = Apply

    def lock(self, session: Session, job_id: int) -> Apply:
        """Lock the apply's submission, then the apply."""
        submission_id = session.scalar(select(Apply.submission_id).where(Apply.id == job_id))
        lock_submissions(session, [submission_id] if submission_id is not None else [])
        return super().lock(session, job_id)

    def payload(self, context: Context, job: Apply) -> JobPayload:
        submission = _submission(context.session, job)
        thread = job.payload.thread
        if thread is not None and job.result is not None and job.result.thread is not None:
            thread = thread.model_copy(update={"taken": job.result.thread})  # an earlier attempt has taken the mails
        series = submission.request.series if submission is not None else None
        seen = _seen_commits(context.session, job, submission)
        return job.payload.model_copy(update={"series": series, "seen": seen, "thread": thread})

    def check(self, context: Context, job: Apply, result: JobResult) -> None:
        assert isinstance(result, ApplyResult)  # noqa: S101 - the protocol has checked its kind
        uploaded = uploaded_hashes(context.session, job)
        if result.thread is not None:
            check_uploaded([result.thread.mbox], uploaded)
        if result.outcome is not Outcome.PASSED:
            return
        if result.baseline is None or not result.toolchain:
            raise ApiProblem(422, "the result of a passed apply needs a baseline source and the exact toolchain")
        submission = _submission(context.session, job)
        if submission is not None and submission.request.series is not None and result.candidate is None:
            raise ApiProblem(422, "the result of a passed apply of a series needs a candidate source")
        if submission is not None and submission.request.walk and not result.patch_sources:
            raise ApiProblem(422, "the result of a passed apply of a walk needs the source after each patch")
        sources = [each for each in (result.baseline, result.candidate, *result.patch_sources) if each is not None]
        check_uploaded([source.bundle for source in sources if source.bundle is not None], uploaded)

    def begun(self, context: Context, job: Apply) -> None:
        emit(context.session, job.submission_id, EventKind.APPLY_STATE, state=job.state, holder=job.holder)

    def progressed(self, context: Context, job: Apply) -> None:
        emit(context.session, job.submission_id, EventKind.APPLY_STATE, state=job.state, text=job.progress)

    def requeued(self, context: Context, job: Apply, failure: Failure) -> None:
        emit(
            context.session,
            job.submission_id,
            EventKind.ATTEMPT_FAILED,
            what="apply",
            attempt=job.attempts,
            holder=job.holder,
            failure=dump_failure(failure),
        )
        self._emit_state(context, job)

    def ended(self, context: Context, job: Apply) -> None:
        self._emit_state(context, job)
        if job.submission_id is None:
            post(context.session, Message(TICK, None, SERVER_QUEUE))
        else:
            post(context.session, Message(ADVANCE, job.submission_id, SERVER_QUEUE))

    def _emit_state(self, context: Context, job: Apply) -> None:
        emit(
            context.session,
            job.submission_id,
            EventKind.APPLY_STATE,
            state=job.state,
            outcome=job.outcome,
            failure=dump_failure(job.failure),
        )


def _submission(session: Session, apply: Apply) -> Submission | None:
    return session.get(Submission, apply.submission_id) if apply.submission_id is not None else None


def _seen_commits(session: Session, apply: Apply, submission: Submission | None) -> list[str]:
    """Return the commits that the lab has seen as heads of a watched tree in the repository of the apply: those of a
    pair, and the ends of the bisection that it is of."""
    series = submission.request.series if submission is not None else None
    pair = series.commits if series is not None else None
    if pair is None:
        return []
    ends = session.execute(
        select(Bisection.good, Bisection.bad)
        .join(BisectionStep, BisectionStep.bisection_id == Bisection.id)
        .where(BisectionStep.submission_id == apply.submission_id)
        .limit(1)
    ).one_or_none()
    return seen_commits(session, apply.payload.tree, [pair.baseline, pair.candidate, *(ends or ())])
