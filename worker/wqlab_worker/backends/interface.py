"""Interfaces shared by the backends: run blocks on a device, send events, receive cancellation."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Protocol

from wqlab_contracts.enums import ArtifactKind
from wqlab_contracts.messages import BlockPlan, BootKey, DeviceFacts, Failure, RunEvent, RunJob, RunResult

LOAD_TIMEOUT_S = 120.0
"""Longest time of `kexec -l`."""


def kexec_options(device: DeviceFacts) -> list[str]:
    """Return the options of `kexec -l` for any variant on this device.

    kexec computes the SHA-256 of the loaded kernel's memory when it loads the kernel and again before the jump, to find
    memory overwritten by DMA (kexec(8)). No peripheral of an emulated device does that, and the two checksums take a
    tenth of its boot.
    """
    return ["--no-checks"] if device.emulated else []


def upload_check(device: DeviceFacts, data: bytes) -> tuple[str, str]:
    """Return a command that checks an uploaded file, whose path is to be appended, and the first word of its output.

    SSH protects the transfer with a MAC. A SHA-256 also finds faulty memory or storage of the device. Emulated devices
    have neither, and the SHA-256 takes a fifth of the time of an upload.
    """
    return ("stat -c %s", str(len(data))) if device.emulated else ("sha256sum", hashlib.sha256(data).hexdigest())


class EventSink(Protocol):
    """Event sink of a run. Calls may come from any thread; the calls of one thread keep their order."""

    def event(self, event: RunEvent) -> None: ...

    def console(self, boot: BootKey, offset: int, data: bytes) -> None:
        """Send console output. `offset` is the position of `data` in this boot's console, in bytes since power-on."""

    def artifact(self, kind: ArtifactKind, name: str, data: bytes) -> None:
        """Store a file of the run, such as the raw output of a boot."""


class Cancel(Protocol):
    """Cancellation of a run: when to stop and why. `cancellation.Stop` implements it."""

    @property
    def failure(self) -> Failure | None: ...

    def is_set(self) -> bool: ...

    def wait(self, timeout_s: float | None = None) -> bool: ...

    @property
    def holds_until(self) -> float:
        """End of the lease as far as it is known, in time.monotonic() seconds; the device must be released by then."""

    def wait_extension(self, known: float, timeout_s: float) -> float: ...


class Backend(Protocol):
    def execute(self, job: RunJob, remaining: Sequence[BlockPlan], emit: EventSink, cancel: Cancel) -> RunResult:
        """Run the remaining blocks on the job's device, then power it off and release it.

        A failure of the device or kernel is in the result, never raised. Returns soon after `cancel` is set.
        """
