"""Failures of a boot that did not come up or does not answer, with what its console shows as the reason."""

from __future__ import annotations

from wqlab_contracts.enums import DeviceStep

from ..measure.device_interface import DeviceFailure
from . import diagnose_console
from .console_tap import ConsoleTap
from .ssh import is_key_refused
from .verify_boot import infrastructure_failure

KEXEC_MARKER = "wqlab: kexec -e"
"""Text that the golden system writes to its kernel's log before it jumps."""
NEW_KERNEL = "Starting new kernel"
"""Linux prints this at the same level when its devices are shut down and the jump comes next (kernel/kexec_core.c)."""
CONSOLE_BROKE_ADVICE = (
    "The lab opens it again for the next boot. A BMC that restarts ends its sessions, and so does another user of the "
    "console (`ipmitool sol activate`, a console server's second client). If it goes on, read the console server's log."
)


def golden_not_up(tap: ConsoleTap, timeout_s: float, ssh_said: str | None) -> DeviceFailure:
    """Return the failure of a golden system that did not come up in `timeout_s`. `ssh_said`: why SSH failed last."""
    output = f"{tap.offset} bytes came on the console" if tap.offset else "the console stayed silent"
    stage = DeviceStep.GOLDEN
    if tap.bytes_while_off:
        output += f", and {tap.bytes_while_off} bytes before, when the power was off"
        advice = (
            "A device without power prints nothing: the BMC or PDU accepted the command, and the device did not "
            "go off. Switch it by hand and look: the outlet may belong to another device, a relay may stick, a second "
            "power supply may be connected, or the console to another device."
        )
        stage = DeviceStep.POWER
    elif not tap.offset:
        advice = (
            "Either the device did not go on, though the BMC or PDU accepted the command, or its console is mute. Look "
            f"at the device's power light. It is on: {diagnose_console.MUTE_ADVICE} It is off: check outlet and power "
            "supply."
        )
        stage = DeviceStep.CONSOLE
    elif hint := diagnose_console.boot_hint(tap.tail):
        output += f"; {hint.text}"
        advice = hint.advice
    else:
        advice = (
            "The lab tries again, and checks the device. If that fails too, check the device's power, console and boot "
            "disk."
        )
    refused = f"; SSH said: {ssh_said}" if ssh_said and is_key_refused(ssh_said) else ""
    return infrastructure_failure(
        f"the golden system did not come up in {timeout_s:.0f} s: {output}{refused}",
        excerpt=diagnose_console.last_lines(tap.tail),
        advice=advice,
        suspect=True,
        stage=stage,
    )


def never_off(up_s: float, since_power_on_s: float, command_line: str) -> DeviceFailure:
    """Return the failure of a device whose system has been up for longer than its power."""
    return infrastructure_failure(
        f"the device was never off: the system that answers has been up for {up_s:.0f} s, and the power was "
        f"switched on {since_power_on_s:.0f} s ago",
        advice="The BMC or PDU accepted the command, and this device did not go off: the command switches "
        "something else, or a relay sticks, or a second power supply is connected. Find the outlet or command "
        "of this device, and switch it by hand.",
        excerpt=command_line[-2000:],
        suspect=True,
        stage=DeviceStep.POWER,
    )


def no_ssh_answer(
    tap: ConsoleTap, system: str, address: str, reason: str, *, of_variant: bool, stage: DeviceStep | None
) -> DeviceFailure:
    """Return the failure of a system that printed its ready line and does not answer by SSH at `address`."""
    report = diagnose_console.network_report(tap.tail)
    return infrastructure_failure(
        f"{system} is up, but does not answer by SSH: {reason}" + (f". Its console says: {report}" if report else ""),
        advice=diagnose_console.network_advice(report, address),
        excerpt=diagnose_console.last_lines(tap.tail) if report else "",
        suspect=True,
        of_variant=of_variant,
        stage=stage,
    )


def hung_before_jump(tap: ConsoleTap, timeout_s: float) -> DeviceFailure | None:
    """Return the failure of a golden system that did not get to the jump; None if it did, or if that is not known.

    It is known if the kernel's log comes on the console: then the marker is there, and the line of the jump is not.
    """
    tail = tap.tail.decode("utf-8", "replace")
    _, marked, after = tail.rpartition(KEXEC_MARKER)
    # The line of the jump may be lost; then the first line of the new kernel shows the jump.
    if not marked or NEW_KERNEL in after or "Linux version" in after:
        return None
    return infrastructure_failure(
        f"kexec did not start the variant in {timeout_s:.0f} s: the golden system hung while it shut down its devices",
        advice="The last line of the console may name the device. A network card or a disk controller whose driver "
        "hangs at shutdown is unbound before kexec, or left out of the golden kernel.",
        excerpt=diagnose_console.last_lines(after.encode()),
        suspect=True,
        stage=DeviceStep.KEXEC,
    )


def unusable_console(tap: ConsoleTap, device: str) -> DeviceFailure | None:
    """Return the failure of a device that came up by SSH while its console showed nothing, or no text; else None.

    A crash would not be seen: a boot that seems clean would prove nothing.
    """
    if not tap.offset:
        return infrastructure_failure(
            f"the console of {device} is mute: the device answers by SSH, but not one byte came from power on to here",
            advice=diagnose_console.MUTE_ADVICE,
            suspect=True,
            stage=DeviceStep.CONSOLE,
        )
    if diagnose_console.is_garbled(tap.tail):
        return infrastructure_failure(
            f"the console of {device} is garbled: {tap.offset} bytes came, and they are not text, though the device "
            "answers by SSH",
            advice=diagnose_console.SPEED_ADVICE,
            excerpt=diagnose_console.last_lines(tap.tail)[-1000:],
            suspect=True,
            stage=DeviceStep.CONSOLE,
        )
    return None
