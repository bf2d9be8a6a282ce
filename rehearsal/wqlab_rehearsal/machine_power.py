"""The power of a machine that is a process: switch it on and off."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path


class MachinePower:
    """A machine that is a process: `on` runs the program `start`, and `cut` kills its process group.

    The kernel also kills the machine when the thread that called `on` ends, so keep that thread.
    """

    def __init__(self, start: Path) -> None:
        self._start = start
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_on(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def on(self) -> None:
        """Start the machine if it is off. What it prints goes to a file: daemons read what their children print."""
        if self.is_on:
            return
        with self._start.with_suffix(".log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._start], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def cut(self) -> None:
        """Kill the machine if it is on, and wait for its end."""
        if self._process is not None and self.is_on:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
