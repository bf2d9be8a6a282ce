"""Who is to blame for a boot that brought no results: to LAVA each such job is incomplete, most with the type `Job`."""

from __future__ import annotations

from wqlab_contracts.enums import DeviceStep, FindingKind
from wqlab_contracts.messages import DeviceFacts

from ...measure.device import DeviceFailure
from ..console import ConsoleTap
from ..verify import infrastructure, kernel_failure
from .job_log import Flight

LABS_OWN = ("Infrastructure", "Bug", "Configuration")
"""Types of errors that LAVA itself answers for."""


def blame(
    flight: Flight, number: int, device: DeviceFacts, tap: ConsoleTap, *, said: str, silent: bool, results_at: str
) -> DeviceFailure:
    """Of the flight's boot `number`, on whose console no kernel reported its end.

    `said` is LAVA's own error, `silent` that the console was silent for longer than any call of the script may take,
    `results_at` where the device was to bring its results.
    """
    boot, job = flight.logs[number], flight.job
    where = f"LAVA job {flight.job_id} on {device.name}"
    here = flight.reached == number
    if job is not None and job.health == "Canceled":
        return infrastructure(
            f"{where} was cancelled in LAVA, not by us",
            advice="Somebody of that LAVA lab wanted the device. The run goes on with its remaining blocks.",
        )
    if flight.reached < number or flight.phase == "deploy":
        return infrastructure(f"{where} ended before it booted anything: {said}", suspect=said.startswith(LABS_OWN))
    if here and flight.phase == "golden":
        return infrastructure(f"the golden system did not come up: {said}", suspect=True, stage=DeviceStep.GOLDEN)
    if boot.refused:
        return infrastructure(f"{where} did not get to the variant: {boot.refused}", stage=DeviceStep.KEXEC)
    if flight.by_golden and not boot.jumped:
        return infrastructure(f"{where}: the golden system did not start the variant: {said}", suspect=True)
    if said.startswith(LABS_OWN):
        return infrastructure(f"{where} broke off: {said}", suspect=True, of_variant=True)
    restarted = tap.ready is not None and tap.ready.token != flight.tokens[number]
    hang = ""
    if here and flight.phase == "kexec":
        hang = f"the variant did not come up in {device.boot.variant_timeout_s} s"
        if restarted:
            hang = "the variant rebooted by itself before its userland was ready"
    elif restarted:
        hang = "the kernel under test is gone: the device restarted by itself while it was measured"
    elif silent or (flight.over and "timed out" in said):
        hang = "no results and no end of the test: the device does not answer"
    if hang:
        return kernel_failure(tap.found(FindingKind.HANG, hang, ""))
    return infrastructure(
        f"{where} measured this boot, but its results did not arrive: {said}",
        advice=f"The device has to reach the lab's worker at {results_at}; see docs/lava.md.",
        of_variant=True,
    )
