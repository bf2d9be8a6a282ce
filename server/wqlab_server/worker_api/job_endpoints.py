"""Endpoints to claim jobs, send heartbeats, events and consoles, and finish them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from sqlalchemy import select

from wqlab_contracts.enums import JobKind
from wqlab_contracts.messages import (
    ClaimRequest,
    ConsoleAnswer,
    ConsoleChunk,
    Heartbeat,
    HeartbeatAnswer,
    JobEvents,
)
from wqlab_contracts.messages.jobs import Claim, FinishJob

from ..http.auth import Worker, only_build_workers
from ..http.deps import AppSettings, Data, Db
from ..jobs import protocol
from ..jobs.kinds import Context
from ..jobs.protocol import Kinds
from ..models import Job
from ..runs import service as runs
from .lab_scope import check_lab, check_lab_of_run
from .protocol import check_protocol

router = APIRouter(prefix="/jobs/{job_id}")


def _context(db: Db, settings: AppSettings, data: Data) -> Context:
    return Context(db, settings, data)


def _kinds(request: Request) -> Kinds:
    found: Kinds = request.app.state.kinds
    return found


def _check_kind(job_id: int, db: Db, principal: Worker) -> JobKind | None:
    """Raise ApiProblem 403 if a lab's worker asks for a job that is not a run; return the job's kind."""
    kind = db.scalar(select(Job.kind).where(Job.id == job_id))
    if kind is not JobKind.RUN:
        only_build_workers(principal)
    return kind


def _check_holder(
    job_id: int, db: Db, principal: Worker, kind: Annotated[JobKind | None, Depends(_check_kind)]
) -> None:
    """Raise ApiProblem 403 if the worker's token is for another lab than that of the run."""
    if kind is JobKind.RUN:
        check_lab_of_run(db, principal, job_id)


JobContext = Annotated[Context, Depends(_context)]
JobKinds = Annotated[Kinds, Depends(_kinds)]
Allowed = Depends(_check_holder)


@router.post("/claim", dependencies=[Depends(check_protocol), Depends(_check_kind)])
def claim_job(job_id: int, body: ClaimRequest, context: JobContext, kinds: JobKinds, principal: Worker) -> Claim:
    """Claim a job. A run whose device is in another lab meanwhile cannot be claimed (409)."""
    if body.lab is not None:
        check_lab(principal, body.lab)
    request = body.model_copy(update={"lab": body.lab or principal.lab})
    return protocol.claim(context, kinds, job_id, request)


@router.post("/heartbeat", dependencies=[Allowed])
def heartbeat(job_id: int, body: Heartbeat, context: JobContext, kinds: JobKinds) -> HeartbeatAnswer:
    return protocol.heartbeat(context, kinds, job_id, body)


@router.post("/events", status_code=204, dependencies=[Allowed])
def add_events(job_id: int, body: JobEvents, context: JobContext, kinds: JobKinds) -> None:
    protocol.record(context, kinds, job_id, body)


@router.post("/console", dependencies=[Allowed])
def add_console(job_id: int, body: ConsoleChunk, context: JobContext) -> ConsoleAnswer:
    return runs.add_console(context.session, job_id, body, context.settings)


@router.post("/finish", status_code=204, dependencies=[Allowed])
def finish_job(job_id: int, body: FinishJob, context: JobContext, kinds: JobKinds) -> None:
    protocol.finish(context, kinds, job_id, body)
