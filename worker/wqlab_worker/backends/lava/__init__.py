"""The LAVA backend: run the boots of a run as one LAVA job on one device. This package does not import labgrid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import structlog

from wqlab_contracts.enums import Arm, ErrorKind, Outcome
from wqlab_contracts.messages import Artifact, BlockPlan, BootKey, Failure, Kernel, RunJob, RunResult

from ...measure.measuring_loop import measure
from ..console_tap import Wakeup
from ..interface import Cancel, EventSink
from . import job_archives
from .job_definition import Definition, Sources, define
from .job_names import job_name, parse_job_holder
from .lava_client import Lava, LavaError
from .lava_device import LavaDevice
from .receiver import JobAddresses, Receiver

log = structlog.get_logger()

__all__ = ["LavaBackend"]


def _layouts_refused(job: RunJob) -> Failure:
    return Failure(
        kind=ErrorKind.USER,
        summary=f"{job.device.name} is in a LAVA lab, which boots one kernel of each arm: layouts are not possible",
        advice="Submit without layouts, or with a backend other than LAVA.",
    )


class LavaBackend:
    """Backend for the devices of one LAVA server.

    `fetch(artifact)` returns a file's path on this machine and checks its hash. `files_of(job, kernel)` returns the
    files for one kernel alone. `golden()` returns the files (name -> path) of the golden system for devices that have
    none of their own.
    """

    def __init__(
        self,
        *,
        url: str,
        token: str,
        listen: str,
        host: str,
        fence: int,
        scratch: Path,
        fetch: Callable[[Artifact], Path],
        files_of: Callable[[RunJob, Kernel], dict[str, bytes]],
        golden: Callable[[], dict[str, Path]],
    ) -> None:
        self._url, self._token = url, token
        self._listen, self._host = listen, host
        self._fence = fence
        self._scratch = scratch
        self._fetch = fetch
        self._files_of = files_of
        self._golden = golden

    def execute(self, job: RunJob, remaining: Sequence[BlockPlan], emit: EventSink, cancel: Cancel) -> RunResult:
        if job.layouts:
            return RunResult(outcome=Outcome.FAILED, failure=_layouts_refused(job))
        lava = Lava(self._url, self._token)
        try:
            version = lava.version()
            self._cancel_orphaned_jobs(lava, job)
            self._scratch.mkdir(parents=True, exist_ok=True)
            wakeup = Wakeup()
            with (
                TemporaryDirectory(prefix=f"lava-{job.run_id}-", dir=self._scratch) as folder,
                Receiver(self._listen, self._host, wakeup.notify) as receiver,
            ):
                self._offer(job, remaining, receiver, Path(folder))

                def definition(boots: Sequence[BootKey], tokens: Sequence[str]) -> Definition:
                    addresses = receiver.open_job([job_archives.boot_name(key) for key in boots])
                    sources = self._sources(job, receiver, addresses)
                    return define(job, boots, tokens, sources, job_name(job, self._fence))

                device = LavaDevice(
                    job, remaining, lava=lava, receiver=receiver, define=definition,
                    facts={"LAVA": f"{version} at {self._url}"}, emit=emit, cancel=cancel, wakeup=wakeup,
                )  # fmt: skip
                try:
                    return measure(job, remaining, device, emit, cancel, clock=device.clock)
                finally:
                    device.close()
        except LavaError as error:
            failure = Failure(
                kind=ErrorKind.INFRASTRUCTURE,
                summary=str(error),
                advice="Other labs go on. Check that LAVA runs and that the worker's token belongs to a LAVA user.",
            )
            return RunResult(outcome=Outcome.FAILED, failure=failure)
        finally:
            lava.close()

    def _cancel_orphaned_jobs(self, lava: Lava, job: RunJob) -> None:
        """Cancel jobs that an earlier holder of this device left in LAVA."""
        for orphan in lava.unfinished(lava.user()):
            holder = parse_job_holder(orphan)
            if holder and (holder.lab, holder.device) == (job.device.lab, job.device.name):
                log.warning("cancelling an orphaned LAVA job", job=orphan.id, description=orphan.description)
                lava.cancel(orphan.id)

    def _offer(self, job: RunJob, remaining: Sequence[BlockPlan], receiver: Receiver, folder: Path) -> None:
        """Offer the files that LAVA fetches at the receiver."""
        images: dict[Arm, Path] = {arm: self._fetch(kernel.image) for arm, kernel in job.kernels.items()}
        modules = {arm: self._files_of(job, kernel) for arm, kernel in job.kernels.items()}
        overlay = folder / "overlay.tar"
        job_archives.overlay(job, images, modules, [plan.block for plan in remaining], overlay)
        receiver.offer("overlay.tar", overlay)
        for name, path in self._golden().items():
            receiver.offer(name, path)
        for arm, path in images.items():
            receiver.offer(f"kernel-{arm.value}", path)

    def _sources(self, job: RunJob, receiver: Receiver, addresses: JobAddresses) -> Sources:
        """Return the URLs of one LAVA job."""
        lava = job.device.lava
        return Sources(
            overlay=addresses.file("overlay.tar"),
            images={name: addresses.file(name) for name in self._golden()},
            variants={arm.value: addresses.file(f"kernel-{arm.value}") for arm in job.kernels},
            results=addresses.results(receiver.url(lava.mapping.worker_host if lava else None)),
            callback=addresses.callback,
        )
