"""Switch a device's power: power commands on this host, their time limits and errors."""

from __future__ import annotations

import errno
import os
import shlex
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from labgrid.driver import Driver, ExternalPowerDriver

from wqlab_contracts.enums import DeviceStep
from wqlab_contracts.linear_patterns import LinearPattern

from ..measure.device_interface import DeviceFailure
from .verify_boot import infrastructure_failure

POWER_TIMEOUT_S = 60.0
"""Time limit of switching the power; labgrid's power drivers set none."""
_OUTPUT_LIMIT = 4096


class CommandPowerDriver(ExternalPowerDriver):  # type: ignore[misc]
    """Switch the power by commands, and kill a command whose caller stops waiting.

    labgrid's own driver leaves the command running: it could switch off the power of the next boot.
    """

    @Driver.check_active  # type: ignore[untyped-decorator]
    def on(self) -> None:
        run_power_command(self.cmd_on)

    @Driver.check_active  # type: ignore[untyped-decorator]
    def off(self) -> None:
        run_power_command(self.cmd_off)


def run_power_command(command: str) -> None:
    """Run `command` to its end. An exception kills the command and all its children.

    Raises CalledProcessError, with the end of the output as `output`, if the exit status is not 0.
    """
    # A file and not a pipe: a child that stays behind (ssh's ControlPersist) would keep a pipe open.
    with tempfile.TemporaryFile() as output:
        # timeout(1) ends the command even if this process is killed, which does not reach another process group.
        process = subprocess.Popen(
            ["timeout", "--signal=KILL", f"{POWER_TIMEOUT_S + 5}", *shlex.split(command)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            process_group=0,
        )
        try:
            status = process.wait()
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
        if status:
            output.seek(max(0, output.seek(0, os.SEEK_END) - _OUTPUT_LIMIT))
            raise subprocess.CalledProcessError(status, shlex.split(command), output=output.read())


@contextmanager
def time_limit(seconds: float, what: str, stage: DeviceStep) -> Iterator[None]:
    """Interrupt a call that has no timeout of its own; works in the main thread only.

    Raises DeviceFailure of `stage` if the body takes longer than `seconds`; the message is `what` with the time. It is
    a failure of the lab's own equipment: nothing was seen of the device.
    """

    def expired(_number: int, _frame: FrameType | None) -> None:
        raise infrastructure_failure(
            f"{what} in {seconds:.0f} s", advice=LATE_ADVICE, suspect=True, unreachable=True, stage=stage
        )

    before = signal.signal(signal.SIGALRM, expired)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def power_time_limit(to: str) -> Iterator[None]:
    """Interrupt a power driver after POWER_TIMEOUT_S. `to` is "on" or "off". Raises DeviceFailure."""
    what = f"the power could not be switched {to}, because the power controller did not answer"
    with time_limit(POWER_TIMEOUT_S, what, DeviceStep.POWER):
        yield


@contextmanager
def power_errors(to: str) -> Iterator[None]:
    """Turn any exception of a power driver (they differ by model) into a DeviceFailure. `to` is "on" or "off"."""
    try:
        yield
    except DeviceFailure:
        raise
    except Exception as error:
        # Do not quote a command: it may contain a password.
        commands = [each for each in _chain(error) if isinstance(each, subprocess.CalledProcessError)]
        said = " ".join(" ".join((each.output or b"").decode(errors="replace") for each in commands).split())[-300:]
        what = str(error)
        if isinstance(error, subprocess.CalledProcessError):
            what = f"the command ended with status {error.returncode} and said: {said or 'nothing'}"
        elif said:
            what = f"{error}: {said}"
        if NO_ANSWER.search(said) or is_unreachable(error):
            raise infrastructure_failure(
                f"the power could not be switched {to}, because the power controller did not answer: {what}",
                advice=NO_ANSWER_ADVICE,
                suspect=True,
                unreachable=True,
                stage=DeviceStep.POWER,
            ) from error
        refused = REFUSED.search(said) is not None
        raise infrastructure_failure(
            f"the power could not be switched {to}: {what}",
            advice=REFUSED_ADVICE if refused else "",
            suspect=True,
            stage=DeviceStep.POWER,
        ) from error


LATE_ADVICE = (
    "The lab tries again by itself: a BMC, PDU or console server that is busy or restarts answers later. If it goes "
    "on, do it by hand on the worker's host, and restart what does not answer. A command that only needs longer than "
    "this has to return earlier."
)
NO_ANSWER = LinearPattern(
    r"(?i)unable to establish (?:ipmi|lan)|error in open session|no response|timed? ?out|no route to host"
    r"|connection refused|network is unreachable|could not resolve|name or service not known"
)
"""What ipmitool, net-snmp, curl and ssh print when the other side does not answer."""
NO_ANSWER_ADVICE = (
    "The lab tries again by itself: a BMC that restarts answers after some minutes. If it goes on, check that the "
    "worker's host reaches the BMC or PDU, and its user and password (ipmitool prints the same for a wrong one). A BMC "
    "that answers only after seconds needs more of them: `ipmitool -N 10 -R 3`."
)
REFUSED = LinearPattern(r"(?i)not supported in present state|set chassis power control to .* failed")
REFUSED_ADVICE = (
    "Many BMCs refuse to switch off what is off. The command has to succeed then: ask for `chassis power status` "
    "first, as the example in docs/hardware does."
)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and its causes: drivers wrap an error in their own."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        yield cause
        seen.add(id(cause))
        cause = cause.__cause__ or cause.__context__


def is_unreachable(error: BaseException) -> bool:
    """Return True if an error means that equipment on the network does not answer: nothing was seen of the device."""
    return any(
        isinstance(cause, (ConnectionError, TimeoutError, socket.gaierror))
        or (isinstance(cause, OSError) and cause.errno in {errno.EHOSTUNREACH, errno.ENETUNREACH})
        for cause in _chain(error)
    )
