"""Process the job of an id: claim it, work on it under heartbeats, and send its result.

It is not an error if another worker holds the claim.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import httpx
import structlog

from wqlab_contracts.enums import ArtifactKind, ErrorKind, Outcome
from wqlab_contracts.messages import (
    ApplyResult,
    Artifact,
    BootKey,
    BuildResult,
    Failure,
    Progress,
    RunClaim,
    RunEvent,
    RunResult,
)
from wqlab_contracts.messages.branch_readings import BranchReadingResult
from wqlab_contracts.messages.commit_lists import CommitListResult
from wqlab_contracts.messages.forge_readings import ForgeReadingResult
from wqlab_contracts.messages.list_reads import ListReadResult
from wqlab_contracts.messages.lookups import LookupResult
from wqlab_contracts.messages.thread_lookups import ThreadLookupResult
from wqlab_contracts.specs import CpuArch

from ..backends.instrumented import InstrumentedBackend
from ..backends.interface import Backend
from ..backends.labgrid import LabgridBackend
from ..backends.lava import LavaBackend
from ..build.modules import files_for_device, files_for_kernel
from ..settings import Settings
from ..stacks.decoding_sink import DecodingSink
from ..workspace import Workspace
from .event_sink import ServerEventSink
from .heartbeats import Heartbeats, Stop, lease_lost
from .server import ArtifactCorrupt, JobRef, Server, ServerRefused, StaleFence

log = structlog.get_logger()

ResultT = TypeVar(
    "ResultT",
    ApplyResult,
    BuildResult,
    LookupResult,
    ThreadLookupResult,
    BranchReadingResult,
    ForgeReadingResult,
    CommitListResult,
    ListReadResult,
    RunResult,
)

DELIVERY_S = 120.0
"""Time for delivering the last events of a run."""
PROGRESS_INTERVAL_S = 1.0


class Stopped(Exception):
    """Raised by a job's progress call if its claim is lost or the job is canceled."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.summary)
        self.failure = failure


def connect_server(settings: Settings) -> Server:
    """Return a client of the configured server, in the name of this process."""
    return Server(
        settings.server_url,
        settings.worker_token.get_secret_value(),
        worker=f"{socket.gethostname()}/{os.getpid()}",
        lab=settings.lab,
        ca_file=settings.ca_file,
    )


# --- apply, build and lookup --------------------------------------------------------------------------------------


def apply(id_: int, settings: Settings) -> None:
    from ..apply.apply_series import apply as apply_series

    server, claimed_at = connect_server(settings), time.monotonic()
    claim = server.claim_apply(id_)
    if claim is None:
        return

    def work(workspace: Workspace, progress: ProgressReporter) -> tuple[ApplyResult, list[Artifact]]:
        if claim.job.thread is not None and (taken := claim.job.thread.taken) is not None:
            workspace.use(workspace.path_of(taken.mbox))
            server.fetch(taken.mbox, workspace.fetched)
        result = apply_series(claim.job, workspace, progress)
        bundle = result.candidate.bundle if result.candidate else None
        mails = result.thread.mbox if result.thread else None
        return result, [artifact for artifact in (bundle, result.series_mbox, mails) if artifact]

    ref, stop = JobRef("applies", id_, claim.fence), Stop()
    with Heartbeats(server, ref, claim.expires_in_s, claimed_at, stop):
        finish(server.finish_apply, ref, work_and_upload(server, ref, stop, work, ApplyResult))


def build(id_: int, settings: Settings) -> None:
    from ..build.build_kernel import build as build_kernel

    server, claimed_at = connect_server(settings), time.monotonic()
    claim = server.claim_build(id_)
    if claim is None:
        return

    def work(workspace: Workspace, progress: ProgressReporter) -> tuple[BuildResult, list[Artifact]]:
        if claim.job.source.bundle:
            workspace.use(workspace.path_of(claim.job.source.bundle))
            server.fetch(claim.job.source.bundle, workspace.fetched)
        result = build_kernel(claim.job, workspace, progress)
        return result, [*result.artifacts, *(each for layout in result.layouts for each in layout.artifacts)]

    ref, stop = JobRef("builds", id_, claim.fence), Stop()
    with Heartbeats(server, ref, claim.expires_in_s, claimed_at, stop):
        finish(server.finish_build, ref, work_and_upload(server, ref, stop, work, BuildResult))


def work_and_upload(
    server: Server,
    ref: JobRef,
    stop: Stop,
    work: Callable[[Workspace, ProgressReporter], tuple[ResultT, list[Artifact]]],
    kind: type[ResultT],
) -> ResultT:
    """Run `work` in this machine's workspace, upload its artifacts and return its result, or why it failed."""
    try:
        with Workspace.from_environment().session() as workspace:
            result, artifacts = work(workspace, ProgressReporter(server, ref, stop))
            for artifact in artifacts:
                server.upload(ref, workspace.path_of(artifact), artifact.kind, artifact.name)
            return result
    except Exception as error:
        failure = failure_of(error)
        return kind(outcome=outcome_of(failure), failure=failure)


class ProgressReporter:
    """The `progress` argument of a job.

    It reports to the server at most once a second, and raises Stopped if the job must end.
    """

    def __init__(self, server: Server, ref: JobRef, stop: Stop) -> None:
        self._server = server
        self._ref = ref
        self._stop = stop
        self._reported_at = 0.0
        self._text = ""

    def __call__(self, text: str, done: int, total: int) -> None:
        if self._stop.failure:
            raise Stopped(self._stop.failure)
        now = time.monotonic()
        if now - self._reported_at < PROGRESS_INTERVAL_S and text == self._text:
            return
        self._reported_at, self._text = now, text
        try:
            self._server.send_progress(self._ref, [Progress(at=datetime.now(UTC), text=text, done=done, total=total)])
        except StaleFence as error:
            self._stop.request(lease_lost(f"{self._ref}: another worker holds the claim"))
            raise Stopped(lease_lost(str(error))) from error
        except (httpx.TransportError, ServerRefused) as error:
            log.warning("progress not reported", job=str(self._ref), error=repr(error))


# --- runs ---------------------------------------------------------------------------------------------------------


def run(id_: int, settings: Settings) -> None:
    server = connect_server(settings)
    claimed_at = time.monotonic()
    claim = server.claim_run(id_)
    if claim is None:
        return
    ref = JobRef("runs", id_, claim.fence)
    stop = Stop()
    with (
        Heartbeats(server, ref, claim.expires_in_s, claimed_at, stop),
        Workspace(settings.cache).session() as workspace,
    ):

        def fetch(artifact: Artifact) -> Path:
            workspace.use(workspace.path_of(artifact))
            return server.fetch(artifact, workspace.fetched)

        result = run_claimed(claim, ref, server, _backend(claim, settings, fetch), stop, fetch=fetch)
        finish(server.finish_run, ref, result)


def _backend(claim: RunClaim, settings: Settings, fetch: Callable[[Artifact], Path]) -> Backend:
    """Return the backend with which the claimed device is reached."""
    if claim.job.device.backend == "labgrid":
        return LabgridBackend(
            coordinator=settings.coordinator,
            state=settings.state,
            ssh_key=settings.ssh_key,
            logs=settings.session_logs,
            fence=claim.fence,
            fetch=fetch,
        )
    if claim.job.device.backend == "instrumented":
        return InstrumentedBackend(
            cache=settings.cache,
            scratch=settings.scratch,
            rootfs=partial(_golden_rootfs, settings.state, claim.job.device.arch),
            fetch=fetch,
            files_of=lambda job, kernel: files_for_device(job.plan.modules, kernel, fetch),
        )
    return LavaBackend(
        url=settings.lava_url,
        token=settings.lava_token.get_secret_value(),
        listen=settings.lava_listen,
        host=settings.lava_worker_host,
        fence=claim.fence,
        scratch=settings.scratch,
        fetch=fetch,
        files_of=partial(files_for_kernel, fetch=fetch),
        golden=partial(golden_images, settings.state, claim.job.device.arch),
    )


def golden_images(state: Path, arch: CpuArch) -> dict[str, Path]:
    """Return `kernel` and `ramdisk` of the virtual bench's golden system, for LAVA devices without their own.

    Empty if this machine has no bench, or none of this architecture.
    """
    try:
        published = json.loads((state / "golden.json").read_text())
    except FileNotFoundError:
        return {}
    files = published.get(arch)
    return {"kernel": Path(files["kernel"]), "ramdisk": Path(files["rootfs"])} if files else {}


def _golden_rootfs(state: Path, arch: CpuArch) -> Path:
    """Return the root filesystem image of an architecture. Raises FileNotFoundError with the fix."""
    images = golden_images(state, arch)
    if not images:
        target = "arm64" if arch == "arm64" else "up"
        raise FileNotFoundError(f"this lab has no root filesystem for {arch}; run `make {target}` to make one")
    return images["ramdisk"]


def run_claimed(
    claim: RunClaim, ref: JobRef, server: Server, backend: Backend, stop: Stop, *, fetch: Callable[[Artifact], Path]
) -> RunResult:
    """Run the remaining blocks. If the result is PASSED, the server has all events and console output of the run.

    `fetch` returns the path of an artifact on this machine, after checking its hash.
    """
    remaining = [plan for plan in claim.job.blocks if plan.block not in claim.completed_blocks]
    sink = ServerEventSink(server, ref, on_refused=lambda error: stop.request(_refused_failure(ref, error)))
    uploads = _RunEventSink(sink, server, ref)
    emit = DecodingSink(uploads, {arm: claim.job.kernels_of(arm) for arm in claim.job.kernels}, fetch, stop)
    try:
        result = emit.finish(backend.execute(claim.job, remaining, emit, stop))
        if not sink.flush(DELIVERY_S) and result.outcome is Outcome.PASSED:
            failure = lease_lost("the server did not accept all events of the run")
            result = RunResult(outcome=Outcome.FAILED, failure=failure)
    except Exception as error:
        failure = failure_of(error)
        result = RunResult(outcome=outcome_of(failure), failure=failure)
    finally:
        emit.close()
        uploads.close()
        sink.close()
    return result


def _refused_failure(ref: JobRef, error: Exception) -> Failure:
    if isinstance(error, StaleFence):
        return lease_lost(f"{ref}: another worker holds the claim")
    return Failure(kind=ErrorKind.INFRASTRUCTURE, summary=f"the server refused an event: {error}"[:1000])


class _RunEventSink:
    """The `EventSink` of a run: send events and console output to the server, and upload files from a thread.

    No boot waits for an upload.
    """

    def __init__(self, sink: ServerEventSink, server: Server, ref: JobRef) -> None:
        self._sink = sink
        self._server = server
        self._ref = ref
        self._uploads = ThreadPoolExecutor(1, "upload")

    def event(self, event: RunEvent) -> None:
        self._sink.event(event)

    def console(self, boot: BootKey, offset: int, data: bytes) -> None:
        self._sink.console(boot, offset, data)

    def artifact(self, kind: ArtifactKind, name: str, data: bytes) -> None:
        self._uploads.submit(self._upload, kind, name, data)

    def close(self) -> None:
        """Wait for the uploads, because the server accepts none after the run has finished."""
        self._uploads.shutdown()

    def _upload(self, kind: ArtifactKind, name: str, data: bytes) -> None:
        with TemporaryDirectory(prefix="wqlab-upload-") as folder:
            path = Path(folder) / "data"
            path.write_bytes(data)
            try:
                self._server.upload(self._ref, path, kind, name)
            except (StaleFence, ServerRefused, httpx.TransportError) as error:
                # Raw output is only for readers; samples are sent as events.
                log.warning("raw output not uploaded", name=name, error=repr(error))


# --- finishing ----------------------------------------------------------------------------------------------------


def finish(send: Callable[[JobRef, ResultT], None], ref: JobRef, result: ResultT) -> None:
    """Send the result. A stale claim is only logged: another worker has the job, or the server has this result already.

    If the server refuses the result, the job is failed with the server's reason, because after its expiry another
    worker would only repeat it and be refused too. Raises ServerRefused if the server refuses this as well.
    """
    try:
        try:
            send(ref, result)
        except ServerRefused as error:
            log.error("result refused", job=str(ref), error=str(error))
            failure = Failure(
                kind=ErrorKind.INFRASTRUCTURE, summary=f"the server refused the worker's result: {error}"[:1000]
            )
            send(ref, type(result)(outcome=Outcome.FAILED, failure=failure))
    except StaleFence:
        log.warning("result not sent: the claim is stale", job=str(ref))


def failure_of(error: Exception) -> Failure:
    """Return the Failure that describes an exception that ended a job."""
    known = getattr(error, "failure", None)
    if isinstance(known, Failure):
        return known
    if isinstance(error, ArtifactCorrupt):
        return Failure(
            kind=ErrorKind.INFRASTRUCTURE,
            summary=str(error),
            advice="The artifact store was changed from outside the server; build the kernel again.",
        )
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Failure(
            kind=ErrorKind.INFRASTRUCTURE,
            summary=f"the worker has no space left: {error.filename or os.environ.get('WQLAB_CACHE', 'its volume')}",
            advice="The lab's operator makes space (`wqlab-lab storage` lists what uses it); then run `wqlab retry`.",
        )
    log.error("job failed", error=repr(error), exc_info=error)
    return Failure(kind=ErrorKind.INFRASTRUCTURE, summary=f"the worker failed: {error!r}"[:1000])


def outcome_of(failure: Failure) -> Outcome:
    return Outcome.CANCELED if failure.kind is ErrorKind.CANCELED else Outcome.FAILED
