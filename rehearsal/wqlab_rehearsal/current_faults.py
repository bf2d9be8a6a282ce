"""The faults that a running link of a rehearsal machine has."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from . import faults

HOST = "127.0.0.1"
LATE_S, REBOOT_S = 20.0, 60.0
POLL_S = 0.2
"""Interval at which the file of the faults is read; nothing reports its changes."""


class CurrentFaults:
    """The faults as the file has them. `since` is the time (monotonic seconds) of the last change."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.names = faults.read(file)
        self.since = time.monotonic()
        self.on_change: list[Callable[[], None]] = []

    async def follow(self) -> None:
        while True:
            await asyncio.sleep(POLL_S)
            if (names := faults.read(self._file)) != self.names:
                self.names, self.since = names, time.monotonic()
                for call in self.on_change:
                    call()

    @property
    def rebooting(self) -> bool:
        return "bmc-reboots" in self.names and time.monotonic() < self.since + REBOOT_S
