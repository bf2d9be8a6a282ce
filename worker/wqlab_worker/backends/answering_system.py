"""Ask by SSH which system runs on a device that starts an operating system of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from wqlab_contracts.enums import DeviceStep

from .console_tap import Wakeup
from .ssh import CommandResult, SshConnection, is_refused
from .verify_boot import infrastructure_failure

ANSWER_S = 10.0
"""Longest time until a machine counts as silent, and for a short command on a system of the lab."""
LOGIN_S = 30.0
"""Longest time of a login, and of a short command, once the SSH server has sent its greeting: names that DNS does not
resolve delay both."""
PAUSE_S = 2.0
"""Time between two questions to a machine that restarts."""
READ_SYSTEM = "cat /proc/sys/kernel/random/boot_id /proc/uptime /proc/cmdline"


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


class Unusable(str):
    """Reason why the lab cannot use a machine whose SSH server answers. Somebody may be working on that machine."""

    __slots__ = ()


def read_system(answer: CommandResult) -> AnsweringSystem | None:
    """Return the system that answered READ_SYSTEM; None if the answer is unreadable.

    The files of root's shell may print lines before it.
    """
    lines = answer.text.splitlines()
    for boot_id, uptime, command_line in zip(lines, lines[1:], lines[2:], strict=False):
        try:
            up_s, _idle_s = map(float, uptime.split())
            return AnsweringSystem(boot_id, up_s, command_line.strip())
        except ValueError:
            continue
    return None


def still_runs(answer: CommandResult, since_restart_s: float) -> bool:
    """Return True if the device's own system, which was told to restart, is still shutting down.

    `answer` is the answer to READ_SYSTEM, `since_restart_s` the time since the restart in seconds.

    Raises DeviceFailure if it was started in place of the golden system.
    """
    found = read_system(answer)
    if found is None or found.of_lab:
        return answer.transport_lost
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
    return True


def ask(ssh: SshConnection, wakeup: Wakeup, timeout_s: float, stopped: Callable[[], bool]) -> AnsweringSystem | str:
    """Connect anew, and return the system that answers or the reason why none does."""
    ssh.close()
    reason = ssh.connect(wakeup, stopped, timeout_s)
    if reason is not None and is_refused(reason):
        return Unusable(reason)
    if reason is not None and not stopped() and ssh.greets(timeout_s):
        reason = ssh.connect(wakeup, stopped, LOGIN_S)
        if reason is not None:
            return Unusable(reason)
    if reason is not None:
        return reason
    answer = run(ssh, wakeup, READ_SYSTEM, LOGIN_S)
    if answer is None:
        return Unusable(f"it does not answer a command in {LOGIN_S:.0f} s")
    if answer.transport_lost:
        return "the SSH connection broke"
    return read_system(answer) or Unusable(
        "its answer is unreadable: " + (answer.stderr_text + answer.text).strip()[-200:]
    )


def run(
    ssh: SshConnection, wakeup: Wakeup, command: str, timeout_s: float, stdin: bytes | None = None
) -> CommandResult | None:
    """Run a command, also after a cancellation; return None if it does not end in time, as when it cuts SSH."""
    running = ssh.start(command, wakeup, stdin)
    wakeup.wait_for(lambda: running.done, timeout_s)
    if not running.done:
        running.kill()
    return running.answer
