"""What workers speak: claim, heartbeat, events, console, artifacts, finish. Idempotent throughout: a worker repeats any
request whose answer it did not get."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Depends, Header, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import or_, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from wqlab_contracts.celery_names import ADVANCE, SERVER_QUEUE, TICK
from wqlab_contracts.enums import ArtifactKind, JobState
from wqlab_contracts.messages import (
    ApplyClaim,
    Artifact,
    BuildClaim,
    ClaimRequest,
    ConsoleAnswer,
    ConsoleChunk,
    FinishApply,
    FinishBuild,
    FinishRun,
    Heartbeat,
    HeartbeatAnswer,
    LavaPool,
    ProgressEvents,
    RunClaim,
    RunEvents,
)
from wqlab_contracts.messages.lookups import FinishLookup, LookupClaim
from wqlab_contracts.specs import ExternalPower

from .builds import service as builds
from .http.auth import BuildWorker, Principal, Worker, only_build_workers
from .http.deps import AppSettings, Data, Db, Store
from .http.downloads import StoredBytes
from .http.problems import ApiProblem, not_found
from .jobs import claims
from .lab import lease
from .lab import service as lab_service
from .models import Artifact as ArtifactRow
from .models import ArtifactLink, Device, Run
from .pipeline import device_sessions
from .runs import service as runs
from .runs.record import record
from .series import branches
from .storage.artifacts import ArtifactMismatch, ArtifactStore, ArtifactTooLarge
from .storage.db import Message, SessionFactory, clock, post, transaction

router = APIRouter(prefix="/api/worker/v1", tags=["worker"], include_in_schema=False)

_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_PIECE = 1 << 20


class Capacity(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    capacity: int = Field(ge=1, le=1000)
    refused: dict[str, str] | None = None
    """Device type -> why the lab has no device of it; null: the lab's bench does not say now."""
    pool: LavaPool | None = None
    """What a LAVA lab's server says of its devices."""


# --- applies ----------------------------------------------------------------------------------------------------


@router.post("/applies/{apply_id}/claim")
def claim_apply(apply_id: int, body: ClaimRequest, db: Db, settings: AppSettings, _: BuildWorker) -> ApplyClaim:
    job, fence = builds.claim_apply(db, apply_id, body.worker, settings, body.nonce)
    return ApplyClaim(job=job, fence=fence, expires_in_s=settings.claim_s)


@router.post("/applies/{apply_id}/heartbeat")
def heartbeat_apply(apply_id: int, body: Heartbeat, db: Db, settings: AppSettings, _: BuildWorker) -> HeartbeatAnswer:
    apply = builds.lock_apply(db, apply_id)
    claims.extend(apply, claims.held(db, apply, body.fence), settings.claim_s)
    return HeartbeatAnswer(expires_in_s=settings.claim_s, cancel=apply.cancel_requested_at is not None)


@router.post("/applies/{apply_id}/events", status_code=204)
def apply_events(apply_id: int, body: ProgressEvents, db: Db, _: BuildWorker) -> None:
    builds.progress_apply(db, apply_id, body.fence, body.events)


@router.post("/applies/{apply_id}/finish", status_code=204)
def finish_apply(apply_id: int, body: FinishApply, db: Db, settings: AppSettings, _: BuildWorker) -> None:
    submission_id = builds.finish_apply(db, apply_id, body.fence, body.result, settings)
    _go_on(db, [submission_id] if submission_id is not None else [])


# --- builds -----------------------------------------------------------------------------------------------------


@router.post("/builds/{build_id}/claim")
def claim_build(build_id: int, body: ClaimRequest, db: Db, settings: AppSettings, _: BuildWorker) -> BuildClaim:
    job, fence = builds.claim_build(db, build_id, body.worker, settings, body.nonce)
    return BuildClaim(job=job, fence=fence, expires_in_s=settings.claim_s)


@router.post("/builds/{build_id}/heartbeat")
def heartbeat_build(build_id: int, body: Heartbeat, db: Db, settings: AppSettings, _: BuildWorker) -> HeartbeatAnswer:
    build, _users = builds.lock_build(db, build_id)
    claims.extend(build, claims.held(db, build, body.fence), settings.claim_s)
    return HeartbeatAnswer(expires_in_s=settings.claim_s, cancel=build.cancel_requested_at is not None)


@router.post("/builds/{build_id}/events", status_code=204)
def build_events(build_id: int, body: ProgressEvents, db: Db, _: BuildWorker) -> None:
    builds.progress_build(db, build_id, body.fence, body.events)


@router.post("/builds/{build_id}/finish", status_code=204)
def finish_build(build_id: int, body: FinishBuild, db: Db, settings: AppSettings, _: BuildWorker) -> None:
    _go_on(db, builds.finish_build(db, build_id, body.fence, body.result, settings))


# --- runs -------------------------------------------------------------------------------------------------------


@router.post("/runs/{run_id}/claim")
def claim_run(run_id: int, body: ClaimRequest, db: Db, settings: AppSettings, principal: Worker) -> RunClaim:
    lab = body.lab or principal.lab
    if lab is not None:
        _check_lab(principal, lab)
    run = runs.lock_run(db, run_id, whole=True)
    if now := claims.repeated(db, run, body.nonce):
        _check_lab_of_run(db, principal, run_id)
        lease.extend(db, run, now, settings)
        job, fence, completed = runs.claimed(db, run)
    else:
        job, fence, completed = device_sessions.claim(db, run_id, body.worker, lab, settings)
        run.claim_nonce = body.nonce
    return RunClaim(job=job, fence=fence, expires_in_s=settings.lease_s, completed_blocks=completed)


@router.post("/runs/{run_id}/heartbeat")
def heartbeat_run(run_id: int, body: Heartbeat, db: Db, settings: AppSettings, principal: Worker) -> HeartbeatAnswer:
    _check_lab_of_run(db, principal, run_id)
    run = runs.lock_run(db, run_id)
    lease.extend(db, run, claims.held(db, run, body.fence), settings)
    return HeartbeatAnswer(expires_in_s=settings.lease_s, cancel=run.cancel_requested_at is not None)


@router.post("/runs/{run_id}/events", status_code=204)
def run_events(run_id: int, body: RunEvents, db: Db, principal: Worker) -> None:
    _check_lab_of_run(db, principal, run_id)
    record(db, run_id, body.fence, body.events)


@router.post("/runs/{run_id}/console")
def run_console(run_id: int, body: ConsoleChunk, db: Db, settings: AppSettings, principal: Worker) -> ConsoleAnswer:
    _check_lab_of_run(db, principal, run_id)
    return runs.add_console(db, run_id, body, settings)


@router.post("/runs/{run_id}/finish", status_code=204)
def finish_run(run_id: int, body: FinishRun, db: Db, settings: AppSettings, principal: Worker) -> None:
    _check_lab_of_run(db, principal, run_id)
    run = device_sessions.finish(db, run_id, body.fence, body.result, settings)
    _go_on(db, [run.submission_id] if run.submission_id is not None else [])


# --- lookups ----------------------------------------------------------------------------------------------------


@router.post("/lookups/{lookup_id}/claim")
def claim_lookup(lookup_id: int, body: ClaimRequest, db: Db, settings: AppSettings, _: BuildWorker) -> LookupClaim:
    job, fence = branches.claim(db, lookup_id, body.worker, settings, body.nonce)
    return LookupClaim(job=job, fence=fence, expires_in_s=settings.claim_s)


@router.post("/lookups/{lookup_id}/finish", status_code=204)
def finish_lookup(lookup_id: int, body: FinishLookup, db: Db, _: BuildWorker) -> None:
    branches.finish(db, lookup_id, body.fence, body.result)


# --- labs -------------------------------------------------------------------------------------------------------


@router.get("/labs/{lab}/leases")
def list_leases(lab: str, db: Db, principal: Worker) -> dict[str, Any]:
    _check_lab(principal, lab)
    return {"leases": lab_service.live_leases(db, lab)}


@router.get("/labs/{lab}/power")
def list_power(lab: str, data: Data, principal: Worker) -> dict[str, dict[str, ExternalPower]]:
    _check_lab(principal, lab)
    units = [unit for each in data.current().device_types.values() for unit in each.units]
    return {"power": {unit.name: unit.power for unit in units if unit.power and unit.lab == lab}}


@router.post("/labs/{lab}/capacity", status_code=204)
def publish_capacity(lab: str, body: Capacity, db: Db, principal: Worker) -> None:
    _check_lab(principal, lab)
    lab_service.publish_capacity(db, lab, body.capacity, body.pool)
    if body.refused is not None:
        lab_service.publish_refused(db, lab, body.refused)


def _check_lab(principal: Principal, lab: str) -> None:
    if principal.lab is not None and principal.lab != lab:
        raise ApiProblem(403, f"this token is for lab {principal.lab}, not {lab}")


def _check_lab_of_run(db: Session, principal: Principal, run_id: int) -> None:
    """Raises ApiProblem 403 for a run on another lab's device. One that has no device has no holder either, and its
    fence refuses everybody."""
    lab = db.scalar(select(Device.lab).join(Run, Run.device_name == Device.name).where(Run.id == run_id))
    if lab is not None:
        _check_lab(principal, lab)


def _go_on(db: Session, submission_ids: list[int]) -> None:
    """Wakes the pipeline once this request is committed. The tick is for the device that may have come free, and for
    what belongs to no submission."""
    for submission_id in submission_ids:
        post(db, Message(ADVANCE, submission_id, SERVER_QUEUE))
    if not submission_ids:
        post(db, Message(TICK, None, SERVER_QUEUE))


# --- artifacts --------------------------------------------------------------------------------------------------


class _FenceHeaders(BaseModel):
    """Which claimed job the upload belongs to."""

    x_fence_job: str = Field(pattern=r"^(applies|builds|runs)/[0-9]{1,9}$")
    x_fence: int


@dataclass(frozen=True)
class _Claim:
    """What an uploader says that it holds; `_link` checks it."""

    principal: Principal
    what: str
    job_id: int
    fence: int


def _claim(principal: Worker, headers: Annotated[_FenceHeaders, Header()]) -> _Claim:
    what, _, number = headers.x_fence_job.partition("/")
    if what != "runs":
        only_build_workers(principal)
    return _Claim(principal, what, int(number), headers.x_fence)


class _Label(BaseModel):
    kind: ArtifactKind
    name: str = Field(min_length=1, max_length=200)


@router.put("/artifacts/{sha256}")
async def put_artifact(
    sha256: str,
    request: Request,
    store: Store,
    claim: Annotated[_Claim, Depends(_claim)],
    label: Annotated[_Label, Query()],
) -> Artifact:
    """Streams bytes into the store; hashed here again, whatever the worker says. Refused for a job not held now."""
    _check_sha256(sha256)
    factory: SessionFactory = request.app.state.sessions
    await to_thread.run_sync(_link, factory, claim, None)
    size = await _receive(store, sha256, request)
    artifact = Artifact(sha256=sha256, size=size, kind=label.kind, name=label.name)
    await to_thread.run_sync(_link, factory, claim, artifact)
    return artifact


@router.api_route("/artifacts/{sha256}", methods=["GET", "HEAD"])
def get_artifact(sha256: str, db: Db, store: Store, principal: Worker) -> Response:
    """Whole or by range, so that a download goes on where it was cut off."""
    _check_sha256(sha256)
    if principal.lab is not None:
        _check_needed(db, principal.lab, sha256)
    try:
        size = store.size(sha256)
    except FileNotFoundError:
        raise not_found("artifact", sha256) from None
    return StoredBytes(store, sha256, size, media_type="application/octet-stream")


def _check_needed(db: Session, lab: str, sha256: str) -> None:
    """Raises ApiProblem 403 unless a run that the lab holds now boots a kernel whose build made these bytes: a lab sees
    no series and no kernel but those that it is to measure."""
    wanted = (
        select(ArtifactLink.id)
        .join(Run, or_(Run.baseline_build_id == ArtifactLink.build_id, Run.candidate_build_id == ArtifactLink.build_id))
        .join(Device, Device.name == Run.device_name)
        .where(ArtifactLink.sha256 == sha256, Device.lab == lab, Run.state == JobState.RUNNING)
    )
    if db.scalar(wanted.limit(1)) is None:
        raise ApiProblem(403, f"no run that lab {lab} holds now needs artifact {sha256[:12]}")


def _check_sha256(sha256: str) -> None:
    if not _SHA256.match(sha256):
        raise ApiProblem(422, f"{sha256[:80]!r} is not a SHA-256 in lower-case hexadecimal")


async def _receive(store: ArtifactStore, sha256: str, request: Request) -> int:
    """Bytes of the body, stored. Raises ApiProblem 413 or 422; then nothing is kept."""
    try:
        with store.writer(sha256) as writer:
            async for piece in _pieces(request):
                await to_thread.run_sync(writer.write, piece)
            return await to_thread.run_sync(writer.commit)
    except ArtifactTooLarge as error:
        raise ApiProblem(413, str(error)) from error
    except ArtifactMismatch as error:
        raise ApiProblem(422, str(error), slug="hash-mismatch") from error


async def _pieces(request: Request) -> AsyncIterator[bytes]:
    """The body in pieces large enough to be worth a thread each."""
    gathered = bytearray()
    async for chunk in request.stream():
        gathered += chunk
        if len(gathered) >= _PIECE:
            yield bytes(gathered)
            gathered.clear()
    if gathered:
        yield bytes(gathered)


def _link(factory: SessionFactory, claim: _Claim, artifact: Artifact | None) -> None:
    """Checks lab and fence and, once the bytes are stored, notes whose artifact they are."""
    what, job_id = claim.what, claim.job_id
    with transaction(factory) as session:
        if what == "applies":
            job: claims.Job = builds.lock_apply(session, job_id)
        elif what == "builds":
            job, _users = builds.lock_build(session, job_id)
        else:
            _check_lab_of_run(session, claim.principal, job_id)
            job = runs.lock_run(session, job_id)
        claims.held(session, job, claim.fence)
        if artifact is None:
            return
        session.execute(
            insert(ArtifactRow)
            .values(sha256=artifact.sha256, size=artifact.size, created_at=clock(session))
            .on_conflict_do_nothing()
        )
        column = {"applies": "apply_id", "builds": "build_id", "runs": "run_id"}[what]
        session.execute(
            insert(ArtifactLink)
            .values(sha256=artifact.sha256, kind=artifact.kind, name=artifact.name, **{column: job_id})
            .on_conflict_do_update(
                index_elements=["apply_id", "build_id", "run_id", "kind", "name"], set_={"sha256": artifact.sha256}
            )
        )
