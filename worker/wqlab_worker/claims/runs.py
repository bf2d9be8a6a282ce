"""Make a run: choose the backend of its device, execute the blocks that are left, and deliver what they give."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import structlog

from wqlab_contracts.enums import ArtifactKind, ErrorKind, Outcome
from wqlab_contracts.messages import Artifact, BootKey, Failure, RunEvent, RunJob, RunResult
from wqlab_contracts.specs import CpuArch

from ..backends.cancellation import Stop
from ..backends.instrumented import InstrumentedBackend
from ..backends.interface import Backend
from ..backends.labgrid import LabgridBackend
from ..backends.lava import LavaBackend
from ..build.modules import files_for_device, files_for_kernel
from ..settings import Settings
from ..stacks.decoding_sink import DecodingSink
from ..workspace import Workspace
from .event_sink import ServerEventSink
from .heartbeats import lease_lost
from .outcomes import failure_of, outcome_of
from .server import JobRef, Server, ServerRefused, StaleFence

log = structlog.get_logger()

DELIVERY_S = 120.0
"""Time for delivering the last events of a run."""


def run(job: RunJob, ref: JobRef, server: Server, stop: Stop, settings: Settings) -> RunResult:
    """Run the blocks of a claimed run that are left."""
    with Workspace(settings.cache).session() as workspace:

        def fetch(artifact: Artifact) -> Path:
            workspace.use(workspace.path_of(artifact))
            return server.fetch(artifact, workspace.fetched)

        return run_claimed(job, ref, server, _backend(job, ref, settings, fetch), stop, fetch=fetch)


def _backend(job: RunJob, ref: JobRef, settings: Settings, fetch: Callable[[Artifact], Path]) -> Backend:
    """Return the backend with which the claimed device is reached."""
    if job.device.backend == "labgrid":
        return LabgridBackend(
            coordinator=settings.coordinator,
            state=settings.state,
            ssh_key=settings.ssh_key,
            logs=settings.session_logs,
            fence=ref.fence,
            fetch=fetch,
        )
    if job.device.backend == "instrumented":
        return InstrumentedBackend(
            cache=settings.cache,
            scratch=settings.scratch,
            rootfs=partial(_golden_rootfs, settings.state, job.device.arch),
            fetch=fetch,
            files_of=lambda of_run, kernel: files_for_device(of_run.plan.modules, kernel, fetch),
        )
    return LavaBackend(
        url=settings.lava_url,
        token=settings.lava_token.get_secret_value(),
        listen=settings.lava_listen,
        host=settings.lava_worker_host,
        fence=ref.fence,
        scratch=settings.scratch,
        fetch=fetch,
        files_of=partial(files_for_kernel, fetch=fetch),
        golden=partial(golden_images, settings.state, job.device.arch),
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
    job: RunJob, ref: JobRef, server: Server, backend: Backend, stop: Stop, *, fetch: Callable[[Artifact], Path]
) -> RunResult:
    """Run the remaining blocks. If the result is PASSED, the server has all events and console output of the run.

    `fetch` returns the path of an artifact on this machine, after checking its hash.
    """
    remaining = [plan for plan in job.blocks if plan.block not in job.completed_blocks]
    sink = ServerEventSink(server, ref, on_refused=lambda error: stop.request(_refused_failure(ref, error)))
    uploads = _RunEventSink(sink, server, ref)
    emit = DecodingSink(uploads, {arm: job.kernels_of(arm) for arm in job.kernels}, fetch, stop)
    try:
        result = emit.finish(backend.execute(job, remaining, emit, stop))
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
