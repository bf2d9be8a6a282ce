"""Interface of a device to the measuring loop, the same for every backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from wqlab_contracts.enums import DeviceStep
from wqlab_contracts.keys import defect_key
from wqlab_contracts.messages import BootKey, Failure, Kernel, MeasuredTopology, RanLines

from .device_text import printable


@dataclass(frozen=True)
class VerifiedBoot:
    """Identity and environment of a variant whose boot was verified."""

    kernel_boot_id: str
    token: str
    build_id_gnu: str
    release: str
    cmdline: str
    topology: MeasuredTopology
    environment: dict[str, str]
    golden_s: float
    """Seconds from the cold power cycle to the golden system's first answer."""
    kexec_s: float
    """Seconds from `kexec -l` to the variant's first answer."""
    console_bytes: int = 0
    """Bytes of the boot's console read so far."""
    ran: Sequence[RanLines] = ()
    """Which changed lines of the kernel ran; empty if the device does not report it."""


@dataclass(frozen=True)
class ScriptOutput:
    """Output of the plan's script. Both texts are made printable: see `device_text.printable`."""

    stdout: str
    stderr: str
    status: int
    seconds: float
    counts: Mapping[str, int] | None = None
    """What an instrumented device counted in the script's window, by metric without `_per_op`; None without one."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "stdout", printable(self.stdout))
        object.__setattr__(self, "stderr", printable(self.stderr))


class DeviceFailure(Exception):
    """Failure of a boot or command; `failure.kind` says whose fault it is.

    `signature` is equal for two failures of the same kind. `suspect` is true if the device itself may be broken.
    `unreachable` is true if the lab's own equipment, a console server or a power controller, does not answer, so that
    nothing is known of the device. `place_lost` is true if another client may hold the device now. `stage` is the step
    of a health check at which the boot failed.
    """

    def __init__(
        self,
        failure: Failure,
        *,
        signature: str = "",
        suspect: bool = False,
        unreachable: bool = False,
        place_lost: bool = False,
        stage: DeviceStep | None = None,
    ) -> None:
        super().__init__(failure.summary)
        self.failure = failure
        self.signature = signature or defect_key(failure.summary)
        self.suspect = suspect
        self.unreachable = unreachable
        self.place_lost = place_lost
        self.stage = stage


class Device(Protocol):
    """A device. All methods except `off` raise DeviceFailure, also as soon as the run is cancelled."""

    def boot(self, key: BootKey, kernel: Kernel) -> VerifiedBoot:
        """Power-cycle the device, boot the golden system, kexec into `kernel` and verify it."""

    def script(
        self, action: str, environment: Mapping[str, str], timeout_s: float, *, monitored: bool = False
    ) -> ScriptOutput:
        """Run the plan's script on the booted variant; if `monitored`, under the plan's `script_calls.observer`."""

    def restore(self) -> dict[str, str]:
        """Restore the conditions that the boot set on the device; return facts about that, empty if none was set."""

    def wait_for_console(self, text: str, timeout_s: float) -> bool:
        """Return True if `text` is on this boot's console, or appears there in time."""

    def off(self) -> None:
        """End the boot: power off, and report what is left on the console."""
