"""The only HTTP client of the server: the claim protocol, artifacts, leases; typed by the contracts.

Requests are repeated with back-off on transport errors and 5xx answers, because every one of them is idempotent on
the server. A 409 is never repeated: the fence is stale, somebody else holds the job.
"""

from __future__ import annotations

import base64
import json
import random
import secrets
import ssl
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import httpx
import structlog
from pydantic import BaseModel, ConfigDict, TypeAdapter

from wqlab_contracts.enums import ArtifactKind
from wqlab_contracts.messages import (
    ApplyClaim,
    ApplyResult,
    Artifact,
    BootKey,
    BuildClaim,
    BuildResult,
    ClaimRequest,
    ConsoleAnswer,
    ConsoleChunk,
    FinishApply,
    FinishBuild,
    FinishRun,
    Heartbeat,
    HeartbeatAnswer,
    LavaPool,
    Message,
    Progress,
    ProgressEvents,
    RunClaim,
    RunEvent,
    RunEvents,
    RunResult,
)
from wqlab_contracts.messages.lookups import FinishLookup, LookupClaim, LookupResult
from wqlab_contracts.specs import ExternalPower

from .downloads import CHUNK, ArtifactCorrupt, Download, sha256_of

log = structlog.get_logger()

__all__ = ["ArtifactCorrupt", "JobRef", "Lease", "Server", "ServerRefused", "StaleFence", "sha256_of"]

JobKind = Literal["applies", "builds", "runs", "lookups"]
ClaimT = TypeVar("ClaimT", ApplyClaim, BuildClaim, RunClaim, LookupClaim)


class StaleFence(Exception):
    """409: the claim is no longer ours (or never was)."""


class ServerRefused(Exception):
    """A 4xx answer other than 409: asking again would not help."""


@dataclass(frozen=True)
class JobRef:
    """A claimed job; `fence` makes every later request checkable."""

    kind: JobKind
    id: int
    fence: int

    def __str__(self) -> str:
        return f"{self.kind}/{self.id}"


class Lease(BaseModel):
    """A live device lease, as the server lists it for the reaper."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    device: str
    run_id: int
    fence: int
    holder: str
    expires_in_s: float


class Server:
    """Thread-safe; `patience_s` bounds how long one call keeps trying before its last error is raised.

    `interrupted`, when set, ends every wait between two tries.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        worker: str,
        lab: str,
        ca_file: Path | None = None,
        patience_s: float = 120.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._worker = worker
        self._lab = lab
        self._patience_s = patience_s
        self._http = httpx.Client(
            base_url=url.rstrip("/") + "/api/worker/v1/",
            headers={"Authorization": f"Bearer {token}"},
            timeout=httpx.Timeout(30.0, connect=5.0),
            verify=True if ca_file is None else ssl.create_default_context(cafile=ca_file),
            transport=transport,
        )
        self.interrupted = threading.Event()

    def close(self) -> None:
        self._http.close()

    # --- claims -------------------------------------------------------------------------------------------------

    def claim_apply(self, id_: int) -> ApplyClaim | None:
        return self._claim("applies", id_, ApplyClaim)

    def claim_build(self, id_: int) -> BuildClaim | None:
        return self._claim("builds", id_, BuildClaim)

    def claim_run(self, id_: int) -> RunClaim | None:
        return self._claim("runs", id_, RunClaim)

    def claim_lookup(self, id_: int) -> LookupClaim | None:
        return self._claim("lookups", id_, LookupClaim)

    def _claim(self, kind: JobKind, id_: int, model: type[ClaimT]) -> ClaimT | None:
        """None when somebody else has it, or nothing is left to do (409).

        The nonce makes a repetition safe: the server may have given us the job and lost the answer.
        """
        request = ClaimRequest(worker=self._worker, lab=self._lab, nonce=secrets.token_hex(8))
        try:
            answer = self._post(f"{kind}/{id_}/claim", request)
        except StaleFence:
            return None
        return model.model_validate_json(answer.content)

    def heartbeat(self, job: JobRef, timeout_s: float = 10.0) -> HeartbeatAnswer:
        """One try only. Raises StaleFence, httpx.TransportError, ServerRefused."""
        answer = self._post(
            f"{job.kind}/{job.id}/heartbeat", Heartbeat(fence=job.fence), patience_s=0, timeout_s=timeout_s
        )
        return HeartbeatAnswer.model_validate_json(answer.content)

    def finish_apply(self, job: JobRef, result: ApplyResult) -> None:
        self._post(f"applies/{job.id}/finish", FinishApply(fence=job.fence, result=result))

    def finish_build(self, job: JobRef, result: BuildResult) -> None:
        self._post(f"builds/{job.id}/finish", FinishBuild(fence=job.fence, result=result))

    def finish_run(self, job: JobRef, result: RunResult) -> None:
        self._post(f"runs/{job.id}/finish", FinishRun(fence=job.fence, result=result))

    def finish_lookup(self, job: JobRef, result: LookupResult) -> None:
        self._post(f"lookups/{job.id}/finish", FinishLookup(fence=job.fence, result=result))

    # --- events -------------------------------------------------------------------------------------------------

    def send_progress(self, job: JobRef, events: Sequence[Progress]) -> None:
        """One try only: progress is for people, the next one replaces it."""
        self._post(f"{job.kind}/{job.id}/events", ProgressEvents(fence=job.fence, events=list(events)), patience_s=0)

    def send_events(self, job: JobRef, events: Sequence[RunEvent]) -> None:
        """One try only: the outbox repeats. Raises StaleFence, httpx.TransportError, ServerRefused."""
        self._post(f"runs/{job.id}/events", RunEvents(fence=job.fence, events=list(events)), patience_s=0)

    def send_console(self, job: JobRef, boot: BootKey, offset: int, data: bytes) -> ConsoleAnswer:
        """One try only: the outbox repeats."""
        chunk = ConsoleChunk(fence=job.fence, boot=boot, offset=offset, data=base64.b64encode(data).decode())
        answer = self._post(f"runs/{job.id}/console", chunk, patience_s=0)
        return ConsoleAnswer.model_validate_json(answer.content)

    # --- artifacts ----------------------------------------------------------------------------------------------

    def upload(self, job: JobRef, path: Path, kind: ArtifactKind, name: str) -> Artifact:
        """Streams a file to the server, unless it has those bytes already for this job."""
        artifact = Artifact(sha256=sha256_of(path), size=path.stat().st_size, kind=kind, name=name)

        def body() -> Iterator[bytes]:
            with path.open("rb") as file:
                while piece := file.read(CHUNK):
                    yield piece

        self._send(
            "PUT",
            f"artifacts/{artifact.sha256}",
            params={"kind": kind.value, "name": name},
            headers={
                "X-Fence-Job": str(job),
                "X-Fence": str(job.fence),
                "Content-Length": str(artifact.size),
                "Content-Type": "application/octet-stream",
            },
            body=body,
            timeout_s=300.0,
        )
        return artifact

    def fetch(self, artifact: Artifact, folder: Path) -> Path:
        """The artifact as `folder/<sha256>`, hashed before every use; downloaded when absent or damaged. What has come
        of a download that was cut off is not asked for again, now or in a later call.

        Raises ArtifactCorrupt when the server's bytes have another hash.
        """
        download = Download(artifact, folder)
        if download.there():
            return download.target
        deadline, delay = time.monotonic() + self._patience_s, 0.5
        while True:
            before = download.come()
            try:
                download.run(self._http, f"artifacts/{artifact.sha256}", _raise_for, self.interrupted.wait)
                return download.target
            except (httpx.TransportError, _ServerError) as error:
                if download.come() > before:  # a bad line that still moves is not given up
                    deadline, delay = time.monotonic() + self._patience_s, 0.5
                if time.monotonic() + delay > deadline or self.interrupted.wait(delay):
                    raise
                log.warning("download goes on", artifact=artifact.name, come=download.come(), error=repr(error))
                delay = min(delay * 2, 8.0)

    # --- leases -------------------------------------------------------------------------------------------------

    def leases(self, lab: str) -> list[Lease]:
        """The live leases of a lab's devices."""
        answer = self._send("GET", f"labs/{lab}/leases")
        return TypeAdapter(dict[Literal["leases"], list[Lease]]).validate_json(answer.content)["leases"]

    def power(self, lab: str) -> dict[str, ExternalPower]:
        """By unit, how those of a lab's devices are switched that have commands of their own for it."""
        answer = self._send("GET", f"labs/{lab}/power")
        return TypeAdapter(dict[Literal["power"], dict[str, ExternalPower]]).validate_json(answer.content)["power"]

    def publish_capacity(
        self, lab: str, capacity: int, refused: Mapping[str, str] | None, pool: LavaPool | None = None
    ) -> None:
        """How many devices the lab's workers can drive at once; of which device types it has none, and why; what its
        LAVA says of its devices."""
        told = {"capacity": capacity, "refused": refused, "pool": pool.model_dump() if pool else None}
        content = json.dumps(told).encode()
        headers = {"Content-Type": "application/json"}
        self._send("POST", f"labs/{lab}/capacity", headers=headers, body=lambda: content)

    # --- one request --------------------------------------------------------------------------------------------

    def _post(
        self, path: str, message: Message, patience_s: float | None = None, timeout_s: float | None = None
    ) -> httpx.Response:
        content = message.model_dump_json().encode()
        return self._send(
            "POST",
            path,
            headers={"Content-Type": "application/json"},
            body=lambda: content,
            patience_s=patience_s,
            timeout_s=timeout_s,
        )

    def _send(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        params: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
        patience_s: float | None = None,
        timeout_s: float | None = None,
    ) -> httpx.Response:
        deadline = time.monotonic() + (self._patience_s if patience_s is None else patience_s)
        delay = 0.25
        while True:
            try:
                answer = self._http.request(
                    method,
                    path,
                    params=params,
                    headers=headers,
                    content=body() if body else None,
                    timeout=httpx.USE_CLIENT_DEFAULT if timeout_s is None else timeout_s,
                )
                _raise_for(answer)
                return answer
            except (httpx.TransportError, _ServerError) as error:
                pause = delay * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, not a secret
                if time.monotonic() + pause > deadline or self.interrupted.wait(pause):
                    raise
                log.warning("request repeated", method=method, path=path, error=repr(error))
                delay = min(delay * 2, 8.0)


class _ServerError(httpx.TransportError):
    """A 5xx or 429 answer: for the caller the same as no answer."""


def _raise_for(answer: httpx.Response) -> None:
    if answer.status_code == 409:
        raise StaleFence(_detail(answer))
    if answer.status_code >= 500 or answer.status_code == 429:
        raise _ServerError(f"{answer.status_code} {_detail(answer)}")
    if answer.status_code >= 400:
        raise ServerRefused(f"{answer.request.method} {answer.request.url.path}: {_detail(answer)}")


def _detail(answer: httpx.Response) -> str:
    try:
        problem = answer.json()
        return str(problem.get("detail") or problem.get("title") or answer.text[:500])
    except (ValueError, AttributeError):
        return answer.text[:500]
