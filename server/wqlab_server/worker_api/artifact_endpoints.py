"""Endpoints to upload and download artifacts."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated

from anyio import to_thread
from fastapi import APIRouter, Depends, Header, Query, Request, Response
from pydantic import BaseModel, Field
from sqlalchemy import func, or_, select, type_coerce
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlalchemy.orm import Session

from wqlab_contracts.enums import ArtifactKind, JobKind, JobState
from wqlab_contracts.messages import Artifact

from ..http.auth import Principal, Worker, only_build_workers
from ..http.deps import Db, Store
from ..http.downloads import StoredBytes
from ..http.problems import ApiProblem, not_found
from ..jobs import claims
from ..jobs.protocol import Kinds
from ..models import Artifact as ArtifactRow
from ..models import ArtifactLink, Device, Job, Run
from ..runs import limits as run_limits
from ..storage.artifacts import ArtifactMismatch, ArtifactStore, ArtifactTooLarge, StoreUnavailable
from ..storage.db import SessionFactory, clock, transaction
from .lab_scope import check_lab_of_run

router = APIRouter()

_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_CHUNK_BYTES = 1 << 20


class _FenceHeaders(BaseModel):
    """Headers that name the claimed job to which an upload belongs, and its fence."""

    x_job: int = Field(ge=1)
    x_fence: int


@dataclass(frozen=True)
class _Claim:
    """Job and fence that a worker sends with an upload. `_link` verifies that the worker holds this job."""

    principal: Principal
    job_id: int
    fence: int
    kinds: Kinds


def _claim(request: Request, principal: Worker, headers: Annotated[_FenceHeaders, Header()]) -> _Claim:
    return _Claim(principal, headers.x_job, headers.x_fence, request.app.state.kinds)


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
    """Store an artifact of a claimed job. The server computes the hash again and refuses a body that does not match,
    and an upload for a job whose claim the worker does not hold."""
    _check_sha256(sha256)
    factory: SessionFactory = request.app.state.sessions
    limit = await to_thread.run_sync(_size_limit, factory, claim, label)
    size = await _receive(store, sha256, request, limit)
    artifact = Artifact(sha256=sha256, size=size, kind=label.kind, name=label.name)
    await to_thread.run_sync(_link, factory, store, claim, artifact)
    return artifact


@router.api_route("/artifacts/{sha256}", methods=["GET", "HEAD"])
def get_artifact(sha256: str, db: Db, store: Store, principal: Worker) -> Response:
    """Download an artifact, whole or by range, so that an interrupted download can be resumed."""
    _check_sha256(sha256)
    if principal.lab is not None:
        _check_needed(db, principal.lab, sha256)
    try:
        size = store.size(sha256)
    except FileNotFoundError:
        raise not_found("artifact", sha256) from None
    return StoredBytes(store, sha256, size, media_type="application/octet-stream")


def _check_needed(db: Session, lab: str, sha256: str) -> None:
    """Raise ApiProblem 403 unless a running run of the lab needs the artifact.

    A lab can read only the kernels that it has to measure now.
    """
    kernels = (Run.baseline_build_id, Run.candidate_build_id)
    step = func.jsonb_build_array(func.jsonb_build_object("build_id", ArtifactLink.job_id))
    of_walk = type_coerce(Run.walk, JSONB).contains(step)
    needed = (
        select(ArtifactLink.id)
        .join(Run, or_(of_walk, *(build_id == ArtifactLink.job_id for build_id in kernels)))
        .join(Device, Device.name == Run.device_name)
        .where(ArtifactLink.sha256 == sha256, Device.lab == lab, Run.state == JobState.RUNNING)
    )
    if db.scalar(needed.limit(1)) is None:
        raise ApiProblem(403, f"no running run of lab {lab} needs artifact {sha256[:12]}")


def _check_sha256(sha256: str) -> None:
    if not _SHA256.match(sha256):
        raise ApiProblem(422, f"{sha256[:80]!r} is not a SHA-256 in lower-case hexadecimal")


async def _receive(store: ArtifactStore, sha256: str, request: Request, limit: int | None) -> int:
    """Store the request's body, of at most `limit` bytes, and return its size in bytes.

    Raises ApiProblem 413 if it is too large and 422 if its hash is not `sha256`; nothing is stored then.
    """
    received = 0
    try:
        with store.writer(sha256) as writer:
            async for chunk in _chunks(request):
                received += len(chunk)
                if limit is not None and received > limit:
                    raise ApiProblem(413, f"this artifact of a run may have at most {limit} bytes")
                await to_thread.run_sync(writer.write, chunk)
            return await to_thread.run_sync(writer.commit)
    except ArtifactTooLarge as error:
        raise ApiProblem(413, str(error)) from error
    except ArtifactMismatch as error:
        raise ApiProblem(422, str(error), slug="hash-mismatch") from error


async def _chunks(request: Request) -> AsyncIterator[bytes]:
    """Yield the body in chunks of at least _CHUNK_BYTES, since each is written in a thread."""
    buffer = bytearray()
    async for received in request.stream():
        buffer += received
        if len(buffer) >= _CHUNK_BYTES:
            yield bytes(buffer)
            buffer.clear()
    if buffer:
        yield bytes(buffer)


def _check_claim(session: Session, claim: _Claim) -> Job:
    """Lock and return the claimed job. Raises ApiProblem 403 for another lab's run, StaleFence for a claim not held."""
    kind = session.scalar(select(Job.kind).where(Job.id == claim.job_id))
    if kind is None:
        raise not_found("job", claim.job_id)
    if kind is JobKind.RUN:
        check_lab_of_run(session, claim.principal, claim.job_id)
    else:
        only_build_workers(claim.principal)
    job: Job = claim.kinds[kind].lock(session, claim.job_id)
    claims.check_fence(session, job, claim.fence)
    return job


def _size_limit(factory: SessionFactory, claim: _Claim, label: _Label) -> int | None:
    """Check the claim and return the largest size of its artifact in bytes; None: that of any artifact.

    Raises ApiProblem 403, 409 or 422 if the claim is not held or its job may not have another such artifact.
    """
    with transaction(factory) as session:
        job = _check_claim(session, claim)
        return run_limits.artifact_limit(session, job, label.kind) if isinstance(job, Run) else None


def _link(factory: SessionFactory, store: ArtifactStore, claim: _Claim, artifact: Artifact) -> None:
    """Check the claim again, as `_check_claim` does, and link the artifact to its job.

    Raises StoreUnavailable if the bytes are gone.
    """
    with transaction(factory) as session:
        job = _check_claim(session, claim)
        session.execute(
            insert(ArtifactRow)
            .values(sha256=artifact.sha256, size=artifact.size, created_at=clock(session))
            .on_conflict_do_update(index_elements=["sha256"], set_={"deleted_at": None, "stored": True})
        )
        # The row is locked now, so retention cannot delete the bytes any more; it may have done so before.
        if not store.has(artifact.sha256):
            raise StoreUnavailable(f"retention deleted {artifact.name} while it was uploaded; send it again")
        session.execute(
            insert(ArtifactLink)
            .values(sha256=artifact.sha256, kind=artifact.kind, name=artifact.name, job_id=job.id)
            .on_conflict_do_update(index_elements=["job_id", "kind", "name"], set_={"sha256": artifact.sha256})
        )
