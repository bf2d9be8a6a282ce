"""Start and end device sessions.

A session starts when a run is claimed with its offered device. At its end the device's health is updated, the device is
released, and the run is finished or requeued.
"""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_contracts.celery_names import SERVER_QUEUE, TICK
from wqlab_contracts.enums import DeviceHealth, ErrorKind, EventKind, Outcome, RunPurpose
from wqlab_contracts.messages import RunJob, RunResult

from ..jobs import claims
from ..jobs.errors import StaleFence, canceled_failure, infrastructure_failure
from ..jobs.state import Ended, Retry
from ..lab import health, lease
from ..lab import service as lab_service
from ..models import Boot, Device, Run, RunAttempt
from ..runs import service as runs
from ..runs.state import decide_run
from ..settings import Settings
from ..storage.db import Message, clock, post
from ..storage.events import emit, emit_run_state
from . import health_checks, looks, walks

HEALTH_CHECK_ATTEMPTS = 2
"""An interrupted check is retried once; a check that failed is conclusive."""
NOISE_ATTEMPTS = 2
"""Maximum attempts of a noise run whose device is suspect. Another attempt would need the same device, and would delay
the health check that decides whether it is quarantined."""
CANARY_ATTEMPTS = 2
"""Nobody waits for a canary, so one that the lab cannot run is given up soon."""


def claim(
    session: Session, run_id: int, holder: str, lab: str | None, settings: Settings
) -> tuple[RunJob, int, list[int]]:
    """Claim a run for `holder`; return (job, fence, completed blocks). Raises NotClaimable, ApiProblem 404."""
    run = runs.lock_run(session, run_id, with_snapshot=True)
    device, was_dirty = lease.take(session, run, holder, lab, settings)
    emit_run_state(session, run, holder=holder, attempt=run.attempts)
    job = runs.make_job(session, run, device, previous_holder=was_dirty)
    return job, run.fence or 0, runs.completed_blocks(session, run.id)


def finish(session: Session, run_id: int, fence: int, result: RunResult, settings: Settings) -> Run:
    """Finish an attempt. A repeated finish is accepted and changes nothing. Raises StaleFence, ApiProblem 404."""
    run = runs.lock_run(session, run_id)
    if result.outcome is Outcome.PASSED and len(runs.completed_blocks(session, run.id)) < run.blocks_due:
        incomplete = infrastructure_failure(
            f"the worker reported run {run.id} as passed, but not every due block is finished and verified"
        )
        result = RunResult(outcome=Outcome.FAILED, failure=incomplete, device_suspect=True)
    attempt = session.scalar(select(RunAttempt).where(RunAttempt.run_id == run.id, RunAttempt.fence == fence))
    if attempt is not None and attempt.outcome is not None:
        if attempt.outcome is result.outcome and attempt.failure == result.failure:
            return run
        raise StaleFence(claims.describe(run), fence)
    claims.check_fence(session, run, fence)
    end_attempt(session, run, result, settings, lost=False)
    return run


def end_expired(session: Session, run: Run, settings: Settings) -> None:
    """End the attempt of a run whose lease has expired; finished blocks are kept and the run may be retried."""
    failure = infrastructure_failure(
        f"worker {run.holder} stopped answering while run {run.id} was on {run.device_name}",
        advice="see the lab worker's log; the device is checked before its next run",
    )
    end_attempt(session, run, RunResult(outcome=Outcome.FAILED, failure=failure), settings, lost=True)


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
    bound = settings.run_attempts
    conclusive = result.device_suspect and not result.equipment_unreachable
    if run.purpose is RunPurpose.HEALTH_CHECK:
        bound = 1 if conclusive else HEALTH_CHECK_ATTEMPTS
    elif run.purpose is RunPurpose.NOISE and conclusive:
        bound = NOISE_ATTEMPTS
    elif run.purpose is RunPurpose.CANARY:
        bound = CANARY_ATTEMPTS
    ended = decide_run(
        result,
        run.purpose,
        runs.baseline_failures(session, run.id),
        has_candidate=run.candidate_build_id is not None,
        attempts=max(1, runs.attempts_without_progress(session, run.id) - walks.failed_kernels(run)),
        bound=bound,
        cancel_requested=run.cancel_requested_at is not None,
    )
    if _is_complete_despite_failure(session, run, ended):
        ended = Ended(Outcome.PASSED, None)
    ended = walks.after_attempt(session, run, result, ended)
    if run.purpose is RunPurpose.CANARY and isinstance(ended, Ended) and ended.outcome is Outcome.CANCELED:
        # It gave way to another run, and continues when the device is idle again.
        run.cancel_requested_at = None
        ended = Retry(ended.failure or canceled_failure())
    device = lease.release(session, run, device_released=not lost)
    if device is not None:
        _update_device_health(session, run, device, result, ended, settings=settings, lost=lost)
        out_of_pool = device.health is DeviceHealth.QUARANTINED
        if isinstance(ended, Retry) and out_of_pool and run.purpose is RunPurpose.HEALTH_CHECK:
            ended = Ended(Outcome.CANCELED, lab_service.out_of_pool_failure(device))
    if isinstance(ended, Retry) or (ended.outcome is Outcome.FAILED):
        emit(
            session,
            run.submission_id,
            EventKind.ATTEMPT_FAILED,
            run_id=run.id,
            what="run",
            attempt=run.attempts,
            device=attempt.device_name,
            holder=attempt.holder,
            failure=ended.failure.model_dump(mode="json") if ended.failure else None,
        )
    if isinstance(ended, Retry) or looks.goes_on(session, run, ended):
        claims.requeue(run)
    else:
        claims.finish(session, run, ended.outcome, ended.failure)
    if run.canary is not None or (run.submission_id is None and not isinstance(ended, Retry)):
        # A run may wait for the canary's device; a device check may continue with its next step.
        post(session, Message(TICK, None, SERVER_QUEUE))
    emit_run_state(session, run, **looks.of_event(run))


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


def _is_complete_despite_failure(session: Session, run: Run, ended: Retry | Ended) -> bool:
    """Return True if the lab failed after the last due block was finished, so that all samples are recorded."""
    infrastructure = ended.failure is not None and ended.failure.kind is ErrorKind.INFRASTRUCTURE
    return infrastructure and len(runs.completed_blocks(session, run.id)) == run.blocks_due
