"""HTTP client of the server's worker API: claims, events, artifacts and leases."""

from __future__ import annotations

import base64
import json
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import httpx
import structlog
from pydantic import BaseModel, ConfigDict, TypeAdapter

from wqlab_contracts.enums import ArtifactKind
from wqlab_contracts.messages import (
    Artifact,
    BootKey,
    ClaimRequest,
    ConsoleAnswer,
    ConsoleChunk,
    Heartbeat,
    HeartbeatAnswer,
    JobEvents,
    LabPower,
    LavaPool,
    RunEvent,
)
from wqlab_contracts.messages.jobs import Claim, FinishJob, JobResult
from wqlab_contracts.messages.storage import StorageUse

from .connection import Connection, JobRef, ServerError, ServerFull, ServerRefused, StaleFence, check_status
from .downloads import CHUNK, ArtifactCorrupt, Download, sha256_of

log = structlog.get_logger()

__all__ = ["ArtifactCorrupt", "JobRef", "Lease", "Server", "ServerFull", "ServerRefused", "StaleFence", "sha256_of"]


class Lease(BaseModel):
    """A live lease of a device, from the server's list for the reaper."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    device: str
    run_id: int
    fence: int
    holder: str
    expires_in_s: float


class Server(Connection):
    """Client of one server; see `Connection` for how calls are repeated."""

    # --- claims -------------------------------------------------------------------------------------------------

    def claim(self, id_: int) -> Claim | None:
        """Claim a job. Return None if another worker has it or there is nothing left to do (409).

        The nonce makes repetition safe if the server granted the claim but its response was lost.
        """
        request = ClaimRequest(worker=self._worker, lab=self._lab, nonce=secrets.token_hex(8))
        try:
            response = self._post(f"jobs/{id_}/claim", request)
        except StaleFence:
            return None
        return Claim.model_validate_json(response.content)

    def heartbeat(self, job: JobRef, timeout_s: float = 10.0) -> HeartbeatAnswer:
        """Send a heartbeat, without repetition. Raises StaleFence, httpx.TransportError, ServerRefused."""
        response = self._post(f"jobs/{job.id}/heartbeat", Heartbeat(fence=job.fence), retry_s=0, timeout_s=timeout_s)
        return HeartbeatAnswer.model_validate_json(response.content)

    def finish(self, job: JobRef, result: JobResult) -> None:
        self._post(f"jobs/{job.id}/finish", FinishJob(fence=job.fence, result=result))

    # --- events -------------------------------------------------------------------------------------------------

    def send_events(self, job: JobRef, events: Sequence[RunEvent]) -> None:
        """Send events once, without repetition: the event sink of a run repeats, and progress is replaced by the next.

        Raises StaleFence, httpx.TransportError, ServerRefused.
        """
        self._post(f"jobs/{job.id}/events", JobEvents(fence=job.fence, events=list(events)), retry_s=0)

    def send_console(self, job: JobRef, boot: BootKey, offset: int, data: bytes) -> ConsoleAnswer:
        """Send console output, without repetition, because the event sink repeats."""
        chunk = ConsoleChunk(fence=job.fence, boot=boot, offset=offset, data=base64.b64encode(data).decode())
        response = self._post(f"jobs/{job.id}/console", chunk, retry_s=0)
        return ConsoleAnswer.model_validate_json(response.content)

    # --- artifacts ----------------------------------------------------------------------------------------------

    def upload(self, job: JobRef, path: Path, kind: ArtifactKind, name: str) -> Artifact:
        """Upload a file to the server and return its description."""
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
                "X-Job": str(job.id),
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
                download.run(self._http, f"artifacts/{artifact.sha256}", check_status)
                return download.target
            except (httpx.TransportError, ServerError) as error:
                if download.received_bytes() > before:  # slow progress is still progress
                    deadline, delay = time.monotonic() + self._retry_s, 0.5
                if time.monotonic() + delay > deadline:
                    raise
                log.warning(
                    "download resumed", artifact=artifact.name, received=download.received_bytes(), error=repr(error)
                )
                time.sleep(delay)
                delay = min(delay * 2, 8.0)

    # --- leases -------------------------------------------------------------------------------------------------

    def leases(self, lab: str) -> list[Lease]:
        """Return the live leases of a lab's devices."""
        response = self._send("GET", f"labs/{lab}/leases")
        return TypeAdapter(dict[Literal["leases"], list[Lease]]).validate_json(response.content)["leases"]

    def power(self, lab: str) -> LabPower:
        """Return how a lab's devices are switched off."""
        return LabPower.model_validate_json(self._send("GET", f"labs/{lab}/power").content)

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
