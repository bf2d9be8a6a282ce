"""Restart a device whose own operating system starts by default: by SSH, and by its power switch if SSH is silent.

The golden system is chosen for one start at a time, so every reset leads back to the own system. A running own system
is never cut off from its power: it restarts by its own command.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wqlab_contracts.enums import DeviceStep
from wqlab_contracts.messages import BootKey
from wqlab_contracts.specs import OwnSystem

from .ssh import CommandResult
from .verify_boot import infrastructure_failure

if TYPE_CHECKING:
    from .kexec import KexecStrategy

ANSWER_S = 10.0
"""Longest time for an SSH connection, or the answer to a short command."""
COMMAND_S = 60.0
"""Longest time of the command that chooses the golden system, and of a shutdown command until it returns."""
SHUTDOWN_S = 180.0
"""Longest time from `poweroff` until SSH is silent; systemd gives a service 90 s to stop."""
READ_SYSTEM = "cat /proc/sys/kernel/random/boot_id /proc/uptime /proc/cmdline"
RESTART_LAB_SYSTEM = "(sleep 1; reboot -f) > /dev/null 2>&1 < /dev/null &"
"""Golden system and variants have no services to stop, and their first process restarts nothing."""
HALT_S = 20.0
"""Time from SSH's silence until file systems are unmounted; the halted system says nothing."""
PAUSE_S = 2.0


@dataclass(frozen=True)
class AnsweringSystem:
    """The system that answers by SSH."""

    boot_id: str
    up_s: float
    command_line: str

    @property
    def of_lab(self) -> bool:
        """Return True for the golden system and variants."""
        return " wqlab.ssh=" in f" {self.command_line}"

    @property
    def is_variant(self) -> bool:
        return " wqlab.token=" in f" {self.command_line}"


def read_system(answer: CommandResult) -> AnsweringSystem | None:
    """Return the system that answered READ_SYSTEM; None if the answer is unreadable."""
    try:
        boot_id, uptime, command_line = answer.text.split("\n", 2)
        return AnsweringSystem(boot_id, float(uptime.split()[0]), command_line.strip())
    except (ValueError, IndexError):
        return None


def leave(strategy: KexecStrategy) -> None:
    """Let the device start its own system, without waiting for it. Call it also after a cancellation.

    A device that the lab has restarted and that is silent now gets a power cycle. Raises DeviceFailure if its power
    cannot be switched.
    """
    found = _ask(strategy, ANSWER_S, lambda: False)
    if isinstance(found, AnsweringSystem):
        if found.of_lab:
            _run(strategy, RESTART_LAB_SYSTEM, ANSWER_S)
    elif strategy.restarted:
        _cycle_power(strategy)
    strategy.restarted = False
    strategy.ssh.close()


def restart_into_golden(strategy: KexecStrategy, key: BootKey) -> float:
    """Choose the golden system on the running own system and restart; return the time (monotonic seconds) of that.

    The caller waits for the golden system. Raises DeviceFailure if the own system does not answer, also after a power
    cycle, or does not obey.
    """
    own = _own(strategy)
    strategy.stage = DeviceStep.GOLDEN
    await_own_system(strategy)
    _tell(strategy, own.choose_golden)
    strategy.tap.begin_boot(key)
    started = time.monotonic()
    strategy.restarted = True
    _tell(strategy, "reboot")
    strategy.ssh.close()
    return started


def await_own_system(strategy: KexecStrategy) -> None:
    """Wait until the own system answers by SSH: switch a silent device on, and cycle its power once if that is not
    enough. Raises DeviceFailure."""
    own = _own(strategy)
    if _await(strategy, 0) is None:
        return
    strategy.stage = DeviceStep.POWER
    strategy.restore_power()
    strategy.stage = DeviceStep.GOLDEN
    if _await(strategy, own.timeout_s) is None:
        return
    strategy.stage = DeviceStep.POWER
    _cycle_power(strategy)
    strategy.stage = DeviceStep.GOLDEN
    reason = _await(strategy, own.timeout_s)
    if reason is not None:
        raise infrastructure_failure(
            f"the device's own system does not answer by SSH in {own.timeout_s} s, also after a power cycle: {reason}",
            advice="Look at the BMC's screen: the own system may wait for a key, a password or a disk check, or have "
            "another address. Start it, and see that its SSH server starts at boot. If it only takes longer, correct "
            "`timeout_s` of the unit's `own_system:`.",
            suspect=True,
            stage=DeviceStep.GOLDEN,
        )


def try_power_switch(strategy: KexecStrategy) -> None:
    """Halt the own system, cycle the power and wait until the system is back: only the switch leads there.

    Restarts by SSH need no switch, and a switch that does not work would be noticed when a kernel hangs. Raises
    DeviceFailure.
    """
    own = _own(strategy)
    strategy.stage = DeviceStep.GOLDEN
    await_own_system(strategy)
    _end_own_system(strategy, "halt")
    strategy.wait(lambda: False, HALT_S)
    strategy.stage = DeviceStep.POWER
    _cycle_power(strategy)
    reason = _await(strategy, own.timeout_s)
    if reason is not None:
        raise infrastructure_failure(
            f"the device did not come back in {own.timeout_s} s after its power was switched off and on: {reason}",
            advice="Its own system was halted, and the power switch accepted both commands. Switch it by hand: "
            "the switch may be another machine's, or the firmware may not start the machine when power returns.",
            suspect=True,
            stage=DeviceStep.POWER,
        )


def check_own_system(found: AnsweringSystem, since_restart_s: float) -> None:
    """Check the own system that answers after a restart: it may still be shutting down.

    Raises DeviceFailure if it was started in place of the golden system.
    """
    if found.up_s < since_restart_s:
        raise infrastructure_failure(
            "the boot loader started the device's own system in place of the golden system",
            advice="Run the unit's `choose_golden` on its own system, and `grub-editenv list`: next_entry must name "
            "the golden system's entry (`menuentry … --id`). GRUB can read and clear next_entry on ext4, XFS and FAT, "
            "but not on btrfs, LVM or RAID. See that the entry is in grub.cfg, and that no other boot loader starts.",
            excerpt=found.command_line[-2000:],
            suspect=True,
            stage=DeviceStep.GOLDEN,
        )


def shut_down(strategy: KexecStrategy) -> None:
    """Shut down whatever runs before its power is cut. Raises DeviceFailure if it goes on answering by SSH."""
    found = _ask(strategy, ANSWER_S, strategy.interrupted)
    if isinstance(found, AnsweringSystem) and not found.of_lab:
        _end_own_system(strategy, "poweroff")
    strategy.ssh.close()


def _end_own_system(strategy: KexecStrategy, command: str) -> None:
    """Run `poweroff` or `halt` on the own system and wait until SSH is silent. Raises DeviceFailure."""
    _tell(strategy, command)
    deadline = time.monotonic() + SHUTDOWN_S
    while isinstance(_ask(strategy, PAUSE_S, strategy.interrupted), AnsweringSystem):
        strategy.wait(lambda: False, PAUSE_S)
        if time.monotonic() > deadline:
            raise infrastructure_failure(
                f"the device's own system has not shut down in {SHUTDOWN_S:.0f} s",
                advice="Shut it down by hand, and see what holds it up.",
                suspect=True,
                stage=DeviceStep.GOLDEN,
            )


def _own(strategy: KexecStrategy) -> OwnSystem:
    own = strategy.device.own_system
    assert own is not None  # noqa: S101 - callers checked it
    return own


def _await(strategy: KexecStrategy, timeout_s: float) -> str | None:
    """Wait until the own system answers by SSH; return None, or the reason. Raises DeviceFailure if it refuses the key.

    The system of an earlier boot may still answer for a moment.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        found = _ask(strategy, ANSWER_S, strategy.interrupted)
        strategy.raise_if_interrupted()
        if isinstance(found, AnsweringSystem):
            if not found.of_lab:
                return None
            reason = "a system of the lab goes on running, though it was told to restart"
        else:
            reason = found
            _raise_if_refused(reason)
        if time.monotonic() >= deadline:
            return reason
        strategy.wait(lambda: False, PAUSE_S)


def _raise_if_refused(reason: str) -> None:
    """Raise DeviceFailure if the device's SSH server refused the lab's key: it runs, so its power must not be cut."""
    if "ermission denied" in reason:
        raise infrastructure_failure(
            f"the device's own system refuses the lab's key: {reason}",
            advice="Append the lab's public key (`keys/lab_ed25519.pub` in its state folder) to "
            "/root/.ssh/authorized_keys of the own system, and allow root to log in with a key "
            "(`PermitRootLogin prohibit-password`).",
            suspect=True,
            stage=DeviceStep.GOLDEN,
        )


def _cycle_power(strategy: KexecStrategy) -> None:
    strategy.cut_power()
    strategy.wakeup.wait_for(lambda: False, strategy.device.boot.power_off_s)
    strategy.restore_power()


def _ask(strategy: KexecStrategy, timeout_s: float, stopped: Callable[[], bool]) -> AnsweringSystem | str:
    """Connect anew, and return the system that answers or the reason why none does."""
    strategy.ssh.close()
    reason = strategy.ssh.connect(strategy.wakeup, stopped, timeout_s)
    if reason is not None:
        return str(reason)
    answer = _run(strategy, READ_SYSTEM, ANSWER_S)
    if answer is None or answer.transport_lost:
        return "the SSH connection broke"
    return read_system(answer) or "its answer is unreadable: " + (answer.stderr_text or answer.text)[-200:]


def _tell(strategy: KexecStrategy, command: str) -> None:
    """Run a command on the own system. Raises DeviceFailure if it fails; it may break the connection."""
    answer = _run(strategy, command, COMMAND_S)
    if answer is not None and answer.status and not answer.transport_lost:
        raise infrastructure_failure(
            f"`{command}` failed on the device's own system (exit status {answer.status})",
            excerpt=(answer.stderr_text + answer.text)[-2000:],
            advice=f"Log in to its own system as root by SSH and run `{command}`.",
            suspect=True,
            stage=DeviceStep.GOLDEN,
        )


def _run(strategy: KexecStrategy, command: str, timeout_s: float) -> CommandResult | None:
    """Run a command, also after a cancellation; return None if it does not end in time, as when it cuts SSH."""
    running = strategy.ssh.start(command, strategy.wakeup)
    strategy.wakeup.wait_for(lambda: running.done, timeout_s)
    if not running.done:
        running.kill()
    answer: CommandResult | None = running.answer
    return answer
