"""A health check told step by step: what a maintainer sees of a device, and what to do about the step that failed.

Each step needs those before it. The boot itself answers for the first ones; the plan's script names the others, in
`step` records, as it comes through them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from wqlab_contracts.enums import DeviceStep, ErrorKind, StepOutcome
from wqlab_contracts.messages import CheckStep, DeviceFacts, Failure, MeasuredTopology, RunJob

from ..backends.base import Emit
from .collect import Records
from .device import Booted, Device, DeviceFailure

STEPS = tuple(step for step in DeviceStep if step is not DeviceStep.NOISE)
HEARD_S = 10.0
"""How long a line may take from the kernel's log to the lab's console watcher."""

_SWITCH_OUTLET = (
    "Switch the outlet by hand with `labgrid-client -p {device} power cycle`. See that the exporter's "
    "NetworkPowerPort names the right outlet, and that the worker's host reaches the power switch."
)
_RUN_POWER_COMMANDS = (
    "Run the two commands of the unit's `power:` by hand, as the worker's user on the worker's host: each has to end "
    "without an error, in a minute, and the device has to follow."
)
_LAVA_SWITCHES = "Read the job in LAVA, which switches this device's power by the commands of its device dictionary."

_FIXES = {
    DeviceStep.CONSOLE: "Open it with `labgrid-client -p PLACE console` and switch the device on. Nothing at all: "
    "cable, port or power outlet are another device's. Garbage: the type's console_speed. Firmware only: the golden "
    "system's console= names another port.",
    DeviceStep.GOLDEN: "Read the console of this boot: firmware without a boot device, a boot server that does not "
    "answer, a root filesystem that is not found. If it gets there, only slowly, raise golden_timeout_s.",
    DeviceStep.KEXEC: "Read the console after `kexec_core: Starting new kernel`. Silence: console_device or "
    "kernel_arguments. No network: the recipe lacks the device's driver. See docs/hardware for pitfalls by machine.",
    DeviceStep.TOPOLOGY: "Correct the topology of the device type, or the firmware's settings (SMT, NUMA nodes per "
    "socket, cores switched off).",
    DeviceStep.DETECTORS: "Use a recipe with the fragment `observe`, and take nothing off the kernel's command line "
    "or sysctl that switches a detector or the console's log level.",
    DeviceStep.FITNESS: "Repair or replace what the step names. A plan's figures need a clock that goes right, the "
    "memory that the type declares, and storage that gives back what was written.",
    DeviceStep.SCRATCH: "List only devices by /dev/disk/by-id that nothing on the device uses, and no device that "
    "holds data: plans overwrite it.",
}


def fix(step: DeviceStep, device: DeviceFacts) -> str:
    """What to do about a step that failed on this device, where the failure itself does not say."""
    if step is not DeviceStep.POWER:
        return _FIXES[step]
    if device.backend == "lava":
        return _LAVA_SWITCHES
    return _RUN_POWER_COMMANDS if device.power else _SWITCH_OUTLET.format(device=device.name)


_SEEN = {
    DeviceStep.POWER: "switched off and on",
    DeviceStep.CONSOLE: "it speaks",
    DeviceStep.GOLDEN: "it came up",
    DeviceStep.KEXEC: "the variant came up",
    DeviceStep.TOPOLOGY: "as declared",
}
"""Of a step that a boot passed on the way to one that failed; the others are the script's."""


@dataclass
class Walk:
    """Tells the steps of one health check as they end; told again when the check is tried again."""

    job: RunJob
    emit: Emit
    now: Callable[[], datetime]

    def __post_init__(self) -> None:
        self._next = 0
        self._topology = ""

    def begin(self) -> None:
        self._next = 0

    def booted(self, booted: Booted) -> None:
        """Power, console, golden system and kexec did their work, and the topology is as declared, else the boot would
        have failed; the script has a closer look at that."""
        self._ok(DeviceStep.POWER, "switched off and on")
        self._ok(DeviceStep.CONSOLE, f"{booted.console_bytes} bytes read from power-on to the variant's first answer")
        self._ok(DeviceStep.GOLDEN, f"up {booted.golden_s:.1f} s after the power")
        self._ok(
            DeviceStep.KEXEC,
            f"{booted.release} in {booted.kexec_s:.1f} s, verified by token, boot id and build id "
            f"{booted.build_id_gnu[:12]}",
        )
        self._topology = f"{_counted(booted.topology)}: as {self.job.device.device_type} declares"

    def scripted(self, records: Records, device: Device) -> None:
        """What the script came through. Raises DeviceFailure when the console does not carry the kernel's log."""
        for step in STEPS[self._next :]:
            if step not in records.steps:
                return
            outcome, text = records.steps[step]
            if step is DeviceStep.TOPOLOGY:
                text = "; ".join(filter(None, [self._topology, text]))
            if step is DeviceStep.DETECTORS:
                if not device.heard(word_of(self.job), HEARD_S):
                    raise DeviceFailure(
                        Failure(
                            kind=ErrorKind.INFRASTRUCTURE,
                            summary=f"{self.job.device.name}: what the kernel logs does not come on the console, so "
                            "no detector would be seen",
                        ),
                        suspect=True,
                        stage=step,
                    )
                text = f"{text}; the kernel's log is heard on the console"
            self._tell(step, outcome, text)

    def failed(self, error: DeviceFailure) -> None:
        """The step at which it went wrong, and why those after it were not tried."""
        if error.failure.kind is ErrorKind.CANCELED:
            return
        step = error.stage or STEPS[min(self._next, len(STEPS) - 1)]
        at = STEPS.index(step)
        for before in STEPS[self._next : at]:
            if before in _SEEN:
                self._ok(before, _SEEN[before])
            else:
                self._tell(before, StepOutcome.SKIPPED, f"not tried: {step.value} failed before the script began")
        failure = error.failure
        if not failure.advice:
            failure = failure.model_copy(update={"advice": fix(step, self.job.device)})
        self._tell(step, StepOutcome.FAILED, failure.summary, failure)
        for later in STEPS[at + 1 :]:
            self._tell(later, StepOutcome.SKIPPED, f"needs {step.value}")

    def _ok(self, step: DeviceStep, text: str) -> None:
        self._tell(step, StepOutcome.OK, text)

    def _tell(self, step: DeviceStep, outcome: StepOutcome, text: str, failure: Failure | None = None) -> None:
        self._next = STEPS.index(step) + 1
        self.emit.event(CheckStep(at=self.now(), step=step, outcome=outcome, text=text, failure=failure))


def word_of(job: RunJob) -> str:
    """What the script prints to the kernel's log, to be heard on the console; of this run and no other."""
    return hashlib.sha256(f"{job.run_id}/{job.seed}".encode()).hexdigest()[:16]


def _counted(topology: MeasuredTopology) -> str:
    parts = {
        "CPU": topology.cpus,
        "core": len(set(topology.core)),
        f"{topology.last_level} domain": len(set(topology.l3)),
        "NUMA node": len(set(topology.node)),
        "package": len(set(topology.package)),
    }
    return ", ".join(f"{number} {name}{'' if number == 1 else 's'}" for name, number in parts.items())
