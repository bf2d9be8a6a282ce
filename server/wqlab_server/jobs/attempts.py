"""List every failed attempt of a submission's jobs and runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_contracts.api.report import AttemptView
from wqlab_contracts.enums import Arm, EventKind, Outcome
from wqlab_contracts.messages import Failure

from ..models import Apply, BlockAttempt, Boot, Build, Event, Run, RunAttempt, SubmissionBuild


def failed_job_attempts(session: Session, submission_id: int) -> list[AttemptView]:
    """Return the failed attempts of applies and builds, including retried ones, ordered by time."""
    events = session.scalars(
        select(Event).where(Event.submission_id == submission_id, Event.kind == EventKind.ATTEMPT_FAILED)
    )
    retried = [
        _job_view(
            event.data["what"],
            event.build_id,
            holder=event.data["holder"],
            attempt=event.data["attempt"],
            failure=Failure.model_validate(event.data["failure"]),
            at=event.at,
        )
        for event in events
        if event.data["what"] in {"apply", "build"}
    ]
    jobs: list[Apply | Build] = [
        *session.scalars(select(Apply).where(Apply.submission_id == submission_id, Apply.outcome == Outcome.FAILED)),
        *session.scalars(
            select(Build)
            .where(Build.outcome == Outcome.FAILED)
            .where(Build.id.in_(select(SubmissionBuild.build_id).where(SubmissionBuild.submission_id == submission_id)))
        ),
    ]
    ended = [
        _job_view(
            "build" if isinstance(job, Build) else "apply",
            job.id if isinstance(job, Build) else None,
            holder=job.holder,
            attempt=job.attempts,
            failure=job.failure,
            at=job.finished_at,
        )
        for job in jobs
        if job.failure is not None
    ]
    return sorted([*retried, *ended], key=lambda view: (view.at is None, view.at))


def _job_view(
    what: Literal["apply", "build"],
    build_id: int | None,
    *,
    holder: str | None,
    attempt: int,
    failure: Failure,
    at: datetime | None,
) -> AttemptView:
    return AttemptView(
        what=what,
        run_id=None,
        build_id=build_id,
        plan=None,
        device_type=None,
        device=holder or "",
        block=None,
        arm=None,
        attempt=attempt,
        failure=failure,
        at=at,
    )


def failed_run_attempts(
    run: Run, boots: Sequence[Boot], blocks: Sequence[BlockAttempt], attempts: Sequence[RunAttempt]
) -> list[AttemptView]:
    """Return a run's discarded blocks, failed boots and failed attempts, ordered by time.

    A boot whose failure its discarded block already gives is left out.
    """
    failures: list[AttemptView] = []
    failed_boots = {(boot.block, boot.attempt, boot.failure): boot for boot in boots if boot.failure is not None}
    for block in blocks:
        if not block.finished and block.failure is not None:
            boot = failed_boots.pop((block.block, block.attempt, block.failure), None)
            failures.append(_run_view(run, block, block.failure, boot.arm if boot else block.arm))
    failures += [_run_view(run, boot, failure, boot.arm) for (_, _, failure), boot in failed_boots.items() if failure]
    failures += [_run_view(run, attempt, attempt.failure, None) for attempt in attempts if attempt.failure is not None]
    return sorted(failures, key=lambda view: view.at or run.created_at)


def _run_view(run: Run, failed: BlockAttempt | Boot | RunAttempt, failure: Failure, arm: Arm | None) -> AttemptView:
    return AttemptView(
        run_id=run.id,
        plan=run.plan_name,
        device_type=run.device_type,
        device=failed.device_name,
        block=None if isinstance(failed, RunAttempt) else failed.block,
        arm=arm,
        attempt=failed.number if isinstance(failed, RunAttempt) else failed.attempt,
        failure=failure,
        at=failed.at if isinstance(failed, BlockAttempt) else failed.finished_at or failed.started_at,
    )
