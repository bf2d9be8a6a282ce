"""Start and end device sessions: the claims of runs.

A session starts when a run is claimed with its offered device. At its end the device's health is updated, the device is
released, and the run is finished or requeued.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_contracts.celery_names import ADVANCE, SERVER_QUEUE, TICK
from wqlab_contracts.enums import EventKind, Outcome, RunPurpose
from wqlab_contracts.messages import ClaimRequest, RunEvent, RunResult
from wqlab_contracts.messages.jobs import JobPayload, JobResult

from ..jobs import claims
from ..jobs.errors import NotClaimable, infrastructure_failure
from ..jobs.kinds import Context, Kind
from ..jobs.state import Ended, Retry
from ..lab import health, lease
from ..lab import service as lab_service
from ..models import Boot, Device, Run, RunAttempt
from ..runs import service as runs
from ..runs.record import record
from ..runs.state import decide_run
from ..settings import Settings
from ..storage.db import Message, clock, post
from ..storage.events import dump_failure, emit, emit_run_state
from . import device_rules, health_checks, looks, walks

HEALTH_CHECK_ATTEMPTS = 2
"""An interrupted check is retried once; a check that failed is conclusive."""
CANARY_ATTEMPTS = 2
"""Nobody waits for a canary, so one that the lab cannot run is given up soon."""


class RunKind(Kind[Run]):
    """Runs. Their claim is the lease of a device, which a tick has offered."""

    model = Run

    def lock(self, session: Session, job_id: int) -> Run:
        """Lock the run's submission, then the run. The snapshot of its inputs is not loaded."""
        return runs.lock_run(session, job_id)

    def claim_s(self, settings: Settings) -> float:
        return settings.lease_s

    def take(self, context: Context, job: Run, request: ClaimRequest) -> JobPayload:
        session, run = context.session, runs.lock_run(context.session, job.id, with_snapshot=True)
        if (reason := device_rules.refusal(session, run, context.data.current())) is not None:
            raise NotClaimable(claims.describe(run), reason)
        device = lease.take(session, run, request.worker, request.lab, context.settings)
        emit_run_state(session, run, holder=request.worker, attempt=run.attempts)
        return runs.make_job(session, run, device)

    def repeat(self, context: Context, job: Run, now: datetime) -> JobPayload:
        session, run = context.session, runs.lock_run(context.session, job.id, with_snapshot=True)
        self.extend(context, run, now)
        device = session.scalars(select(Device).where(Device.name == run.device_name)).one()
        return runs.make_job(session, run, device)

    def extend(self, context: Context, job: Run, now: datetime) -> None:
        lease.extend(context.session, job, now, context.settings)

    def record(self, context: Context, job: Run, events: Sequence[RunEvent]) -> None:
        record(context.session, job, events)

    def finish(self, context: Context, job: Run, result: JobResult) -> None:
        assert isinstance(result, RunResult)  # noqa: S101 - the protocol has checked its kind
        session = context.session
        if result.outcome is Outcome.PASSED and len(runs.completed_blocks(session, job.id)) < job.blocks_due:
            incomplete = infrastructure_failure(
                f"the worker reported run {job.id} as passed, but not every due block is finished and verified"
            )
            result = RunResult(outcome=Outcome.FAILED, failure=incomplete, device_suspect=True)
        end_attempt(session, job, result, context.settings, lost=False)
        if job.submission_id is None:
            post(session, Message(TICK, None, SERVER_QUEUE))
        else:
            post(session, Message(ADVANCE, job.submission_id, SERVER_QUEUE))

    def expire(self, context: Context, job: Run) -> None:
        failure = infrastructure_failure(
            f"worker {job.holder} stopped answering while run {job.id} was on {job.device_name}",
            advice="see the lab worker's log; the device is checked before its next run",
        )
        result = RunResult(outcome=Outcome.FAILED, failure=failure)
        end_attempt(context.session, job, result, context.settings, lost=True)


def end_attempt(session: Session, run: Run, result: RunResult, settings: Settings, *, lost: bool) -> None:
    """Record how an attempt ended, release its device, and requeue or finish the run.

    `lost`: the lease expired without a word from the holder.
    """
    now = clock(session)
    reason = result.failure or infrastructure_failure("the run ended in the middle of this block")
    runs.abandon_boots(session, run, reason, now)
    attempt = session.scalars(
        select(RunAttempt).where(RunAttempt.run_id == run.id, RunAttempt.number == run.attempts)
    ).one()
    attempt.outcome, attempt.failure, attempt.finished_at = result.outcome, result.failure, now
    ended = _decide(session, run, result, settings)
    device = lease.release(session, run)
    if device is not None:
        _update_device_health(session, run, device, result, ended, settings=settings, lost=lost)
    if isinstance(ended, Retry) or ended.outcome is Outcome.FAILED:
        emit(
            session,
            run.submission_id,
            EventKind.ATTEMPT_FAILED,
            run_id=run.id,
            what="run",
            attempt=run.attempts,
            device=attempt.device_name,
            holder=attempt.holder,
            failure=dump_failure(ended.failure),
        )
    if isinstance(ended, Retry) or looks.goes_on(session, run, ended):
        claims.requeue(run)
    else:
        claims.finish(session, run, ended.outcome, ended.failure)
    if run.submission_id is None:
        # A run may wait for the device, or a device check for the end of its run.
        post(session, Message(TICK, None, SERVER_QUEUE))
    emit_run_state(session, run, **looks.of_event(run))


def _decide(session: Session, run: Run, result: RunResult, settings: Settings) -> Retry | Ended:
    """Decide whether the run is tried again or ends, from the result of one attempt and what was recorded before."""
    decided = decide_run(
        result,
        run.purpose,
        runs.baseline_failures(session, run.id),
        has_candidate=run.candidate_build_id is not None,
        attempts=max(1, runs.attempts_without_progress(session, run.id) - walks.failed_kernels(run)),
        bound=_most_attempts(run, result, settings),
        cancel_requested=run.cancel_requested_at is not None,
        complete=len(runs.completed_blocks(session, run.id)) == run.blocks_due,
    )
    if isinstance(decided, Retry):
        run.cancel_requested_at = None  # a canary gave way, and continues when the device is idle again
    return walks.after_attempt(session, run, result, decided)


def _most_attempts(run: Run, result: RunResult, settings: Settings) -> int:
    """Return after how many attempts without progress a run is given up."""
    if run.purpose is RunPurpose.HEALTH_CHECK:
        return 1 if result.device_suspect and not result.equipment_unreachable else HEALTH_CHECK_ATTEMPTS
    return CANARY_ATTEMPTS if run.purpose is RunPurpose.CANARY else settings.run_attempts


def _update_device_health(
    session: Session,
    run: Run,
    device: Device,
    result: RunResult,
    ended: Retry | Ended,
    *,
    settings: Settings,
    lost: bool,
) -> None:
    """Set the device's health after an attempt; a conclusive health check also stores the measured topology."""
    check_ended = run.purpose is RunPurpose.HEALTH_CHECK and isinstance(ended, Ended)
    after = health.after_attempt(
        health.Health(device.health, device.health_reason),
        run.purpose,
        ended.outcome if isinstance(ended, Ended) else result.outcome,
        result.failure,
        suspect=result.device_suspect,
        unreachable=result.equipment_unreachable,
        lost=lost,
        abandoned=check_ended and health_checks.count_inconclusive(session, device) + 1 >= settings.health_checks,
    )
    lab_service.set_health(session, device, after, f"run {run.id}", run.id)
    if check_ended and after.state in health.CONCLUSIVE:
        device.health_checked_at = clock(session)
        topology = session.scalar(
            select(Boot.topology).where(Boot.run_id == run.id, Boot.valid).order_by(Boot.id.desc()).limit(1)
        )
        device.measured_topology = topology or device.measured_topology
