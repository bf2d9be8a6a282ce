"""HTTP client of the server's worker API: claims, events, artifacts and leases.

Requests are repeated with back-off after transport errors and 5xx responses, because each of them is idempotent on the
server. They are not repeated after a 409, which means that the fence is stale and another worker holds the job.
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

from wqlab_contracts.enums import ArtifactKind, ErrorKind
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
    Failure,
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
    protocol,
)
from wqlab_contracts.messages.commit_lists import CommitListClaim, CommitListResult, FinishCommitList
from wqlab_contracts.messages.device_trials import (
    FinishTrial,
    TrialClaim,
    TrialProgress,
    TrialResult,
    TrialStepResult,
)
from wqlab_contracts.messages.forge_readings import FinishForgeReading, ForgeReadingClaim, ForgeReadingResult
from wqlab_contracts.messages.list_reads import FinishListRead, ListReadClaim, ListReadResult
from wqlab_contracts.messages.lookups import FinishLookup, LookupClaim, LookupResult
from wqlab_contracts.messages.shared_boots import (
    BootHostAnswer,
    BootHostRequest,
    FinishSharedBoot,
    ShareAnswer,
    ShareBoots,
    SharedBootClaim,
    SharedBootResult,
)
from wqlab_contracts.messages.storage import StorageUse
from wqlab_contracts.messages.thread_lookups import FinishThreadLookup, ThreadLookupClaim, ThreadLookupResult
from wqlab_contracts.specs import CpuArch, ExternalPower

from .downloads import CHUNK, ArtifactCorrupt, Download, Interrupted, sha256_of

log = structlog.get_logger()

__all__ = ["ArtifactCorrupt", "JobRef", "Lease", "Server", "ServerFull", "ServerRefused", "StaleFence", "sha256_of"]

JobKind = Literal[
    "applies",
    "builds",
    "runs",
    "lookups",
    "thread_lookups",
    "forge_readings",
    "commit_lists",
    "list_reads",
    "boots",
    "device_trials",
]
ClaimT = TypeVar(
    "ClaimT",
    ApplyClaim,
    BuildClaim,
    RunClaim,
    LookupClaim,
    ThreadLookupClaim,
    ForgeReadingClaim,
    CommitListClaim,
    ListReadClaim,
    TrialClaim,
)


class StaleFence(Exception):
    """The server answered 409: this worker does not hold the claim (any more)."""


class ServerRefused(Exception):
    """The server answered with a 4xx status other than 409; repeating the request would not help."""


@dataclass(frozen=True)
class JobRef:
    """A claimed job. Later requests carry `fence`, with which the server checks the claim."""

    kind: JobKind
    id: int
    fence: int

    def __str__(self) -> str:
        return f"{self.kind}/{self.id}"


class Lease(BaseModel):
    """A live lease of a device, from the server's list for the reaper."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    device: str
    run_id: int
    fence: int
    holder: str
    expires_in_s: float


class Server:
    """Client of one server. Thread-safe.

    Each call is repeated for at most `retry_s` seconds before its last error is raised. Setting `interrupted` ends
    every wait between two attempts.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        worker: str,
        lab: str,
        ca_file: Path | None = None,
        retry_s: float = 120.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._worker = worker
        self._lab = lab
        self._retry_s = retry_s
        self._http = httpx.Client(
            base_url=url.rstrip("/") + "/api/worker/v1/",
            headers={"Authorization": f"Bearer {token}", **protocol.headers()},
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

    def claim_thread_lookup(self, id_: int) -> ThreadLookupClaim | None:
        return self._claim("thread_lookups", id_, ThreadLookupClaim)

    def claim_forge_reading(self, id_: int) -> ForgeReadingClaim | None:
        return self._claim("forge_readings", id_, ForgeReadingClaim)

    def claim_commit_list(self, id_: int) -> CommitListClaim | None:
        return self._claim("commit_lists", id_, CommitListClaim)

    def claim_list_read(self, id_: int) -> ListReadClaim | None:
        return self._claim("list_reads", id_, ListReadClaim)

    def claim_trial(self, id_: int) -> TrialClaim | None:
        return self._claim("device_trials", id_, TrialClaim)

    def _claim(self, kind: JobKind, id_: int, model: type[ClaimT]) -> ClaimT | None:
        """Claim a job. Return None if another worker has it or there is nothing left to do (409).

        The nonce makes repetition safe if the server granted the claim but its response was lost.
        """
        request = ClaimRequest(worker=self._worker, lab=self._lab, nonce=secrets.token_hex(8))
        try:
            response = self._post(f"{kind}/{id_}/claim", request)
        except StaleFence:
            return None
        return model.model_validate_json(response.content)

    def heartbeat(self, job: JobRef, timeout_s: float = 10.0) -> HeartbeatAnswer:
        """Send a heartbeat, without repetition. Raises StaleFence, httpx.TransportError, ServerRefused."""
        response = self._post(
            f"{job.kind}/{job.id}/heartbeat", Heartbeat(fence=job.fence), retry_s=0, timeout_s=timeout_s
        )
        return HeartbeatAnswer.model_validate_json(response.content)

    def finish_apply(self, job: JobRef, result: ApplyResult) -> None:
        self._post(f"applies/{job.id}/finish", FinishApply(fence=job.fence, result=result))

    def finish_build(self, job: JobRef, result: BuildResult) -> None:
        self._post(f"builds/{job.id}/finish", FinishBuild(fence=job.fence, result=result))

    def finish_run(self, job: JobRef, result: RunResult) -> None:
        self._post(f"runs/{job.id}/finish", FinishRun(fence=job.fence, result=result))

    def finish_lookup(self, job: JobRef, result: LookupResult) -> None:
        self._post(f"lookups/{job.id}/finish", FinishLookup(fence=job.fence, result=result))

    def finish_thread_lookup(self, job: JobRef, result: ThreadLookupResult) -> None:
        self._post(f"thread_lookups/{job.id}/finish", FinishThreadLookup(fence=job.fence, result=result))

    def finish_forge_reading(self, job: JobRef, result: ForgeReadingResult) -> None:
        self._post(f"forge_readings/{job.id}/finish", FinishForgeReading(fence=job.fence, result=result))

    def finish_commit_list(self, job: JobRef, result: CommitListResult) -> None:
        self._post(f"commit_lists/{job.id}/finish", FinishCommitList(fence=job.fence, result=result))

    def finish_list_read(self, job: JobRef, result: ListReadResult) -> None:
        self._post(f"list_reads/{job.id}/finish", FinishListRead(fence=job.fence, result=result))

    def finish_trial(self, job: JobRef, result: TrialResult) -> None:
        self._post(f"device_trials/{job.id}/finish", FinishTrial(fence=job.fence, result=result))

    # --- events -------------------------------------------------------------------------------------------------

    def send_progress(self, job: JobRef, events: Sequence[Progress]) -> None:
        """Send progress. A message that fails is not sent again: the next one replaces it."""
        self._post(f"{job.kind}/{job.id}/events", ProgressEvents(fence=job.fence, events=list(events)), retry_s=0)

    def send_trial_progress(self, job: JobRef, doing: str, steps: Sequence[TrialStepResult]) -> None:
        """Send all steps of a trial so far. A message that fails is not sent again: the next one has the same steps."""
        body = TrialProgress(fence=job.fence, doing=doing, steps=list(steps))
        self._post(f"device_trials/{job.id}/progress", body, retry_s=0)

    def send_events(self, job: JobRef, events: Sequence[RunEvent]) -> None:
        """Send events once; if that fails, the event sink sends them again.

        Raises StaleFence, httpx.TransportError, ServerRefused.
        """
        self._post(f"runs/{job.id}/events", RunEvents(fence=job.fence, events=list(events)), retry_s=0)

    def send_console(self, job: JobRef, boot: BootKey, offset: int, data: bytes) -> ConsoleAnswer:
        """Send console output, without repetition, because the event sink repeats."""
        chunk = ConsoleChunk(fence=job.fence, boot=boot, offset=offset, data=base64.b64encode(data).decode())
        response = self._post(f"runs/{job.id}/console", chunk, retry_s=0)
        return ConsoleAnswer.model_validate_json(response.content)

    # --- shared boots -------------------------------------------------------------------------------------------

    def share_boots(self, job: JobRef, body: ShareBoots) -> ShareAnswer:
        return ShareAnswer.model_validate_json(self._post(f"runs/{job.id}/boots", body).content)

    def claim_boot(self, host: str, emulators: Mapping[CpuArch, str], memory_mib: int) -> SharedBootClaim | None:
        """Ask for a boot of a run on another host. Return None if there is none."""
        request = BootHostRequest(
            worker=self._worker, host=host, emulators=dict(emulators), memory_mib=memory_mib, nonce=secrets.token_hex(8)
        )
        return BootHostAnswer.model_validate_json(self._post("boots/claim", request).content).claim

    def finish_boot(self, job: JobRef, result: SharedBootResult) -> None:
        self._post(f"boots/{job.id}/finish", FinishSharedBoot(fence=job.fence, result=result))

    # --- artifacts ----------------------------------------------------------------------------------------------

    def upload(self, job: JobRef, path: Path, kind: ArtifactKind, name: str) -> Artifact:
        """Upload a file to the server and return its description."""
        artifact = Artifact(sha256=sha256_of(path), size=path.stat().st_size, kind=kind, name=name)

        def body() -> Iterator[bytes]:
            with path.open("rb") as file:
                while piece := file.read(CHUNK):
                    if self.interrupted.is_set():
                        raise Interrupted(f"{name}: stopped during its upload")
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
        """Return the path of the artifact, `folder/<sha256>`; download it if it is missing or damaged.

        The file is hashed before every use. An interrupted download is resumed, in this call or in a later one. Raises
        ArtifactCorrupt if the server's bytes have another hash.
        """
        download = Download(artifact, folder)
        if download.is_complete():
            return download.target
        deadline, delay = time.monotonic() + self._retry_s, 0.5
        while True:
            before = download.received_bytes()
            try:
                download.run(self._http, f"artifacts/{artifact.sha256}", _check_status, self.interrupted.wait)
                return download.target
            except (httpx.TransportError, _ServerError) as error:
                if download.received_bytes() > before:  # slow progress is still progress
                    deadline, delay = time.monotonic() + self._retry_s, 0.5
                if time.monotonic() + delay > deadline or self.interrupted.wait(delay):
                    raise
                log.warning(
                    "download resumed", artifact=artifact.name, received=download.received_bytes(), error=repr(error)
                )
                delay = min(delay * 2, 8.0)

    # --- leases -------------------------------------------------------------------------------------------------

    def leases(self, lab: str) -> list[Lease]:
        """Return the live leases of a lab's devices."""
        response = self._send("GET", f"labs/{lab}/leases")
        return TypeAdapter(dict[Literal["leases"], list[Lease]]).validate_json(response.content)["leases"]

    def power(self, lab: str) -> dict[str, ExternalPower]:
        """Return the power commands of a lab's devices that have no power port, by device name."""
        response = self._send("GET", f"labs/{lab}/power")
        return TypeAdapter(dict[Literal["power"], dict[str, ExternalPower]]).validate_json(response.content)["power"]

    def publish_capacity(
        self, lab: str, capacity: int, refused: Mapping[str, str] | None, pool: LavaPool | None = None
    ) -> None:
        """Report the capacity of a lab to the server.

        `capacity` is the number of devices that the lab's workers can drive at once, `refused` the reason for each
        device type that the lab cannot provide, and `pool` the state of LAVA's devices.
        """
        report = {"capacity": capacity, "refused": refused, "pool": pool.model_dump() if pool else None}
        content = json.dumps(report).encode()
        headers = {"Content-Type": "application/json"}
        self._send("POST", f"labs/{lab}/capacity", headers=headers, body=lambda: content)

    def publish_storage(self, use: StorageUse) -> None:
        """Report what uses this machine's storage."""
        self._post("storage", use)

    # --- one request --------------------------------------------------------------------------------------------

    def _post(
        self, path: str, message: Message, retry_s: float | None = None, timeout_s: float | None = None
    ) -> httpx.Response:
        content = message.model_dump_json().encode()
        return self._send(
            "POST",
            path,
            headers={"Content-Type": "application/json"},
            body=lambda: content,
            retry_s=retry_s,
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
        retry_s: float | None = None,
        timeout_s: float | None = None,
    ) -> httpx.Response:
        deadline = time.monotonic() + (self._retry_s if retry_s is None else retry_s)
        delay = 0.25
        while True:
            try:
                response = self._http.request(
                    method,
                    path,
                    params=params,
                    headers=headers,
                    content=body() if body else None,
                    timeout=httpx.USE_CLIENT_DEFAULT if timeout_s is None else timeout_s,
                )
                _check_status(response)
                return response
            except (httpx.TransportError, _ServerError) as error:
                pause = delay * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, not a secret
                if time.monotonic() + pause > deadline or self.interrupted.wait(pause):
                    raise
                log.warning("request failed; repeating it", method=method, path=path, error=repr(error))
                delay = min(delay * 2, 8.0)


class _ServerError(httpx.TransportError):
    """A 5xx or 429 response, which is treated like no response."""


class ServerFull(_ServerError):
    """The server had no space for the request (507), also after its repetitions."""

    @property
    def failure(self) -> Failure:
        """The failure of a job that needed the request."""
        return Failure(
            kind=ErrorKind.INFRASTRUCTURE,
            summary=f"the server has no space left: {self}"[:1000],
            advice="The lab's operator makes space (`wqlab-lab storage` lists what uses it); then run `wqlab retry`.",
        )


def _check_status(response: httpx.Response) -> None:
    """Raise StaleFence, _ServerError or ServerRefused for an error response."""
    if response.status_code == 409:
        raise StaleFence(_detail(response))
    if response.status_code == httpx.codes.INSUFFICIENT_STORAGE:
        raise ServerFull(_detail(response))
    if response.status_code >= 500 or response.status_code == 429:
        raise _ServerError(f"{response.status_code} {_detail(response)}")
    if response.status_code >= 400:
        raise ServerRefused(f"{response.request.method} {response.request.url.path}: {_detail(response)}")


def _detail(response: httpx.Response) -> str:
    """Return the message of an error response."""
    try:
        problem = response.json()
        return str(problem.get("detail") or problem.get("title") or response.text[:500])
    except (ValueError, AttributeError):
        return response.text[:500]
