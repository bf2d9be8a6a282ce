"""Make the boots of a run ahead, in the planned order: with as many emulators at once as the host has cores.

A boot is determined by its kernel and its seed, so it can be made before it is needed, its result is used however often
the measuring loop asks for it, and it does not matter which host makes it. This host makes its boots in the planned
order, whatever other hosts are about to make, so that a run never takes longer than without them.
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
        self._lock = threading.Lock()
        self._closed = False
        self._boots: dict[Seeded, Future[Ended]] = {}
        """In the planned order."""
        self._running: dict[Seeded, threading.Event] = {}
        """Boots that have an emulator on this host -> request to stop it."""

    def plan(self, boots: Sequence[Seeded]) -> None:
        """Start these boots in this order, except those that were started before."""
        for boot in boots:
            with self._lock:
                if boot in self._boots:
                    continue
                self._boots[boot] = Future()
            self._pool.submit(self._make_next)

    def boot(self, boot: Seeded) -> Future[Ended]:
        """Return the boot's end."""
        self.plan([boot])
        return self._boots[boot]

    def console(self, boot: Seeded) -> Path:
        """Return the console of the boot on this host. It may be missing, or incomplete if another host was faster."""
        return self._emulator.console(boot)

    def unfinished(self) -> list[tuple[Seeded, bool]]:
        """Return the boots that have not ended, in the planned order, and whether this host makes each of them now."""
        with self._lock:
            return [(boot, boot in self._running) for boot, future in self._boots.items() if not future.done()]

    def deliver(self, boot: Seeded, ended: Ended) -> bool:
        """Use a result that another host has made, and stop this host's emulator; return False if it came too late."""
        with self._lock:
            future = self._boots[boot]
            if future.done():
                return False
            if stop := self._running.get(boot):
                stop.set()
            future.set_result(ended)
        return True

    def close(self) -> None:
        with self._lock:
            self._closed = True
            for boot, future in self._boots.items():
                if boot in self._running:
                    self._running[boot].set()
                else:
                    future.cancel()
        self._pool.shutdown(cancel_futures=True)

    def _make_next(self) -> None:
        """Make the first boot that has not ended and is not made here now. There is one call for each planned boot."""
        with self._lock:
            waiting = (each for each in self._boots if not self._boots[each].done() and each not in self._running)
            boot = None if self._closed else next(waiting, None)
            if boot is None:
                return
            stop = self._running[boot] = threading.Event()
        try:
            ended = self._emulator.run(boot, stop)
        except Exception as error:
            self._end(boot, error)
        else:
            self._end(boot, ended)

    def _end(self, boot: Seeded, result: Ended | Exception) -> None:
        with self._lock:
            del self._running[boot]
            future = self._boots[boot]
            if future.done():
                return
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)
