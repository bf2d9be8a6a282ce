"""What a task does with an id: claim, work under heartbeats, finish. A claim that somebody else has is no error."""

from __future__ import annotations

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
from wqlab_contracts.messages.lookups import LookupResult

from ..backends.base import Backend
from ..backends.labgrid import LabgridBackend
from ..backends.lava import LavaBackend
from ..build.modules import files_for_kernel
from ..settings import Settings
from ..workspace import Workspace
from . import golden
from .event_sink import Outbox
from .heartbeats import Heartbeats, Stop, lease_lost
from .server import ArtifactCorrupt, JobRef, Server, ServerRefused, StaleFence

log = structlog.get_logger()

ResultT = TypeVar("ResultT", ApplyResult, BuildResult, LookupResult, RunResult)

DELIVERY_S = 120.0
"""How long the last events of a run may take to arrive."""
PROGRESS_INTERVAL_S = 1.0


class Stopped(Exception):
    """Raised out of a job's progress call when its claim is lost or canceled."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.summary)
        self.failure = failure


def server_of(settings: Settings) -> Server:
    return Server(
        settings.server_url,
        settings.worker_token.get_secret_value(),
        worker=f"{socket.gethostname()}/{os.getpid()}",
        lab=settings.lab,
        ca_file=settings.ca_file,
    )


# --- apply and build ----------------------------------------------------------------------------------------------


def apply(id_: int, settings: Settings) -> None:
    from ..apply.apply_series import apply as apply_series

    server, claimed_at = server_of(settings), time.monotonic()
    claim = server.claim_apply(id_)
    if claim is None:
        return

    def work(workspace: Workspace, tell: ProgressTeller) -> tuple[ApplyResult, list[Artifact]]:
        result = apply_series(claim.job, workspace, tell)
        bundle = result.candidate.bundle if result.candidate else None
        return result, [artifact for artifact in (bundle, result.series_mbox) if artifact]

    ref, stop = JobRef("applies", id_, claim.fence), Stop()
    with Heartbeats(server, ref, claim.expires_in_s, claimed_at, stop):
        finish(server.finish_apply, ref, _uploaded(server, ref, stop, work, ApplyResult))


def build(id_: int, settings: Settings) -> None:
    from ..build.build_kernel import build as build_kernel

    server, claimed_at = server_of(settings), time.monotonic()
    claim = server.claim_build(id_)
    if claim is None:
        return

    def work(workspace: Workspace, tell: ProgressTeller) -> tuple[BuildResult, list[Artifact]]:
        if claim.job.source.bundle:
            server.fetch(claim.job.source.bundle, workspace.fetched)
        result = build_kernel(claim.job, workspace, tell)
        return result, result.artifacts

    ref, stop = JobRef("builds", id_, claim.fence), Stop()
    with Heartbeats(server, ref, claim.expires_in_s, claimed_at, stop):
        finish(server.finish_build, ref, _uploaded(server, ref, stop, work, BuildResult))


def _uploaded(
    server: Server,
    ref: JobRef,
    stop: Stop,
    work: Callable[[Workspace, ProgressTeller], tuple[ResultT, list[Artifact]]],
    kind: type[ResultT],
) -> ResultT:
    """What `work` makes in this machine's workspace, its artifacts sent up; or why that failed."""
    try:
        workspace = Workspace.from_environment()
        result, artifacts = work(workspace, ProgressTeller(server, ref, stop))
        for artifact in artifacts:
            server.upload(ref, workspace.path_of(artifact), artifact.kind, artifact.name)
        return result
    except Exception as error:
        failure = failure_of(error)
        return kind(outcome=_outcome(failure), failure=failure)


def lookup(id_: int, settings: Settings) -> None:
    """Without heartbeats: it is bounded in time, and shorter than its claim."""
    from ..apply.lookup import look_up

    server = server_of(settings)
    claim = server.claim_lookup(id_)
    if claim is None:
        return
    try:
        result = look_up(claim.job, Workspace.from_environment())
    except Exception as error:
        failure = failure_of(error)
        result = LookupResult(outcome=_outcome(failure), failure=failure)
    finish(server.finish_lookup, JobRef("lookups", id_, claim.fence), result)


class ProgressTeller:
    """A job's `progress` argument: tells the server at most once a second, and raises Stopped when the job must end."""

    def __init__(self, server: Server, ref: JobRef, stop: Stop) -> None:
        self._server = server
        self._ref = ref
        self._stop = stop
        self._told = 0.0
        self._text = ""

    def __call__(self, text: str, done: int, total: int) -> None:
        if self._stop.failure:
            raise Stopped(self._stop.failure)
        now = time.monotonic()
        if now - self._told < PROGRESS_INTERVAL_S and text == self._text:
            return
        self._told, self._text = now, text
        try:
            self._server.send_progress(self._ref, [Progress(at=datetime.now(UTC), text=text, done=done, total=total)])
        except StaleFence as error:
            self._stop.request(lease_lost(f"{self._ref}: the claim is no longer ours"))
            raise Stopped(lease_lost(str(error))) from error
        except (httpx.TransportError, ServerRefused) as error:
            log.warning("progress not told", job=str(self._ref), error=repr(error))


# --- runs ---------------------------------------------------------------------------------------------------------


def run(id_: int, settings: Settings) -> None:
    server = server_of(settings)
    claimed_at = time.monotonic()
    claim = server.claim_run(id_)
    if claim is None:
        return
    ref = JobRef("runs", id_, claim.fence)
    stop = Stop()
    with Heartbeats(server, ref, claim.expires_in_s, claimed_at, stop):
        fetch = partial(server.fetch, folder=settings.fetched)
        result = run_claimed(claim, ref, server, _backend(claim, settings, fetch), stop)
        finish(server.finish_run, ref, result)


def _backend(claim: RunClaim, settings: Settings, fetch: Callable[[Artifact], Path]) -> Backend:
    """By what the claimed device is reached."""
    if claim.job.device.backend == "labgrid":
        return LabgridBackend(
            coordinator=settings.coordinator,
            state=settings.state,
            ssh_key=settings.ssh_key,
            logs=settings.session_logs,
            fence=claim.fence,
            fetch=fetch,
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
        golden=partial(golden.images, settings.state, claim.job.device.arch),
    )


def run_claimed(claim: RunClaim, ref: JobRef, server: Server, backend: Backend, stop: Stop) -> RunResult:
    """Runs the blocks that are left; everything said on the way has arrived when this returns a good result."""
    remaining = [plan for plan in claim.job.blocks if plan.block not in claim.completed_blocks]
    outbox = Outbox(server, ref, refused=lambda error: stop.request(_refused(ref, error)))
    emit = _Emit(outbox, server, ref)
    try:
        result = backend.execute(claim.job, remaining, emit, stop)
        if not outbox.flush(DELIVERY_S) and result.outcome is Outcome.PASSED:
            failure = lease_lost("the server did not take all events of the run")
            result = RunResult(outcome=Outcome.FAILED, failure=failure)
    except Exception as error:
        failure = failure_of(error)
        result = RunResult(outcome=_outcome(failure), failure=failure)
    finally:
        emit.close()
        outbox.close()
    return result


def _refused(ref: JobRef, error: Exception) -> Failure:
    if isinstance(error, StaleFence):
        return lease_lost(f"{ref}: the claim is no longer ours")
    return Failure(kind=ErrorKind.INFRASTRUCTURE, summary=f"the server refused an event: {error}"[:1000])


class _Emit:
    """`backends.base.Emit` by outbox; files go up from a thread of their own, so that no boot waits for them."""

    def __init__(self, outbox: Outbox, server: Server, ref: JobRef) -> None:
        self._outbox = outbox
        self._server = server
        self._ref = ref
        self._uploads = ThreadPoolExecutor(1, "upload")

    def event(self, event: RunEvent) -> None:
        self._outbox.event(event)

    def console(self, boot: BootKey, offset: int, data: bytes) -> None:
        self._outbox.console(boot, offset, data)

    def artifact(self, kind: ArtifactKind, name: str, data: bytes) -> None:
        self._uploads.submit(self._upload, kind, name, data)

    def close(self) -> None:
        """Waits for the uploads: after the run's finish the server takes no more."""
        self._uploads.shutdown()

    def _upload(self, kind: ArtifactKind, name: str, data: bytes) -> None:
        with TemporaryDirectory(prefix="wqlab-upload-") as folder:
            path = Path(folder) / "data"
            path.write_bytes(data)
            try:
                self._server.upload(self._ref, path, kind, name)
            except (StaleFence, ServerRefused, httpx.TransportError) as error:
                # Raw output is for people: what was measured travels as samples.
                log.warning("raw output not uploaded", name=name, error=repr(error))


# --- ends ---------------------------------------------------------------------------------------------------------


def finish(send: Callable[[JobRef, ResultT], None], ref: JobRef, result: ResultT) -> None:
    """Hands the result in. A stale claim is quiet: the server has given the job to somebody else, or taken this
    answer before. A result that the server refuses fails the job with its reason: a job that is let expire is only
    done, and refused, again. Raises ServerRefused when that is refused too.
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
        log.warning("finished with a stale claim; result dropped", job=str(ref))


def failure_of(error: Exception) -> Failure:
    """What ended a job by exception, as a kind and words."""
    known = getattr(error, "failure", None)
    if isinstance(known, Failure):
        return known
    if isinstance(error, ArtifactCorrupt):
        return Failure(
            kind=ErrorKind.INFRASTRUCTURE,
            summary=str(error),
            advice="The artifact store was changed behind the server's back; build the kernel again.",
        )
    log.error("job failed", error=repr(error), exc_info=error)
    return Failure(kind=ErrorKind.INFRASTRUCTURE, summary=f"the worker failed: {error!r}"[:1000])


def _outcome(failure: Failure) -> Outcome:
    return Outcome.CANCELED if failure.kind is ErrorKind.CANCELED else Outcome.FAILED
