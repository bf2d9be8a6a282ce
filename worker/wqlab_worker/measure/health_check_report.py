"""Report the steps of a health check with their outcomes, and advice for the step that failed.

Each step needs those before it. The boot determines the first steps; the plan's script reports the others in `step`
records.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from wqlab_contracts.enums import DeviceStep, ErrorKind, StepOutcome
from wqlab_contracts.messages import CheckStep, DeviceFacts, Failure, MeasuredTopology, RunJob

from ..backends.interface import EventSink
from .collect import Records
from .device_interface import Device, DeviceFailure, VerifiedBoot

STEPS = tuple(DeviceStep)
CONSOLE_MARKER_TIMEOUT_S = 10.0
"""Longest time for a line of the kernel's log to appear on the console."""

_SWITCH_OUTLET = (
    "Switch the outlet by hand with `labgrid-client -p {device} power cycle`. Check that the exporter's "
    "NetworkPowerPort names the right outlet, and that the worker's host reaches the power switch."
)
_RUN_POWER_COMMANDS = (
    "Run the two commands of the device's `power:` by hand, as the worker's user on the worker's host: each has to end "
    "without an error, in a minute, and the device has to follow."
)
_NETCONSOLE_SILENT = (
    "Look whether datagrams arrive on the receiver's host: `tcpdump -ni INTERFACE udp port PORT`. None: the golden "
    "system's netconsole= names another address, interface or MAC address, or the golden system does not start. Some: "
    "wqlab-netconsole listens elsewhere, or its --from is not the device's address."
)
_LAVA_SWITCHES = "Read the job in LAVA, which switches this device's power by the commands of its device dictionary."

_FIXES = {
    DeviceStep.CONSOLE: "Open it with `labgrid-client -p PLACE console` and switch the device on. No output: "
    "cable, port or power outlet belong to another device. Garbage: wrong console_speed in the device type. Firmware "
    "only: the golden system's console= names another port.",
    DeviceStep.GOLDEN: "Read the console of this boot: firmware without a boot device, a boot server that does not "
    "answer, a root filesystem that is not found. If the boot is only slow, raise golden_timeout_s.",
    DeviceStep.KEXEC: "Read the console after `kexec_core: Starting new kernel`. Silence: console_device or "
    "kernel_arguments. No network: the recipe lacks the device's driver. See docs/hardware for pitfalls by machine.",
    DeviceStep.TOPOLOGY: "Correct the topology of the device type, or the firmware's settings (SMT, NUMA nodes per "
    "socket, cores switched off).",
    DeviceStep.DETECTORS: "Use a recipe with the fragment `observe`, and take nothing off the kernel's command line "
    "or sysctl that switches a detector or the console's log level.",
    DeviceStep.FITNESS: "Repair or replace what the step names. A plan's figures need an accurate clock, the memory "
    "that the device type declares, and storage that returns the written data.",
    DeviceStep.SCRATCH: "List only devices by /dev/disk/by-id that nothing on the device uses, and no device that "
    "holds data: plans overwrite it.",
}


def fix(step: DeviceStep, device: DeviceFacts) -> str:
    """Return advice for a step that failed on this device, if the failure has none."""
    if step is DeviceStep.CONSOLE and device.netconsole is not None:
        return _NETCONSOLE_SILENT
    if step is not DeviceStep.POWER:
        return _FIXES[step]
    if device.backend == "lava":
        return _LAVA_SWITCHES
    return _RUN_POWER_COMMANDS if device.power else _SWITCH_OUTLET.format(device=device.name)


_PASSED_TEXTS = {
    DeviceStep.POWER: "switched off and on",
    DeviceStep.CONSOLE: "output received",
    DeviceStep.GOLDEN: "it came up",
    DeviceStep.KEXEC: "the variant came up",
    DeviceStep.TOPOLOGY: "as declared",
}
"""Texts of the steps that a boot passed before one failed; the script reports the others."""


@dataclass
class HealthCheckReport:
    """Report the steps of one health check as they end. A repeated check reports them again."""

    job: RunJob
    emit: EventSink
    now: Callable[[], datetime]

    def __post_init__(self) -> None:
        self._next = 0
        self._topology = ""

    def begin(self) -> None:
        """Start over with the first step."""
        self._next = 0

    def record_boot(self, booted: VerifiedBoot) -> None:
        """Report the steps that a verified boot has passed: power, console, golden system, kexec.

        The topology is as declared too; the script checks it in detail and reports that step.
        """
        own_system = self.job.device.own_system is not None
        power = "switched off and on" + (", and its own system came back" if own_system else "")
        since = "the restart of its own system" if own_system else "the power"
        self._ok(DeviceStep.POWER, power)
        self._ok(DeviceStep.CONSOLE, f"{booted.console_bytes} bytes read from power-on to the variant's first answer")
        self._ok(DeviceStep.GOLDEN, f"up {booted.golden_s:.1f} s after {since}")
        self._ok(
            DeviceStep.KEXEC,
            f"{booted.release} in {booted.kexec_s:.1f} s, verified by token, boot id and build id "
            f"{booted.build_id_gnu[:12]}",
        )
        self._topology = f"{_format_topology(booted.topology)}: as {self.job.device.device_type} declares"

    def record_script(self, records: Records, device: Device) -> None:
        """Report the steps that the script passed. Raises DeviceFailure if the kernel's log is not on the console."""
        for step in STEPS[self._next :]:
            if step not in records.steps:
                return
            outcome, text = records.steps[step]
            if step is DeviceStep.TOPOLOGY:
                text = "; ".join(filter(None, [self._topology, text]))
            if step is DeviceStep.DETECTORS:
                if not device.wait_for_console(console_marker(self.job), CONSOLE_MARKER_TIMEOUT_S):
                    raise DeviceFailure(
                        Failure(
                            kind=ErrorKind.INFRASTRUCTURE,
                            summary=f"{self.job.device.name}: the kernel's log does not appear on the console, so "
                            "no detector would be seen",
                            advice="Read the console of this boot. Lines are broken or missing: the BMC or console "
                            "server loses characters when the kernel prints fast; lower `console_speed` and print "
                            "less. No line of the kernel at all: `console_device` names another port than the one that "
                            "is read, or `kernel_arguments` or a sysctl lower the console's log level.",
                        ),
                        suspect=True,
                        stage=step,
                    )
                text = f"{text}; the kernel's log appears on the console"
            self._report(step, outcome, text)

    def record_failure(self, error: DeviceFailure) -> None:
        """Report the step that failed, and the later ones as skipped."""
        if error.failure.kind is ErrorKind.CANCELED:
            return
        step = error.stage or STEPS[min(self._next, len(STEPS) - 1)]
        at = STEPS.index(step)
        for before in STEPS[self._next : at]:
            if before in _PASSED_TEXTS:
                self._ok(before, _PASSED_TEXTS[before])
            else:
                self._report(before, StepOutcome.SKIPPED, f"not tried: {step.value} failed before the script began")
        failure = error.failure
        if not failure.advice:
            failure = failure.model_copy(update={"advice": fix(step, self.job.device)})
        self._report(step, StepOutcome.FAILED, failure.summary, failure)
        for later in STEPS[at + 1 :]:
            self._report(later, StepOutcome.SKIPPED, f"needs {step.value}")

    def _ok(self, step: DeviceStep, text: str) -> None:
        self._report(step, StepOutcome.OK, text)

    def _report(self, step: DeviceStep, outcome: StepOutcome, text: str, failure: Failure | None = None) -> None:
        self._next = STEPS.index(step) + 1
        self.emit.event(CheckStep(at=self.now(), step=step, outcome=outcome, text=text, failure=failure))


def console_marker(job: RunJob) -> str:
    """Return the text that the script writes to the kernel's log, to find it on the console; unique to the run."""
    return hashlib.sha256(f"{job.run_id}/{job.seed}".encode()).hexdigest()[:16]


def _format_topology(topology: MeasuredTopology) -> str:
    parts = {
        "CPU": topology.cpus,
        "core": len(set(topology.core)),
        f"{topology.last_level} domain": len(set(topology.l3)),
        "NUMA node": len(set(topology.node)),
        "package": len(set(topology.package)),
    }
    return ", ".join(f"{number} {name}{'' if number == 1 else 's'}" for name, number in parts.items())
