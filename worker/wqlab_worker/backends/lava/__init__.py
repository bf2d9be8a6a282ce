"""The LAVA backend: a run's boots as one LAVA job on one device; this package imports no labgrid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import structlog

from wqlab_contracts.enums import Arm, ErrorKind, Outcome
from wqlab_contracts.messages import Artifact, BlockPlan, BootKey, Failure, Kernel, RunJob, RunResult

from ...measure.run import measure
from ..base import Cancel, Emit
from ..console import Watch
from . import package
from .client import Lava, LavaError
from .definition import Definition, Sources, define
from .job_names import holder_of, job_name
from .lava_device import LavaDevice
from .receiver import Receiver

log = structlog.get_logger()

__all__ = ["LavaBackend"]


class LavaBackend:
    """`fetch(artifact)` gives a file's path on this machine, its hash checked; `files_of(job, kernel)` what goes to the
    device for one kernel alone; `golden()` what golden system (name -> file) devices boot that do not bring their own."""

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

    def execute(self, job: RunJob, remaining: Sequence[BlockPlan], emit: Emit, cancel: Cancel) -> RunResult:
        lava = Lava(self._url, self._token)
        try:
            version = lava.version()
            self._clear(lava, job)
            self._scratch.mkdir(parents=True, exist_ok=True)
            watch = Watch()
            with (
                TemporaryDirectory(prefix=f"lava-{job.run_id}-", dir=self._scratch) as folder,
                Receiver(self._listen, self._host, watch.ring) as receiver,
            ):
                offered = self._offer(job, remaining, receiver, Path(folder))

                def definition(boots: Sequence[BootKey], tokens: Sequence[str]) -> Definition:
                    return define(job, boots, tokens, offered, job_name(job, self._fence))

                device = LavaDevice(
                    job, remaining, lava=lava, receiver=receiver, define=definition,
                    facts={"LAVA": f"{version} at {self._url}"}, emit=emit, cancel=cancel, watch=watch,
                )  # fmt: skip
                try:
                    return measure(job, remaining, device, emit, cancel, clock=device.clock)
                finally:
                    device.close()
        except LavaError as error:
            failure = Failure(
                kind=ErrorKind.INFRASTRUCTURE,
                summary=str(error),
                advice="Other labs go on. See that LAVA runs, and that the worker's token is one of LAVA's users'.",
            )
            return RunResult(outcome=Outcome.FAILED, failure=failure)
        finally:
            lava.close()

    def _clear(self, lava: Lava, job: RunJob) -> None:
        """Cancels what an earlier holder of this device left in LAVA: nobody waits for it any more."""
        for left in lava.unfinished(lava.user()):
            holder = holder_of(left)
            if holder and (holder.lab, holder.device) == (job.device.lab, job.device.name):
                log.warning("cancelling a LAVA job that was left", job=left.id, description=left.description)
                lava.cancel(left.id)

    def _offer(self, job: RunJob, remaining: Sequence[BlockPlan], receiver: Receiver, folder: Path) -> Sources:
        """Everything that LAVA fetches, in its place."""
        images: dict[Arm, Path] = {arm: self._fetch(kernel.image) for arm, kernel in job.kernels.items()}
        modules = {arm: self._files_of(job, kernel) for arm, kernel in job.kernels.items()}
        overlay = folder / "overlay.tar"
        package.overlay(job, images, modules, [plan.block for plan in remaining], overlay)
        lava = job.device.lava
        mapping = lava.mapping if lava else None
        return Sources(
            overlay=receiver.offer("overlay.tar", overlay),
            images={name: receiver.offer(name, path) for name, path in self._golden().items()},
            variants={arm.value: receiver.offer(f"kernel-{arm.value}", path) for arm, path in images.items()},
            results=receiver.url(mapping.worker_host if mapping else None),
            callback=receiver.callback,
        )
