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
def time_limit(seconds: float, what: str) -> Iterator[None]:
    """Interrupt a call that has no timeout of its own; works in the main thread only.

    Raises DeviceFailure if the body takes longer than `seconds`; `what` names it in the message.
    """

    def expired(_number: int, _frame: FrameType | None) -> None:
        raise infrastructure_failure(f"{what} took longer than {seconds:.0f} s", suspect=True)

    before = signal.signal(signal.SIGALRM, expired)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def power_errors(to: str) -> Iterator[None]:
    """Turn any exception of a power driver (they differ by model) into a DeviceFailure. `to` is "on" or "off"."""
    try:
        yield
    except DeviceFailure:
        raise
    except subprocess.CalledProcessError as error:
        # Do not quote the command: it may contain a password.
        output = " ".join((error.output or b"nothing").decode(errors="replace").split())[-300:]
        raise infrastructure_failure(
            f"the power could not be switched {to}: the command ended with status {error.returncode} "
            f"and said: {output}",
            suspect=True,
        ) from error
    except Exception as error:
        raise infrastructure_failure(
            f"the power could not be switched {to}: {error}", suspect=True, unreachable=is_unreachable(error)
        ) from error


def is_unreachable(error: BaseException) -> bool:
    """Return True if an error means that equipment on the network does not answer: nothing was seen of the device.

    Drivers wrap the error of the connection in their own.
    """
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        if isinstance(cause, (ConnectionError, TimeoutError, socket.gaierror)):
            return True
        if isinstance(cause, OSError) and cause.errno in {errno.EHOSTUNREACH, errno.ENETUNREACH}:
            return True
        cause = cause.__cause__ or cause.__context__
    return False
