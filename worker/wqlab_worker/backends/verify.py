"""Whether the kernel that answers is the one that was to be booted, and whose fault it is when it is not: the same for
every backend."""

from __future__ import annotations

from collections.abc import Sequence

from wqlab_contracts.enums import DeviceStep, ErrorKind
from wqlab_contracts.messages import DeviceFacts, Failure, Kernel

from ..measure.detect import Report, signature
from ..measure.device import DeviceFailure
from . import conditions, probe
from .conditions import Standing


def infrastructure(
    summary: str,
    *,
    excerpt: str = "",
    advice: str = "",
    suspect: bool = False,
    of_variant: bool = False,
    stage: DeviceStep | None = None,
) -> DeviceFailure:
    failure = Failure(kind=ErrorKind.INFRASTRUCTURE, summary=summary, excerpt=excerpt, advice=advice)
    return DeviceFailure(failure, suspect=suspect, of_variant=of_variant, stage=stage)


def kernel_failure(report: Report) -> DeviceFailure:
    failure = Failure(
        kind=ErrorKind.KERNEL, summary=f"{report.kind.value}: {report.title}"[:500], excerpt=report.excerpt
    )
    return DeviceFailure(failure, signature=signature(report.kind, report.title))


def verified(
    answer: bytes, complaint: str, *, token: str, golden_boot_id: str, kernel: Kernel, device: DeviceFacts
) -> probe.Probe:
    """What the device said to `probe.COMMAND`, read. `golden_boot_id` is empty where nobody asked the golden system.

    Raises DeviceFailure unless token, boot id, build id and topology are what they must be.
    """
    try:
        seen = probe.parse(answer)
    except probe.ProbeError as error:
        raise infrastructure(
            f"the booted variant could not be verified: {error}", excerpt=complaint[-2000:], of_variant=True
        ) from error
    if f"wqlab.token={token}" not in seen.cmdline.split():
        raise infrastructure(f"not our boot answers: no wqlab.token={token} on its command line")
    if seen.boot_id == golden_boot_id:
        raise infrastructure("the golden system answers: kexec changed nothing")
    if seen.build_id_gnu != kernel.build_id_gnu:
        raise infrastructure(
            f"another kernel runs than the one that was built: build-id {seen.build_id_gnu} ({seen.release}), "
            f"expected {kernel.build_id_gnu} ({kernel.release})",
            advice="The image was swapped after the build. Look for the image in the artifact store.",
        )
    if differs := probe.differences(seen.topology, device.topology):
        raise infrastructure(
            f"{device.name} is not the {device.device_type} that its description declares: " + "; ".join(differs),
            advice="Correct the device type's topology, or repair the device.",
            suspect=True,
            of_variant=True,
            stage=DeviceStep.TOPOLOGY,
        )
    return seen


def met(device: DeviceFacts, found: Sequence[Standing]) -> dict[str, str]:
    """Facts of the boot's environment: each condition as it was found after it was set.

    Raises DeviceFailure for one that the type requires and the device does not have.
    """
    if lacking := conditions.unmet(device.conditions, found):
        words = "; ".join(f"{each.name} {each.wanted} is required, found {each.found}" for each in lacking)
        raise infrastructure(
            f"{device.name} does not take the conditions of {device.device_type}: {words}",
            advice="Enable it in the firmware or in the recipe's kernel configuration, or take it from `required` "
            "in the device type's conditions: then it is only recorded.",
            suspect=True,
            of_variant=True,
            stage=DeviceStep.FITNESS,
        )
    return {each.name.replace("_", " "): each.text for each in found}
