"""Restart a device whose own operating system starts by default: by SSH, and by its power switch if SSH is silent.

The golden system is chosen for one start at a time, so every reset leads back to the own system. A running own system
is never cut off from its power: it restarts by its own command.
"""

from __future__ import annotations

import time

import attr
import structlog
from labgrid import target_factory

from wqlab_contracts.enums import DeviceStep
from wqlab_contracts.messages import BootKey
from wqlab_contracts.specs import OwnSystem

from ..measure.device_interface import DeviceFailure
from .answering_system import ANSWER_S, PAUSE_S, AnsweringSystem, Unusable, ask, run
from .kexec import KexecStrategy, Status
from .ssh import CommandResult, is_key_refused
from .verify_boot import infrastructure_failure

log = structlog.get_logger()

COMMAND_S = 60.0
"""Longest time of the command that chooses the golden system, and of a shutdown command until it returns."""
SHUTDOWN_S = 180.0
"""Longest time of a shutdown; systemd gives a service 90 s to stop."""
RESTART_LAB_SYSTEM = "(sleep 1; reboot -f) > /dev/null 2>&1 < /dev/null &"
"""Golden system and variants have no services to stop, and their first process restarts nothing."""
HALT_S = 120.0
"""Time from SSH's silence until file systems are unmounted. The SSH server stops first, other services may take 90 s,
and nothing tells that the system has halted."""
CHOSEN = " The golden system remains chosen: it starts at the next restart, and stays. Restart the machine twice."
POWER_ON_TRIES = 3
POWER_ON_PAUSE_S = 10.0
"""A BMC may be busy for some seconds after it has cut the power."""
NOT_CUT = "The lab has not cut its power, since its own system may be running. "


@target_factory.reg_driver
@attr.s(eq=False)
class OwnSystemStrategy(KexecStrategy):
    """labgrid strategy for a device with an operating system of its own, which runs in place of `off`."""

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self._ended_own_at: float | None = None
        """When (time.monotonic()) the lab ended the own system; None once the device is left to that again."""

    @property
    def _own(self) -> OwnSystem:
        own = self.device.own_system
        assert own is not None  # noqa: S101 - the strategy was chosen by it
        return own

    def _switch_off(self) -> None:
        """Let the device start its own system, without waiting for it. Call it also after a cancellation.

        A device that the lab has restarted and that is silent now gets a power cycle. If its golden system has not
        come yet, wait until it has come or the own system's shutdown must have ended. Raises DeviceFailure if its power
        cannot be switched.
        """
        found = ask(self.ssh, self.wakeup, ANSWER_S, lambda: False)
        ended_at = self._ended_own_at
        if ended_at is not None and not self.golden_boot_id:
            while not _is_new(found, ended_at) and time.monotonic() < ended_at + SHUTDOWN_S:
                self.wakeup.wait_for(lambda: False, PAUSE_S)
                found = ask(self.ssh, self.wakeup, ANSWER_S, lambda: False)
        if isinstance(found, AnsweringSystem):
            if found.of_lab:
                run(self.ssh, self.wakeup, RESTART_LAB_SYSTEM, ANSWER_S)
        elif ended_at is not None and (self.golden_boot_id or not isinstance(found, Unusable)):
            self._cycle_power()
        self._ended_own_at = None
        self.ssh.close()
        self.tap.end_boot()

    def restore_power(self) -> None:
        super().restore_power()
        self._ended_own_at = None  # the own system starts now

    def _boot_golden(self, key: BootKey, started: float) -> None:
        self.status = Status.unknown
        restarted = self.restart_into_golden(key)
        self._await_golden(restarted)
        self.times.golden = time.monotonic() - restarted

    def restart_into_golden(self, key: BootKey) -> float:
        """Choose the golden system on the running own system and restart; return the time (monotonic seconds) of that.

        The caller waits for the golden system. Raises DeviceFailure if the own system does not answer, also after a
        power cycle, or does not obey.
        """
        self._wake()
        self._choose_golden()
        self.tap.begin_boot(key)
        restarted = self._end_own_system("reboot")
        self.ssh.close()
        return restarted

    def try_power_switch(self) -> None:
        """Halt the own system, cycle the power and wait until the system is back: only the switch leads there.

        Restarts by SSH need no switch, and a switch that does not work would be noticed when a kernel hangs. Raises
        DeviceFailure.
        """
        self._wake()
        self.restore_power()  # changes nothing, and shows that the switch obeys before the own system ends
        self._shut_down_by("halt")
        self._cycle_power()
        timeout_s = self._own.timeout_s
        reason = self._await_own_system(timeout_s)
        if reason is not None:
            raise infrastructure_failure(
                f"the device did not come back in {timeout_s} s after its power was switched off and on: {reason}",
                advice="Its own system was halted, and the power switch accepted both commands. Switch it by hand: "
                "the switch may be another machine's, or the firmware may not start the machine when power returns.",
                suspect=True,
                stage=DeviceStep.POWER,
            )

    def shut_down(self) -> None:
        """Shut down whatever runs before its power is cut. Raises DeviceFailure if the own system cannot be shut down.

        A silent device is switched on, since a wrong address must not cost a running system its power.
        """
        self.restore_power()  # shows that the switch obeys before the own system ends
        found = ask(self.ssh, self.wakeup, ANSWER_S, self.interrupted)
        if not (isinstance(found, AnsweringSystem) and found.of_lab):
            reason = self._await_own_system(self._own.timeout_s)
            if reason is not None:
                raise _not_up(self._own, reason, NOT_CUT)
            self._shut_down_by("poweroff")
        self.ssh.close()

    def await_own_system_after_session(self) -> None:
        """Wait until the own system answers after a session's last boot. A failure is only logged.

        The kernel under test may hang in its restart, which no later boot would notice. A silent device therefore gets
        a power cycle, unless the run is interrupted.
        """
        if not self.golden_boot_id:
            return
        try:
            reason = self._await_own_system(self._own.timeout_s)
            if reason is not None and not isinstance(reason, Unusable):
                log.warning("own system not back; switching the power off and on", reason=reason)
                self._cycle_power()
        except DeviceFailure as error:
            log.warning("own system not seen again", error=error.failure.summary)
        finally:
            self.ssh.close()

    def _wake(self) -> None:
        """Wait until the own system answers by SSH: switch a silent device on, and cycle its power once if that is not
        enough. Raises DeviceFailure."""
        own = self._own
        self.stage = DeviceStep.GOLDEN
        if self._await_own_system(0) is None:
            return
        self.restore_power()
        reason = self._await_own_system(own.timeout_s)
        if reason is None:
            return
        if isinstance(reason, Unusable):
            raise _not_up(own, reason, NOT_CUT)
        self._cycle_power()
        reason = self._await_own_system(own.timeout_s)
        if reason is not None:
            raise _not_up(own, reason, "", ", also after a power cycle")

    def _await_own_system(self, timeout_s: float) -> str | None:
        """Wait until the own system answers by SSH; return None, or the reason.

        The system of an earlier boot may still answer for a moment. Raises DeviceFailure if the key is refused.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            found = ask(self.ssh, self.wakeup, ANSWER_S, self.interrupted)
            self.raise_if_interrupted()
            if isinstance(found, AnsweringSystem):
                if not found.of_lab:
                    return None
                reason = "a system of the lab goes on running, though it was told to restart"
            else:
                reason = found
                _raise_if_refused(reason)
            if time.monotonic() >= deadline:
                return reason
            self.wait(lambda: False, PAUSE_S)

    def _choose_golden(self) -> None:
        """Run the command that chooses the golden system. Raises DeviceFailure unless it succeeds."""
        command = self._own.choose_golden
        answer = run(self.ssh, self.wakeup, command, COMMAND_S)
        if answer is None or answer.transport_lost:
            did = f"did not end in {COMMAND_S:.0f} s" if answer is None else "was interrupted: the SSH connection broke"
            raise infrastructure_failure(
                f"`{command}` {did} on the device's own system",
                advice=f"Log in to its own system as root by SSH and run `{command}`. It must not ask, and the system "
                "must not restart by itself meanwhile.",
                suspect=True,
                stage=DeviceStep.GOLDEN,
            )
        _raise_if_failed(command, answer, "")

    def _end_own_system(self, command: str) -> float:
        """End the own system by `reboot`, `poweroff` or `halt`, and return the time (monotonic seconds) of that.

        The connection may break. Raises DeviceFailure.
        """
        self.golden_boot_id = ""
        ended_at = self._ended_own_at = time.monotonic()
        answer = run(self.ssh, self.wakeup, command, COMMAND_S)
        if answer is not None and answer.status and not answer.transport_lost:
            self._ended_own_at = None
            _raise_if_failed(command, answer, CHOSEN if command == "reboot" else "")
        return ended_at

    def _shut_down_by(self, command: str) -> None:
        """Run `poweroff` or `halt` on the device's own system. Wait until SSH no longer answers, then for HALT_S, in
        which the system unmounts its file systems. Raises DeviceFailure."""
        self._end_own_system(command)
        deadline = time.monotonic() + SHUTDOWN_S
        while isinstance(ask(self.ssh, self.wakeup, PAUSE_S, self.interrupted), AnsweringSystem | Unusable):
            self.wait(lambda: False, PAUSE_S)
            if time.monotonic() > deadline:
                raise infrastructure_failure(
                    f"the device's own system still answers by SSH {SHUTDOWN_S:.0f} s after `{command}`",
                    advice="See what holds its shutdown up. Once it has ended, switch the machine off and on by hand.",
                    suspect=True,
                    stage=DeviceStep.GOLDEN,
                )
        self.wait(lambda: False, HALT_S)

    def _cycle_power(self) -> None:
        """Switch the power off and on. Raises DeviceFailure if it cannot be switched."""
        self.cut_power()
        self.wakeup.wait_for(lambda: False, self.device.boot.power_off_s)
        for left in reversed(range(POWER_ON_TRIES)):
            try:
                return self.restore_power()
            except DeviceFailure:
                if not left:
                    raise
                self.wakeup.wait_for(lambda: False, POWER_ON_PAUSE_S)
        return None


def _is_new(found: AnsweringSystem | str, ended_at: float) -> bool:
    """Return True if the system has started since the lab ended the own one."""
    return isinstance(found, AnsweringSystem) and (found.of_lab or found.up_s < time.monotonic() - ended_at)


def _not_up(own: OwnSystem, reason: str, power: str, after: str = "") -> DeviceFailure:
    what = "cannot be used" if isinstance(reason, Unusable) else "does not answer"
    return infrastructure_failure(
        f"the device's own system {what} by SSH in {own.timeout_s} s{after}: {reason}",
        advice=f"{power}Look at the BMC's screen: the own system may wait for a key, a password or a disk check, or "
        "have another address. Start it, and see that its SSH server starts at boot and that root gets a shell. If it "
        "only takes longer, correct `timeout_s` of the unit's `own_system:`.",
        suspect=True,
        stage=DeviceStep.GOLDEN,
    )


def _raise_if_refused(reason: str) -> None:
    """Raise DeviceFailure if the device's SSH server refused the lab's key: it runs, so its power must not be cut."""
    if is_key_refused(reason):
        raise infrastructure_failure(
            f"the device's own system refuses the lab's key: {reason}",
            advice="Append the lab's public key (`keys/lab_ed25519.pub` in its state folder) to "
            "/root/.ssh/authorized_keys of the own system, and allow root to log in with a key "
            "(`PermitRootLogin prohibit-password`).",
            suspect=True,
            stage=DeviceStep.GOLDEN,
        )


def _raise_if_failed(command: str, answer: CommandResult, advice: str) -> None:
    if answer.status:
        raise infrastructure_failure(
            f"`{command}` failed on the device's own system (exit status {answer.status})",
            excerpt=(answer.stderr_text + answer.text)[-2000:],
            advice=f"Log in to its own system as root by SSH and run `{command}`.{advice}",
            suspect=True,
            stage=DeviceStep.GOLDEN,
        )
