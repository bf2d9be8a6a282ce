"""Diagnose a boot without results. LAVA reports each such job as incomplete, mostly with error type `Job`."""

from __future__ import annotations

from wqlab_contracts.enums import DeviceStep, FindingKind
from wqlab_contracts.messages import DeviceFacts

from ...measure.device_interface import DeviceFailure
from ..console_tap import ConsoleTap
from ..verify_boot import infrastructure_failure, kernel_failure
from .job_log import JobTracker

LAVA_ERROR_TYPES = ("Infrastructure", "Bug", "Configuration")
"""Error types of faults of LAVA itself."""


def diagnose_boot(
    tracker: JobTracker,
    number: int,
    device: DeviceFacts,
    tap: ConsoleTap,
    *,
    lava_error: str,
    silent: bool,
    results_at: str,
) -> DeviceFailure:
    """Return the failure of boot `number` of the job, whose console shows no fatal kernel report.

    `lava_error` is LAVA's own error. `silent` is true if the console was silent for longer than any call of the script
    may take. `results_at` is the address to which the device sends its results.
    """
    boot, job = tracker.logs[number], tracker.job
    where = f"LAVA job {tracker.job_id} on {device.name}"
    here = tracker.reached == number
    if job is not None and job.health == "Canceled":
        return infrastructure_failure(
            f"{where} was cancelled in LAVA, not by us",
            advice="A user of that LAVA lab needed the device. The run continues with its remaining blocks.",
        )
    if tracker.reached < number or tracker.phase == "deploy":
        return infrastructure_failure(
            f"{where} ended before it booted anything: {lava_error}", suspect=lava_error.startswith(LAVA_ERROR_TYPES)
        )
    if here and tracker.phase == "golden":
        return infrastructure_failure(
            f"the golden system did not come up: {lava_error}", suspect=True, stage=DeviceStep.GOLDEN
        )
    if boot.refused:
        return infrastructure_failure(f"{where} did not get to the variant: {boot.refused}", stage=DeviceStep.KEXEC)
    if tracker.uses_kexec and not boot.jumped:
        return infrastructure_failure(
            f"{where}: the golden system did not start the variant: {lava_error}", suspect=True
        )
    if lava_error.startswith(LAVA_ERROR_TYPES):
        return infrastructure_failure(f"{where} broke off: {lava_error}", suspect=True)
    restarted = tap.ready is not None and tap.ready.token != tracker.tokens[number]
    hang = ""
    if here and tracker.phase == "kexec":
        hang = f"the variant did not come up in {device.boot.variant_timeout_s} s"
        if restarted:
            hang = "the variant rebooted by itself before its userland was ready"
    elif restarted:
        hang = "the kernel under test is gone: the device restarted by itself while it was measured"
    elif silent or (tracker.ended and "timed out" in lava_error):
        hang = "no results and no end of the test: the device does not answer"
    if hang:
        return kernel_failure(tap.add_finding(FindingKind.HANG, hang, ""))
    return infrastructure_failure(
        f"{where} measured this boot, but its results did not arrive: {lava_error}",
        advice=f"The device has to reach the lab's worker at {results_at}; see docs/lava.md.",
        of_variant=True,
    )
