"""Restart a device whose own operating system starts by default: by SSH, and by its power switch if SSH is silent.

The golden system is chosen for one start at a time, so every reset leads back to the own system. A running own system
is never cut off from its power: it restarts by its own command.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import structlog

from wqlab_contracts.enums import DeviceStep
from wqlab_contracts.messages import BootKey
from wqlab_contracts.specs import OwnSystem

from ..measure.device_interface import DeviceFailure
from .answering_system import ANSWER_S, AnsweringSystem, Unusable, ask, run
from .ssh import CommandResult
from .verify_boot import infrastructure_failure

if TYPE_CHECKING:
    from .kexec import KexecStrategy

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
PAUSE_S = 2.0


def leave(strategy: KexecStrategy) -> None:
    """Let the device start its own system, without waiting for it. Call it also after a cancellation.

    A device that the lab has restarted and that is silent now gets a power cycle. If its golden system has not come
    yet, wait until it has come or the own system's shutdown must have ended. Raises DeviceFailure if its power cannot
    be switched.
    """
    found = ask(strategy, ANSWER_S, lambda: False)
    ended_at = strategy.ended_own_at
    if ended_at is not None and not strategy.golden_boot_id:
        while not _is_new(found, ended_at) and time.monotonic() < ended_at + SHUTDOWN_S:
            strategy.wakeup.wait_for(lambda: False, PAUSE_S)
            found = ask(strategy, ANSWER_S, lambda: False)
    if isinstance(found, AnsweringSystem):
        if found.of_lab:
            run(strategy, RESTART_LAB_SYSTEM, ANSWER_S)
    elif ended_at is not None and (strategy.golden_boot_id or not isinstance(found, Unusable)):
        _cycle_power(strategy)
    strategy.ended_own_at = None
    strategy.ssh.close()


def see_back(strategy: KexecStrategy) -> None:
    """Wait until the own system is back after a session's last boot, unless the run is interrupted; log a failure.

    A kernel under test may hang in its restart, and no later boot would notice it: a silent device gets a power cycle.
    """
    if not strategy.golden_boot_id:
        return
    try:
        reason = _await(strategy, _own(strategy).timeout_s)
        if reason is not None and not isinstance(reason, Unusable):
            log.warning("own system not back; switching the power off and on", reason=reason)
            _cycle_power(strategy)
    except DeviceFailure as error:
        log.warning("own system not seen again", error=error.failure.summary)
    finally:
        strategy.ssh.close()


def _is_new(found: AnsweringSystem | str, ended_at: float) -> bool:
    """Return True if the system has started since the lab ended the own one."""
    return isinstance(found, AnsweringSystem) and (found.of_lab or found.up_s < time.monotonic() - ended_at)


def restart_into_golden(strategy: KexecStrategy, key: BootKey) -> float:
    """Choose the golden system on the running own system and restart; return the time (monotonic seconds) of that.

    The caller waits for the golden system. Raises DeviceFailure if the own system does not answer, also after a power
    cycle, or does not obey.
    """
    own = _own(strategy)
    strategy.stage = DeviceStep.GOLDEN
    await_own_system(strategy)
    _choose(strategy, own.choose_golden)
    strategy.tap.begin_boot(key)
    _end(strategy, "reboot")
    assert strategy.ended_own_at is not None  # noqa: S101 - `_end` has set it
    strategy.ssh.close()
    return strategy.ended_own_at


def await_own_system(strategy: KexecStrategy) -> None:
    """Wait until the own system answers by SSH: switch a silent device on, and cycle its power once if that is not
    enough. Raises DeviceFailure."""
    own = _own(strategy)
    if _await(strategy, 0) is None:
        return
    strategy.stage = DeviceStep.POWER
    strategy.restore_power()
    strategy.stage = DeviceStep.GOLDEN
    reason = _await(strategy, own.timeout_s)
    if reason is None:
        return
    if isinstance(reason, Unusable):
        raise _not_up(own, reason, NOT_CUT)
    strategy.stage = DeviceStep.POWER
    _cycle_power(strategy)
    strategy.stage = DeviceStep.GOLDEN
    reason = _await(strategy, own.timeout_s)
    if reason is not None:
        raise _not_up(own, reason, "", ", also after a power cycle")


NOT_CUT = "The lab has not cut its power, since its own system may be running. "


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


def try_power_switch(strategy: KexecStrategy) -> None:
    """Halt the own system, cycle the power and wait until the system is back: only the switch leads there.

    Restarts by SSH need no switch, and a switch that does not work would be noticed when a kernel hangs. Raises
    DeviceFailure.
    """
    own = _own(strategy)
    strategy.stage = DeviceStep.GOLDEN
    await_own_system(strategy)
    strategy.stage = DeviceStep.POWER
    strategy.restore_power()  # changes nothing, and shows that the switch obeys before the own system ends
    strategy.stage = DeviceStep.GOLDEN
    _shut_down(strategy, "halt")
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


def shut_down(strategy: KexecStrategy) -> None:
    """Shut down whatever runs before its power is cut. Raises DeviceFailure if the own system cannot be shut down.

    A silent device is switched on, since a wrong address must not cost a running system its power.
    """
    strategy.stage = DeviceStep.POWER
    strategy.restore_power()  # shows that the switch obeys before the own system ends
    strategy.stage = DeviceStep.GOLDEN
    found = ask(strategy, ANSWER_S, strategy.interrupted)
    if not (isinstance(found, AnsweringSystem) and found.of_lab):
        own = _own(strategy)
        reason = _await(strategy, own.timeout_s)
        if reason is not None:
            raise _not_up(own, reason, NOT_CUT)
        _shut_down(strategy, "poweroff")
    strategy.ssh.close()


def _shut_down(strategy: KexecStrategy, command: str) -> None:
    """Run `poweroff` or `halt` on the device's own system. Wait until SSH no longer answers, then for HALT_S, in which
    the system unmounts its file systems. Raises DeviceFailure."""
    _end(strategy, command)
    deadline = time.monotonic() + SHUTDOWN_S
    while isinstance(ask(strategy, PAUSE_S, strategy.interrupted), AnsweringSystem | Unusable):
        strategy.wait(lambda: False, PAUSE_S)
        if time.monotonic() > deadline:
            raise infrastructure_failure(
                f"the device's own system still answers by SSH {SHUTDOWN_S:.0f} s after `{command}`",
                advice="See what holds its shutdown up. Once it has ended, switch the machine off and on by hand.",
                suspect=True,
                stage=DeviceStep.GOLDEN,
            )
    strategy.wait(lambda: False, HALT_S)


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
        found = ask(strategy, ANSWER_S, strategy.interrupted)
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
    """Switch the power off and on. Raises DeviceFailure if it cannot be switched."""
    strategy.cut_power()
    strategy.wakeup.wait_for(lambda: False, strategy.device.boot.power_off_s)
    for left in reversed(range(POWER_ON_TRIES)):
        try:
            return strategy.restore_power()
        except DeviceFailure:
            if not left:
                raise
            strategy.wakeup.wait_for(lambda: False, POWER_ON_PAUSE_S)
    return None


def _choose(strategy: KexecStrategy, command: str) -> None:
    """Run the command that chooses the golden system. Raises DeviceFailure unless it succeeds."""
    answer = run(strategy, command, COMMAND_S)
    if answer is None or answer.transport_lost:
        did = f"did not end in {COMMAND_S:.0f} s" if answer is None else "was interrupted: the SSH connection broke"
        raise infrastructure_failure(
            f"`{command}` {did} on the device's own system",
            advice=f"Log in to its own system as root by SSH and run `{command}`. It must not ask, and the system must "
            "not restart by itself meanwhile.",
            suspect=True,
            stage=DeviceStep.GOLDEN,
        )
    _raise_if_failed(command, answer, "")


def _end(strategy: KexecStrategy, command: str) -> None:
    """End the own system by `reboot`, `poweroff` or `halt`, which may break the connection. Raises DeviceFailure."""
    strategy.golden_boot_id = ""
    strategy.ended_own_at = time.monotonic()
    answer = run(strategy, command, COMMAND_S)
    if answer is not None and answer.status and not answer.transport_lost:
        strategy.ended_own_at = None
        _raise_if_failed(command, answer, CHOSEN if command == "reboot" else "")


def _raise_if_failed(command: str, answer: CommandResult, advice: str) -> None:
    if answer.status:
        raise infrastructure_failure(
            f"`{command}` failed on the device's own system (exit status {answer.status})",
            excerpt=(answer.stderr_text + answer.text)[-2000:],
            advice=f"Log in to its own system as root by SSH and run `{command}`.{advice}",
            suspect=True,
            stage=DeviceStep.GOLDEN,
        )
