"""What the measuring loop asks of a device, whichever way it is reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from wqlab_contracts.defects import defect
from wqlab_contracts.enums import DeviceStep
from wqlab_contracts.messages import BootKey, Failure, Kernel, MeasuredTopology

from .text import printable


@dataclass(frozen=True)
class Booted:
    """What a variant said of itself after its boot was verified."""

    kernel_boot_id: str
    token: str
    build_id_gnu: str
    release: str
    cmdline: str
    topology: MeasuredTopology
    environment: dict[str, str]
    golden_s: float
    """Cold power cycle to the golden system's first answer."""
    kexec_s: float
    """Start of `kexec -l` to the variant's first answer."""
    console_bytes: int = 0
    """Read from its console so far."""


@dataclass(frozen=True)
class ScriptOutput:
    """Both texts are printable, whatever a backend hands over: see `text.printable`."""

    stdout: str
    stderr: str
    status: int
    seconds: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "stdout", printable(self.stdout))
        object.__setattr__(self, "stderr", printable(self.stderr))


class DeviceFailure(Exception):
    """A boot or command that did not end well, with who is to blame.

    `signature` is equal for two deaths of the same kind; `suspect` says that the device itself is in doubt;
    `of_variant` that the kernel under test was running and may be the cause of what looks like the lab's failure.
    `stage` is how far a check of the device had come, where the boot itself failed.
    """

    def __init__(
        self,
        failure: Failure,
        *,
        signature: str = "",
        suspect: bool = False,
        of_variant: bool = False,
        stage: DeviceStep | None = None,
    ) -> None:
        super().__init__(failure.summary)
        self.failure = failure
        self.signature = signature or defect(failure.summary)
        self.suspect = suspect
        self.of_variant = of_variant
        self.stage = stage


class Device(Protocol):
    """All but `off` raise DeviceFailure, and return early with one when the run is cancelled."""

    def boot(self, key: BootKey, kernel: Kernel) -> Booted:
        """Cold power cycle, golden system, kexec into `kernel`, verified."""

    def script(
        self, action: str, environment: Mapping[str, str], timeout_s: float, *, monitored: bool = False
    ) -> ScriptOutput:
        """Runs the plan's script on the booted variant; `monitored`: by the plan's `monitor.SCRIPT`."""

    def restore(self) -> dict[str, str]:
        """Puts back what the boot had set on the device; facts about that, empty when there was nothing."""

    def heard(self, word: str, timeout_s: float) -> bool:
        """Whether `word` comes, or has come, on the console in this boot."""

    def off(self) -> None:
        """Ends the boot: power off, everything that the console still holds is reported."""
