"""Power switches that are commands on this host."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import tempfile
from contextlib import suppress

from labgrid.driver import Driver, ExternalPowerDriver

from .kexec import POWER_TIMEOUT_S

_SAID_LIMIT = 4096


class CommandPowerDriver(ExternalPowerDriver):  # type: ignore[misc]
    """labgrid's own leaves a command running when its caller gives up: it could switch the next boot's power off."""

    @Driver.check_active  # type: ignore[untyped-decorator]
    def on(self) -> None:
        run(self.cmd_on)

    @Driver.check_active  # type: ignore[untyped-decorator]
    def off(self) -> None:
        run(self.cmd_off)


def run(command: str) -> None:
    """Returns when `command` has ended; whatever interrupts that kills it and all it started.

    Raises CalledProcessError, with what it said last as `output`, unless it succeeds.
    """
    # A file and not a pipe: a helper that stays behind (ssh's ControlPersist) would keep the pipe open.
    with tempfile.TemporaryFile() as said:
        # timeout(1) ends it even when this process is killed: a process group of its own is out of others' reach.
        process = subprocess.Popen(
            ["timeout", "--signal=KILL", f"{POWER_TIMEOUT_S + 5}", *shlex.split(command)],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
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
            said.seek(max(0, said.seek(0, os.SEEK_END) - _SAID_LIMIT))
            raise subprocess.CalledProcessError(status, shlex.split(command), output=said.read())
