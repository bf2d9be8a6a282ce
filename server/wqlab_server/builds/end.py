"""Finish applies and builds: the result of a worker, or a claim that has expired."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_contracts.celery_names import APPLY, APPLY_QUEUE, BUILD, BUILD_QUEUE
from wqlab_contracts.enums import ArtifactKind, ErrorKind, EventKind, JobState, Outcome
from wqlab_contracts.messages import (
    ApplyResult,
    Artifact,
    BuildResult,
    Failure,
)

from ..http.problems import ApiProblem
from ..jobs import claims
from ..jobs.errors import StaleFence, infrastructure_failure
from ..jobs.state import Ended, Retry, decide_job
from ..models import (
    Apply,
    ArtifactLink,
    Build,
    Submission,
)
from ..settings import Settings
from ..storage.db import clock
from ..storage.events import emit, emit_to_all
from .locks import lock_apply, lock_build


def finish_apply(session: Session, apply_id: int, fence: int, result: ApplyResult, settings: Settings) -> int | None:
    """Finish an apply or requeue it; return the submission to advance, if any.

    A repeated finish is accepted and changes nothing. Raises StaleFence, ApiProblem 404, 422 for an incomplete result.
    """
    apply = lock_apply(session, apply_id)
    if is_repeated_finish(apply, fence, result):
        return apply.submission_id
    claims.check_fence(session, apply, fence)
    _check_apply(session, apply, result)
    apply.result = result
    ended = _judge(apply, result.outcome, result.failure, settings)
    end_apply(session, apply, ended)
    return apply.submission_id


def end_apply(session: Session, apply: Apply, ended: Retry | Ended) -> None:
    """Requeue or finish an apply, and emit the events."""
    holder, attempt = apply.holder, apply.attempts
    if isinstance(ended, Retry):
        claims.requeue(apply)
        _emit_failed_attempt(
            session, [apply.submission_id], "apply", failure=ended.failure, holder=holder, attempt=attempt
        )
        claims.nudge(session, apply, APPLY, APPLY_QUEUE, clock(session))
    else:
        claims.finish(session, apply, ended.outcome, ended.failure)
    emit(
        session,
        apply.submission_id,
        EventKind.APPLY_STATE,
        state=apply.state,
        outcome=apply.outcome,
        failure=_dump(apply.failure),
    )


def finish_build(session: Session, build_id: int, fence: int, result: BuildResult, settings: Settings) -> list[int]:
    """Finish a build or requeue it; return the submissions to advance.

    A repeated finish is accepted and changes nothing. Raises StaleFence, ApiProblem 404, 422 for an incomplete result.
    """
    build, submission_ids = lock_build(session, build_id)
    if is_repeated_finish(build, fence, result):
        return submission_ids
    claims.check_fence(session, build, fence)
    if result.outcome is Outcome.PASSED:
        _check_build(session, build, result)
    build.result = result
    ended = _judge(build, result.outcome, result.failure, settings)
    end_build(session, build, submission_ids, ended)
    return submission_ids


def end_build(session: Session, build: Build, submission_ids: Sequence[int], ended: Retry | Ended) -> None:
    """Requeue or finish a build, and emit the events."""
    holder, attempt = build.holder, build.attempts
    if isinstance(ended, Retry):
        claims.requeue(build)
        _emit_failed_attempt(
            session, submission_ids, "build", failure=ended.failure, holder=holder, attempt=attempt, build_id=build.id
        )
        claims.nudge(session, build, BUILD, BUILD_QUEUE, clock(session))
    else:
        claims.finish(session, build, ended.outcome, ended.failure)
    emit_to_all(
        session,
        submission_ids,
        EventKind.BUILD_STATE,
        build_id=build.id,
        state=build.state,
        outcome=build.outcome,
        failure=_dump(build.failure),
    )


def is_repeated_finish(job: Apply | Build, fence: int, result: ApplyResult | BuildResult) -> bool:
    """Return True if this finish was recorded before. Raises StaleFence for a different result of an ended claim."""
    if job.state is JobState.RUNNING or job.fence != fence:
        return False
    if job.result == result:
        return True
    raise StaleFence(claims.describe(job), fence)


def judge_expired(job: Apply | Build, settings: Settings) -> Retry | Ended:
    """Decide whether a job with an expired claim is retried or ends."""
    failure = infrastructure_failure(
        f"{claims.describe(job)}: worker {job.holder} stopped answering",
        advice="see the worker's log; the job is retried if it has attempts left",
    )
    return _judge(job, Outcome.FAILED, failure, settings)


def _judge(job: Apply | Build, outcome: Outcome, failure: Failure | None, settings: Settings) -> Retry | Ended:
    return decide_job(
        outcome,
        failure,
        attempts=job.attempts,
        bound=settings.job_attempts,
        cancel_requested=job.cancel_requested_at is not None,
    )


def _check_apply(session: Session, apply: Apply, result: ApplyResult) -> None:
    uploaded = {link.sha256 for link in session.scalars(select(ArtifactLink).where(ArtifactLink.apply_id == apply.id))}
    if result.thread is not None:
        _check_uploaded([result.thread.mbox], uploaded)
    if result.outcome is not Outcome.PASSED:
        return
    if result.baseline is None or not result.toolchain:
        raise ApiProblem(422, "the result of a passed apply needs a baseline source and the exact toolchain")
    needs_candidate = apply.submission_id is not None and _has_series(session, apply.submission_id)
    if needs_candidate and result.candidate is None:
        raise ApiProblem(422, "the result of a passed apply of a series needs a candidate source")
    if apply.submission_id is not None and _is_walked(session, apply.submission_id) and not result.patch_sources:
        raise ApiProblem(422, "the result of a passed apply of a walk needs the source after each patch")
    sources = [source for source in (result.baseline, result.candidate, *result.patch_sources) if source is not None]
    _check_uploaded([source.bundle for source in sources if source.bundle is not None], uploaded)


def _check_build(session: Session, build: Build, result: BuildResult) -> None:
    uploaded = {link.sha256 for link in session.scalars(select(ArtifactLink).where(ArtifactLink.build_id == build.id))}
    if not result.build_id_gnu:
        raise ApiProblem(422, "the result of a passed build needs a GNU build id")
    if not any(artifact.kind is ArtifactKind.KERNEL for artifact in result.artifacts):
        raise ApiProblem(422, "the result of a passed build needs an artifact of kind kernel")
    if [each.layout for each in result.layouts] != list(range(1, build.layouts)):
        raise ApiProblem(422, f"the result of a passed build needs its {build.layouts} layouts")
    _check_uploaded([*result.artifacts, *(each for layout in result.layouts for each in layout.artifacts)], uploaded)


def _check_uploaded(artifacts: Sequence[Artifact], uploaded: set[str]) -> None:
    for artifact in artifacts:
        if artifact.sha256 not in uploaded:
            raise ApiProblem(422, f"{artifact.name} ({artifact.sha256}) was not uploaded for this job")


def _has_series(session: Session, submission_id: int) -> bool:
    submission = session.get(Submission, submission_id)
    return submission is not None and submission.request.series is not None


def _is_walked(session: Session, submission_id: int) -> bool:
    submission = session.get(Submission, submission_id)
    return submission is not None and submission.request.walk


def _emit_failed_attempt(
    session: Session,
    submission_ids: Sequence[int | None],
    what: str,
    *,
    failure: Failure,
    holder: str | None,
    attempt: int,
    build_id: int | None = None,
) -> None:
    for submission_id in submission_ids:
        emit(
            session,
            submission_id,
            EventKind.ATTEMPT_FAILED,
            build_id=build_id,
            what=what,
            attempt=attempt,
            holder=holder,
            failure=_dump(failure),
        )


def _dump(failure: Failure | None) -> object:
    return None if failure is None else failure.model_dump(mode="json")


def failure_for_arm(build: Build, arm_is_baseline: bool) -> Failure:
    """Return a failed build's failure as a run of a submission reports it.

    A user error of a baseline from an operator's tree becomes an infrastructure failure: the tree itself does not
    compile. A failure of a baseline that the user chose, and of every candidate, keeps its kind.
    """
    found = build.failure or infrastructure_failure(f"build {build.id} ended without a reason")
    arm = "baseline" if arm_is_baseline else "candidate"
    kind = found.kind
    if kind is ErrorKind.USER and arm_is_baseline and build.trusted:
        kind = ErrorKind.INFRASTRUCTURE
    return found.model_copy(update={"kind": kind, "summary": f"{arm} kernel: {found.summary}"})


def are_byte_identical(builds: Sequence[Build]) -> bool:
    """Return True for two passed builds of which a device would load the same bytes."""
    if len(builds) != 2:
        return False
    first, second = builds
    digests = {build.result.content_sha256 if build.result else "" for build in builds}
    return first.id == second.id or (len(digests) == 1 and digests != {""})
