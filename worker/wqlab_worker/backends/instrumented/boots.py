"""Make the boots of a run ahead, in the planned order: with as many emulators at once as the host has cores.

A boot is determined by its kernel and its seed, so it can be made before it is needed, and its result is used however
often the measuring loop asks for it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from .emulator import Emulator, Ended, Seeded


class Boots:
    """Boots in the planned order, made ahead. Close it at the end: emulators that run are killed."""

    def __init__(self, emulator: Emulator, parallel: int) -> None:
        self._emulator = emulator
        self._pool = ThreadPoolExecutor(parallel, "emulator")
        self._stop = threading.Event()
        self._boots: dict[Seeded, Future[Ended]] = {}

    def plan(self, boots: Sequence[Seeded]) -> None:
        """Start these boots in this order, except those that were started before."""
        for boot in boots:
            if boot not in self._boots:
                self._boots[boot] = self._pool.submit(self._emulator.run, boot, self._stop)

    def boot(self, boot: Seeded) -> Future[Ended]:
        """Return the boot's end."""
        self.plan([boot])
        return self._boots[boot]

    def console(self, boot: Seeded) -> Path:
        """Return the console of the boot. It is missing until the boot has begun."""
        return self._emulator.console(boot)

    def close(self) -> None:
        # No boot may begin in the place of one that is stopped.
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._stop.set()
        self._pool.shutdown()
