"""Device sessions: a run claimed with the device it was offered, and ended: the device judged and given back, the run
finished or given to another device."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_contracts.celery_names import SERVER_QUEUE, TICK
from wqlab_contracts.enums import DeviceHealth, ErrorKind, EventKind, Outcome, RunPurpose
from wqlab_contracts.messages import RunJob, RunResult

from ..jobs import claims
from ..jobs.errors import StaleFence, infrastructure
from ..jobs.state import Again, Ended
from ..lab import health, lease
from ..lab import service as lab
from ..models import Boot, Device, Run, RunAttempt
from ..runs import service as runs
from ..runs.state import judge_run
from ..settings import Settings
from ..storage.db import Message, clock, post
from ..storage.events import emit, tell_run
from . import health_checks

HEALTH_CHECK_ATTEMPTS = 2
"""A check that was cut short is tried once more; one that failed is an answer."""


def claim(
    session: Session, run_id: int, holder: str, lab: str | None, settings: Settings
) -> tuple[RunJob, int, list[int]]:
    """(job, fence, completed blocks). Raises NotClaimable, ApiProblem 404."""
    run = runs.lock_run(session, run_id, whole=True)
    device, was_left = lease.take(session, run, holder, lab, settings)
    tell_run(session, run, holder=holder, attempt=run.attempts)
    return runs.job(session, run, device, was_left), run.fence or 0, runs.completed_blocks(session, run.id)


def finish(session: Session, run_id: int, fence: int, result: RunResult, settings: Settings) -> Run:
    """A repeated finish is accepted and changes nothing. Raises StaleFence, ApiProblem 404."""
    run = runs.lock_run(session, run_id)
    if result.outcome is Outcome.PASSED and len(runs.completed_blocks(session, run.id)) < len(run.blocks):
        unproven = infrastructure(f"run {run.id} was called passed, but not every block is whole and proven")
        result = RunResult(outcome=Outcome.FAILED, failure=unproven, device_suspect=True)
    attempt = session.scalar(select(RunAttempt).where(RunAttempt.run_id == run.id, RunAttempt.fence == fence))
    if attempt is not None and attempt.outcome is not None:
        if attempt.outcome is result.outcome and attempt.failure == result.failure:
            return run
        raise StaleFence(claims.describe(run), fence)
    claims.held(session, run, fence)
    end_attempt(session, run, result, settings, lost=False)
    return run


def lost(session: Session, run: Run, settings: Settings) -> None:
    """The lease of a running run has run out: whole blocks stay, the rest is given to a device again."""
    failure = infrastructure(
        f"worker {run.holder} stopped answering while run {run.id} was on {run.device_name}",
        advice="see the lab worker's log; the device is checked before its next run",
    )
    end_attempt(session, run, RunResult(outcome=Outcome.FAILED, failure=failure), settings, lost=True)


def end_attempt(session: Session, run: Run, result: RunResult, settings: Settings, *, lost: bool) -> None:
    """Records how an attempt ended, gives the device back, and requeues or finishes the run."""
    now = clock(session)
    reason = result.failure or infrastructure("the run ended in the middle of this block")
    runs.abandon_boots(session, run, reason, now)
    attempt = session.scalars(
        select(RunAttempt).where(RunAttempt.run_id == run.id, RunAttempt.number == run.attempts)
    ).one()
    attempt.outcome, attempt.failure, attempt.finished_at = result.outcome, result.failure, now
    bound = settings.run_attempts
    if run.purpose is RunPurpose.HEALTH_CHECK:
        bound = 1 if result.device_suspect else HEALTH_CHECK_ATTEMPTS
    ended = judge_run(
        result,
        run.purpose,
        runs.baseline_failures(session, run.id),
        has_candidate=run.candidate_build_id is not None,
        attempts=run.attempts,
        bound=bound,
        cancel_requested=run.cancel_requested_at is not None,
    )
    if _only_the_end_was_lost(session, run, ended):
        ended = Ended(Outcome.PASSED, None)
    device = lease.release(session, run, given_back=not lost)
    if device is not None:
        _judge_device(session, run, device, result, ended, settings=settings, lost=lost)
        out_of_pool = device.health is DeviceHealth.QUARANTINED
        if isinstance(ended, Again) and out_of_pool and run.purpose is RunPurpose.HEALTH_CHECK:
            ended = Ended(Outcome.CANCELED, lab.uncheckable(device))
    if isinstance(ended, Again) or (ended.outcome is Outcome.FAILED):
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
    if isinstance(ended, Again):
        claims.requeue(run)
    else:
        claims.finish(session, run, ended.outcome, ended.failure)
        if run.submission_id is None:  # a check of a device may go on from here
            post(session, Message(TICK, None, SERVER_QUEUE))
    tell_run(session, run)


def _judge_device(
    session: Session,
    run: Run,
    device: Device,
    result: RunResult,
    ended: Again | Ended,
    *,
    settings: Settings,
    lost: bool,
) -> None:
    """What the attempt says of the device's health."""
    over = run.purpose is RunPurpose.HEALTH_CHECK and isinstance(ended, Ended)
    after = health.after_attempt(
        health.Health(device.health, device.health_reason),
        run.purpose,
        ended.outcome if isinstance(ended, Ended) else result.outcome,
        result.failure,
        suspect=result.device_suspect,
        lost=lost,
        given_up=over and health_checks.unanswered(session, device) + 1 >= settings.health_checks,
    )
    lab.note(session, device, after, f"run {run.id}", run.id)
    if over and after.state in health.ANSWERS:
        device.health_checked_at = clock(session)
        topology = session.scalar(
            select(Boot.topology).where(Boot.run_id == run.id, Boot.valid).order_by(Boot.id.desc()).limit(1)
        )
        device.measured_topology = topology or device.measured_topology


def _only_the_end_was_lost(session: Session, run: Run, ended: Again | Ended) -> bool:
    """The lab failed after the last block was whole: everything the run was for has been recorded."""
    by_lab = ended.failure is not None and ended.failure.kind is ErrorKind.INFRASTRUCTURE
    return by_lab and len(runs.completed_blocks(session, run.id)) == len(run.blocks)
