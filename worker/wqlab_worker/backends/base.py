"""What every backend does, whichever way it reaches its devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from wqlab_contracts.enums import ArtifactKind
from wqlab_contracts.messages import BlockPlan, BootKey, DeviceFacts, Failure, RunEvent, RunJob, RunResult


def kexec_options(device: DeviceFacts) -> list[str]:
    """Of `kexec -l`, for whichever variant.

    kexec has the loaded kernel's memory summed up, by SHA-256, when it is loaded and again before the jump, which finds
    what a device wrote there by itself (kexec(8)). Emulated devices have no such device, and the two sums take them a
    tenth of a boot.
    """
    return ["--no-checks"] if device.emulated else []


class Emit(Protocol):
    """Where a run's story goes while it happens. Calls may come from any thread; each keeps its order."""

    def event(self, event: RunEvent) -> None: ...

    def console(self, boot: BootKey, offset: int, data: bytes) -> None:
        """`offset` is the place of `data` in this boot's console, counted from its power-on."""

    def artifact(self, kind: ArtifactKind, name: str, data: bytes) -> None:
        """Something worth keeping as a file of the run, such as a boot's raw output."""


class Cancel(Protocol):
    """Says when to stop and why; `leases.Stop` is one."""

    @property
    def failure(self) -> Failure | None: ...

    def is_set(self) -> bool: ...

    def wait(self, timeout_s: float | None = None) -> bool: ...

    @property
    def holds_until(self) -> float:
        """time.monotonic() until which the lease is certain; the device must be let go by then."""

    def wait_extension(self, known: float, timeout_s: float) -> float: ...


class Backend(Protocol):
    def execute(self, job: RunJob, remaining: Sequence[BlockPlan], emit: Emit, cancel: Cancel) -> RunResult:
        """Runs the remaining blocks on the job's device and leaves it powered off and released.

        Never raises for what a device or kernel does: that is in the result. Returns soon after `cancel` is set.
        """
