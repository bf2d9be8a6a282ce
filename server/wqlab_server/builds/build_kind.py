"""Builds: what a worker gets, and what their claims and ends mean for the submissions that use them."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter
from sqlalchemy.orm import Session

from wqlab_contracts.celery_names import ADVANCE, SERVER_QUEUE, TICK
from wqlab_contracts.enums import ArtifactKind, EventKind, Outcome
from wqlab_contracts.messages import BuildJob, BuildResult, Failure
from wqlab_contracts.messages.jobs import JobPayload, JobResult
from wqlab_contracts.specs import CpuArch

from ..http.problems import ApiProblem
from ..jobs.kinds import Context, Kind
from ..models import Build
from ..storage.db import Message, post
from ..storage.events import dump_failure, emit_to_all
from .locks import lock_submissions, submissions_using
from .uploads import check_uploaded, uploaded_hashes

_ARCH: TypeAdapter[CpuArch] = TypeAdapter(CpuArch)


class BuildKind(Kind[Build]):
    """Builds of kernels. Several submissions may use one."""

    model = Build

    def lock(self, session: Session, job_id: int) -> Build:
        """Lock the submissions that use the build, then the build."""
        lock_submissions(session, submissions_using(session, job_id))
        return super().lock(session, job_id)

    def payload(self, context: Context, job: Build) -> JobPayload:
        return BuildJob(
            build_id=job.id,
            key=job.key,
            source=job.source,
            trusted=job.trusted,
            recipe=job.recipe,
            arch=_ARCH.validate_python(job.arch),
            emulated=job.emulated,
            fragments=job.fragments,
            modules=job.modules,
            toolchain=job.toolchain,
            layouts=job.layouts,
        )

    def check(self, context: Context, job: Build, result: JobResult) -> None:
        assert isinstance(result, BuildResult)  # noqa: S101 - the protocol has checked its kind
        if result.outcome is not Outcome.PASSED:
            return
        if not result.build_id_gnu:
            raise ApiProblem(422, "the result of a passed build needs a GNU build id")
        if not any(artifact.kind is ArtifactKind.KERNEL for artifact in result.artifacts):
            raise ApiProblem(422, "the result of a passed build needs an artifact of kind kernel")
        if [each.layout for each in result.layouts] != list(range(1, job.layouts)):
            raise ApiProblem(422, f"the result of a passed build needs its {job.layouts} layouts")
        artifacts = [*result.artifacts, *(each for layout in result.layouts for each in layout.artifacts)]
        check_uploaded(artifacts, uploaded_hashes(context.session, job))

    def begun(self, context: Context, job: Build) -> None:
        self._emit(context, job, EventKind.BUILD_STATE, state=job.state, holder=job.holder)

    def progressed(self, context: Context, job: Build) -> None:
        done, total = job.progress_done, job.progress_total
        self._emit(context, job, EventKind.BUILD_PROGRESS, text=job.progress, done=done, total=total)

    def requeued(self, context: Context, job: Build, failure: Failure) -> None:
        self._emit(
            context,
            job,
            EventKind.ATTEMPT_FAILED,
            what="build",
            attempt=job.attempts,
            holder=job.holder,
            failure=dump_failure(failure),
        )
        self._emit_state(context, job)

    def ended(self, context: Context, job: Build) -> None:
        self._emit_state(context, job)
        submission_ids = submissions_using(context.session, job.id)
        for submission_id in submission_ids:
            post(context.session, Message(ADVANCE, submission_id, SERVER_QUEUE))
        if not submission_ids:
            post(context.session, Message(TICK, None, SERVER_QUEUE))

    def _emit_state(self, context: Context, job: Build) -> None:
        failure = dump_failure(job.failure)
        self._emit(context, job, EventKind.BUILD_STATE, state=job.state, outcome=job.outcome, failure=failure)

    def _emit(self, context: Context, job: Build, kind: EventKind, **data: Any) -> None:
        users = submissions_using(context.session, job.id)
        emit_to_all(context.session, users, kind, build_id=job.id, **data)
