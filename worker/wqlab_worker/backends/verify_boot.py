"""Verify that the booted kernel is the one under test, and say whose fault it is if not. Shared by all backends."""

from __future__ import annotations

from collections.abc import Sequence

from wqlab_contracts.consoles.detect import Report
from wqlab_contracts.enums import DeviceStep, ErrorKind
from wqlab_contracts.messages import DeviceFacts, Failure, Kernel

from ..measure.device_interface import DeviceFailure
from . import condition_commands, probe
from .condition_commands import ConditionResult


def infrastructure_failure(
    summary: str,
    *,
    excerpt: str = "",
    advice: str = "",
    suspect: bool = False,
    unreachable: bool = False,
    of_variant: bool = False,
    place_lost: bool = False,
    stage: DeviceStep | None = None,
) -> DeviceFailure:
    failure = Failure(
        kind=ErrorKind.INFRASTRUCTURE, summary=summary, excerpt=excerpt, advice=advice, of_variant=of_variant
    )
    return DeviceFailure(failure, suspect=suspect, unreachable=unreachable, place_lost=place_lost, stage=stage)


def kernel_failure(report: Report, *, of_variant: bool = True) -> DeviceFailure:
    """Return the failure of a kernel that reported a fatal error: the device's, if its hardware caused it.

    `of_variant`: the kernel under test reported it. It can print what it likes, so its text excuses nothing: the block
    counts against its arm until the other kernel fails on this device too.
    """
    if report.of_hardware:
        return infrastructure_failure(
            f"the device's hardware reported an uncorrected error: {report.title}"[:500],
            excerpt=report.excerpt,
            advice="Read the lines with `[Hardware Error]` before it: a processor, memory module or card is broken. "
            "`mcelog`, `rasdaemon` or the BMC's event log (`ipmitool sel list`) name it.",
            suspect=True,
            of_variant=of_variant,
        )
    failure = Failure(
        kind=ErrorKind.KERNEL,
        summary=f"{report.kind.value}: {report.title}"[:500],
        excerpt=report.excerpt,
        stack=report.stack,
        defect=report.defect,
    )
    return DeviceFailure(failure, signature=report.defect)


def verify_variant(
    answer: bytes, stderr_text: str, *, token: str, golden_boot_id: str, kernel: Kernel, device: DeviceFacts
) -> probe.Probe:
    """Parse the device's output of `probe.COMMAND` and verify it. `golden_boot_id` is empty if it is not known.

    Raises DeviceFailure unless token, boot id, build id and topology are as expected.
    """
    try:
        seen = probe.parse(answer)
    except probe.ProbeError as error:
        raise infrastructure_failure(
            f"the booted variant could not be verified: {error}", excerpt=stderr_text[-2000:], of_variant=True
        ) from error
    if f"wqlab.token={token}" not in seen.cmdline.split():
        raise infrastructure_failure(
            f"another boot answers: no wqlab.token={token} on its command line", of_variant=True
        )
    if seen.boot_id == golden_boot_id:
        raise infrastructure_failure("the golden system answers: kexec changed nothing")
    if seen.build_id_gnu != kernel.build_id_gnu:
        raise infrastructure_failure(
            f"the running kernel is not the one that was built: build-id {seen.build_id_gnu} ({seen.release}), "
            f"expected {kernel.build_id_gnu} ({kernel.release})",
            advice="The image was swapped after the build, or the kernel lies. Look for it in the artifact store.",
            of_variant=True,
        )
    if differing := probe.topology_differences(seen.topology, device.topology):
        smt = seen.environment.get("smt", "")
        smt_off = device.conditions.smt is not False and device.topology.threads_per_core > 1 and smt not in {"", "on"}
        raise infrastructure_failure(
            f"{device.name} is not the {device.device_type} that its description declares: " + "; ".join(differing),
            advice=f"SMT is declared, and the kernel says {smt}: enable it in the firmware, or declare `smt: false` "
            "and one thread per core."
            if smt_off
            else "Correct the device type's topology, or repair the device.",
            suspect=True,
            of_variant=True,
            stage=DeviceStep.TOPOLOGY,
        )
    return seen


_NOT_SATISFIED = (
    "Enable it in the firmware or in the recipe's kernel configuration, or take it from `required` in the device "
    "type's conditions: then it is only recorded."
)
_TOO_HOT = (
    "The device did not cool down in time: check its fans, filters and the room, and that nothing else runs on it. If "
    "it is only slow, raise `cool_s`; if it is always warmer, raise `start_below_c`."
)


def check_conditions(device: DeviceFacts, results: Sequence[ConditionResult]) -> dict[str, str]:
    """Return each condition as it was read back, as facts of the boot's environment.

    Raises DeviceFailure if a condition that the device type requires is not satisfied.
    """
    if unsatisfied := condition_commands.unmet_conditions(device.conditions, results):
        differences = "; ".join(
            f"{each.name} {each.requested} is required, found {each.actual}" for each in unsatisfied
        )
        raise infrastructure_failure(
            f"{device.name} does not have the conditions of {device.device_type}: {differences}",
            advice=_TOO_HOT if all(each.name == "temperature" for each in unsatisfied) else _NOT_SATISFIED,
            suspect=True,
            of_variant=True,
            stage=DeviceStep.FITNESS,
        )
    return {each.fact: each.text for each in results}
