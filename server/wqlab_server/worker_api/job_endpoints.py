"""Endpoints to claim jobs, send heartbeats, events and console, and finish them.

Jobs are applies, builds, runs, lookups, commit lists and list reads.
"""

from __future__ import annotations

from fastapi import APIRouter, Depends
from sqlalchemy.orm import Session

from wqlab_contracts.celery_names import ADVANCE, SERVER_QUEUE, TICK
from wqlab_contracts.messages import (
    ApplyClaim,
    BuildClaim,
    ClaimRequest,
    ConsoleAnswer,
    ConsoleChunk,
    FinishApply,
    FinishBuild,
    FinishRun,
    Heartbeat,
    HeartbeatAnswer,
    ProgressEvents,
    RunClaim,
    RunEvents,
)
from wqlab_contracts.messages.branch_readings import BranchReadingClaim, FinishBranchReading
from wqlab_contracts.messages.commit_lists import CommitListClaim, FinishCommitList
from wqlab_contracts.messages.forge_readings import FinishForgeReading, ForgeReadingClaim
from wqlab_contracts.messages.list_reads import FinishListRead, ListReadClaim
from wqlab_contracts.messages.lookups import FinishLookup, LookupClaim
from wqlab_contracts.messages.thread_lookups import FinishThreadLookup, ThreadLookupClaim

from ..bisections import lists as commit_lists
from ..builds import end as build_ends
from ..builds import locks as build_locks
from ..builds import service as builds
from ..http.auth import BuildWorker, Worker
from ..http.deps import AppSettings, Data, Db
from ..intake import list_reads, threads
from ..intake.forges import heads
from ..jobs import claims
from ..lab import lease
from ..pipeline import device_sessions
from ..pipeline.watch_lists import proposer, steps_of
from ..runs import service as runs
from ..runs.record import record
from ..series import branch_readings, branches
from ..storage.db import Message, post
from .lab_scope import check_lab, check_lab_of_run
from .protocol import check_protocol

router = APIRouter()


# --- applies ----------------------------------------------------------------------------------------------------


@router.post("/applies/{apply_id}/claim", dependencies=[Depends(check_protocol)])
def claim_apply(apply_id: int, body: ClaimRequest, db: Db, settings: AppSettings, _: BuildWorker) -> ApplyClaim:
    job, fence = builds.claim_apply(db, apply_id, body.worker, settings, body.nonce)
    return ApplyClaim(job=job, fence=fence, expires_in_s=settings.claim_s)


@router.post("/applies/{apply_id}/heartbeat")
def heartbeat_apply(apply_id: int, body: Heartbeat, db: Db, settings: AppSettings, _: BuildWorker) -> HeartbeatAnswer:
    apply = build_locks.lock_apply(db, apply_id)
    claims.extend(apply, claims.check_fence(db, apply, body.fence), settings.claim_s)
    return HeartbeatAnswer(expires_in_s=settings.claim_s, cancel=apply.cancel_requested_at is not None)


@router.post("/applies/{apply_id}/events", status_code=204)
def apply_events(apply_id: int, body: ProgressEvents, db: Db, _: BuildWorker) -> None:
    builds.progress_apply(db, apply_id, body.fence, body.events)


@router.post("/applies/{apply_id}/finish", status_code=204)
def finish_apply(apply_id: int, body: FinishApply, db: Db, settings: AppSettings, _: BuildWorker) -> None:
    submission_id = build_ends.finish_apply(db, apply_id, body.fence, body.result, settings)
    _wake_pipeline(db, [submission_id] if submission_id is not None else [])


# --- builds -----------------------------------------------------------------------------------------------------


@router.post("/builds/{build_id}/claim", dependencies=[Depends(check_protocol)])
def claim_build(build_id: int, body: ClaimRequest, db: Db, settings: AppSettings, _: BuildWorker) -> BuildClaim:
    job, fence = builds.claim_build(db, build_id, body.worker, settings, body.nonce)
    return BuildClaim(job=job, fence=fence, expires_in_s=settings.claim_s)


@router.post("/builds/{build_id}/heartbeat")
def heartbeat_build(build_id: int, body: Heartbeat, db: Db, settings: AppSettings, _: BuildWorker) -> HeartbeatAnswer:
    build, _users = build_locks.lock_build(db, build_id)
    claims.extend(build, claims.check_fence(db, build, body.fence), settings.claim_s)
    return HeartbeatAnswer(expires_in_s=settings.claim_s, cancel=build.cancel_requested_at is not None)


@router.post("/builds/{build_id}/events", status_code=204)
def build_events(build_id: int, body: ProgressEvents, db: Db, _: BuildWorker) -> None:
    builds.progress_build(db, build_id, body.fence, body.events)


@router.post("/builds/{build_id}/finish", status_code=204)
def finish_build(build_id: int, body: FinishBuild, db: Db, settings: AppSettings, _: BuildWorker) -> None:
    _wake_pipeline(db, build_ends.finish_build(db, build_id, body.fence, body.result, settings))


# --- runs -------------------------------------------------------------------------------------------------------


@router.post("/runs/{run_id}/claim", dependencies=[Depends(check_protocol)])
def claim_run(run_id: int, body: ClaimRequest, db: Db, settings: AppSettings, principal: Worker) -> RunClaim:
    lab = body.lab or principal.lab
    if lab is not None:
        check_lab(principal, lab)
    run = runs.lock_run(db, run_id, with_snapshot=True)
    if now := claims.find_repeated_claim(db, run, body.nonce):
        check_lab_of_run(db, principal, run_id)
        lease.extend(db, run, now, settings)
        job, fence, completed = runs.repeat_claim(db, run)
    else:
        job, fence, completed = device_sessions.claim(db, run_id, body.worker, lab, settings)
        run.claim_nonce = body.nonce
    return RunClaim(job=job, fence=fence, expires_in_s=settings.lease_s, completed_blocks=completed)


@router.post("/runs/{run_id}/heartbeat")
def heartbeat_run(run_id: int, body: Heartbeat, db: Db, settings: AppSettings, principal: Worker) -> HeartbeatAnswer:
    check_lab_of_run(db, principal, run_id)
    run = runs.lock_run(db, run_id)
    lease.extend(db, run, claims.check_fence(db, run, body.fence), settings)
    return HeartbeatAnswer(expires_in_s=settings.lease_s, cancel=run.cancel_requested_at is not None)


@router.post("/runs/{run_id}/events", status_code=204)
def run_events(run_id: int, body: RunEvents, db: Db, principal: Worker) -> None:
    check_lab_of_run(db, principal, run_id)
    record(db, run_id, body.fence, body.events)


@router.post("/runs/{run_id}/console")
def run_console(run_id: int, body: ConsoleChunk, db: Db, settings: AppSettings, principal: Worker) -> ConsoleAnswer:
    check_lab_of_run(db, principal, run_id)
    return runs.add_console(db, run_id, body, settings)


@router.post("/runs/{run_id}/finish", status_code=204)
def finish_run(run_id: int, body: FinishRun, db: Db, settings: AppSettings, principal: Worker) -> None:
    check_lab_of_run(db, principal, run_id)
    run = device_sessions.finish(db, run_id, body.fence, body.result, settings)
    _wake_pipeline(db, [run.submission_id] if run.submission_id is not None else [])


# --- lookups ----------------------------------------------------------------------------------------------------


@router.post("/lookups/{lookup_id}/claim", dependencies=[Depends(check_protocol)])
def claim_lookup(lookup_id: int, body: ClaimRequest, db: Db, settings: AppSettings, _: BuildWorker) -> LookupClaim:
    job, fence = branches.claim(db, lookup_id, body.worker, settings, body.nonce)
    return LookupClaim(job=job, fence=fence, expires_in_s=settings.claim_s)


@router.post("/lookups/{lookup_id}/finish", status_code=204)
def finish_lookup(lookup_id: int, body: FinishLookup, db: Db, _: BuildWorker) -> None:
    branches.finish(db, lookup_id, body.fence, body.result)


@router.post("/thread_lookups/{lookup_id}/claim", dependencies=[Depends(check_protocol)])
def claim_thread_lookup(
    lookup_id: int, body: ClaimRequest, db: Db, settings: AppSettings, _: BuildWorker
) -> ThreadLookupClaim:
    job, fence = threads.claim(db, lookup_id, body.worker, settings, body.nonce)
    return ThreadLookupClaim(job=job, fence=fence, expires_in_s=settings.claim_s)


@router.post("/thread_lookups/{lookup_id}/finish", status_code=204)
def finish_thread_lookup(lookup_id: int, body: FinishThreadLookup, db: Db, _: BuildWorker) -> None:
    threads.finish(db, lookup_id, body.fence, body.result)


@router.post("/branch_readings/{reading_id}/claim", dependencies=[Depends(check_protocol)])
def claim_branch_reading(
    reading_id: int, body: ClaimRequest, db: Db, settings: AppSettings, _: BuildWorker
) -> BranchReadingClaim:
    job, fence = branch_readings.claim(db, reading_id, body.worker, settings, body.nonce)
    return BranchReadingClaim(job=job, fence=fence, expires_in_s=settings.claim_s)


@router.post("/branch_readings/{reading_id}/heartbeat")
def heartbeat_branch_reading(
    reading_id: int, body: Heartbeat, db: Db, settings: AppSettings, _: BuildWorker
) -> HeartbeatAnswer:
    branch_readings.extend(db, reading_id, body.fence, settings)
    return HeartbeatAnswer(expires_in_s=settings.claim_s, cancel=False)


@router.post("/branch_readings/{reading_id}/events", status_code=204)
def branch_reading_events(reading_id: int, body: ProgressEvents, db: Db, _: BuildWorker) -> None:
    branch_readings.progress(db, reading_id, body.fence, body.events)


@router.post("/branch_readings/{reading_id}/finish", status_code=204)
def finish_branch_reading(reading_id: int, body: FinishBranchReading, db: Db, _: BuildWorker) -> None:
    branch_readings.finish(db, reading_id, body.fence, body.result)


# --- heads of pull requests and branches ------------------------------------------------------------------------


@router.post("/forge_readings/{head_id}/claim", dependencies=[Depends(check_protocol)])
def claim_forge_reading(
    head_id: int, body: ClaimRequest, db: Db, settings: AppSettings, data: Data, _: BuildWorker
) -> ForgeReadingClaim:
    job, fence = heads.claim(db, head_id, body.worker, settings, data.current(), nonce=body.nonce)
    return ForgeReadingClaim(job=job, fence=fence, expires_in_s=settings.claim_s)


@router.post("/forge_readings/{head_id}/heartbeat")
def heartbeat_forge_reading(
    head_id: int, body: Heartbeat, db: Db, settings: AppSettings, _: BuildWorker
) -> HeartbeatAnswer:
    head = heads.lock(db, head_id)
    claims.extend(head, claims.check_fence(db, head, body.fence), settings.claim_s)
    return HeartbeatAnswer(expires_in_s=settings.claim_s, cancel=head.withdrawn_at is not None)


@router.post("/forge_readings/{head_id}/events", status_code=204)
def forge_reading_events(head_id: int, body: ProgressEvents, db: Db, _: BuildWorker) -> None:
    head = heads.lock(db, head_id)
    claims.check_fence(db, head, body.fence)
    for event in body.events:
        head.progress, head.progress_done, head.progress_total = event.text, event.done, event.total


@router.post("/forge_readings/{head_id}/finish", status_code=204)
def finish_forge_reading(head_id: int, body: FinishForgeReading, db: Db, settings: AppSettings, _: BuildWorker) -> None:
    heads.finish(db, head_id, body.fence, body.result, settings)


# --- commits of bisections ---------------------------------------------------------------------------------------


@router.post("/commit_lists/{list_id}/claim", dependencies=[Depends(check_protocol)])
def claim_commit_list(
    list_id: int, body: ClaimRequest, db: Db, settings: AppSettings, _: BuildWorker
) -> CommitListClaim:
    job, fence = commit_lists.claim(db, list_id, body.worker, settings, nonce=body.nonce)
    return CommitListClaim(job=job, fence=fence, expires_in_s=settings.claim_s)


@router.post("/commit_lists/{list_id}/heartbeat")
def heartbeat_commit_list(
    list_id: int, body: Heartbeat, db: Db, settings: AppSettings, _: BuildWorker
) -> HeartbeatAnswer:
    row = commit_lists.lock(db, list_id)
    claims.extend(row, claims.check_fence(db, row, body.fence), settings.claim_s)
    return HeartbeatAnswer(expires_in_s=settings.claim_s, cancel=row.cancel_requested_at is not None)


@router.post("/commit_lists/{list_id}/events", status_code=204)
def commit_list_events(list_id: int, body: ProgressEvents, db: Db, _: BuildWorker) -> None:
    row = commit_lists.lock(db, list_id)
    claims.check_fence(db, row, body.fence)
    for event in body.events:
        row.progress, row.progress_done, row.progress_total = event.text, event.done, event.total


@router.post("/commit_lists/{list_id}/finish", status_code=204)
def finish_commit_list(list_id: int, body: FinishCommitList, db: Db, settings: AppSettings, _: BuildWorker) -> None:
    commit_lists.finish(db, list_id, body.fence, body.result, settings)


# --- list reads -------------------------------------------------------------------------------------------------


@router.post("/list_reads/{read_id}/claim", dependencies=[Depends(check_protocol)])
def claim_list_read(read_id: int, body: ClaimRequest, db: Db, settings: AppSettings, _: BuildWorker) -> ListReadClaim:
    job, fence = list_reads.claim(db, read_id, body.worker, settings, body.nonce)
    return ListReadClaim(job=job, fence=fence, expires_in_s=settings.claim_s)


@router.post("/list_reads/{read_id}/heartbeat")
def heartbeat_list_read(
    read_id: int, body: Heartbeat, db: Db, settings: AppSettings, _: BuildWorker
) -> HeartbeatAnswer:
    read = list_reads.lock(db, read_id)
    claims.extend(read, claims.check_fence(db, read, body.fence), settings.claim_s)
    return HeartbeatAnswer(expires_in_s=settings.claim_s, cancel=False)


@router.post("/list_reads/{read_id}/events", status_code=204)
def list_read_events(read_id: int, body: ProgressEvents, db: Db, _: BuildWorker) -> None:
    list_reads.progress(db, read_id, body.fence, body.events)


@router.post("/list_reads/{read_id}/finish", status_code=204)
def finish_list_read(
    read_id: int, body: FinishListRead, db: Db, data: Data, settings: AppSettings, _: BuildWorker
) -> None:
    current = data.current()
    list_reads.finish(
        db,
        read_id,
        body.fence,
        body.result,
        settings=settings,
        minutes=steps_of(settings, current).minutes,
        propose=proposer(db, settings, current),
    )
    post(db, Message(TICK, None, SERVER_QUEUE))


def _wake_pipeline(db: Session, submission_ids: list[int]) -> None:
    """Send the pipeline a message once this request is committed.

    Without a submission, the message is a tick, which assigns the device that may have become free.
    """
    for submission_id in submission_ids:
        post(db, Message(ADVANCE, submission_id, SERVER_QUEUE))
    if not submission_ids:
        post(db, Message(TICK, None, SERVER_QUEUE))
