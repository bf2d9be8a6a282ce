"""Console whose bytes another thread feeds. A `ConsoleTap` reads it in place of labgrid's console driver."""

from __future__ import annotations

import threading
from collections.abc import Callable

from pexpect import TIMEOUT  # type: ignore[import-untyped]

WAITING_LIMIT = 256 << 10
"""Bytes that wait for the reader before `feed` waits too: a kernel that prints without end is slowed down."""
DRAIN_S = 5.0
"""Longest time in seconds that `drain` and `feed` wait."""


class FedConsole:
    """Console with the part of labgrid's ConsoleProtocol that the tap uses. `type_` sends bytes to the device."""

    def __init__(self, type_: Callable[[bytes], None] = lambda _: None) -> None:
        self._type = type_
        self._condition = threading.Condition()
        self._waiting = b""
        self._is_idle = False
        """True while the reader waits for bytes, so that it has processed all that came before."""

    def feed(self, data: bytes) -> None:
        """Add bytes of the device, once the reader has caught up. Call it from any thread."""
        with self._condition:
            self._condition.wait_for(lambda: len(self._waiting) < WAITING_LIMIT, DRAIN_S)
            self._waiting += data
            self._is_idle = False
            self._condition.notify_all()

    def drain(self) -> None:
        """Wait until the reader has processed what was fed, at most DRAIN_S."""
        with self._condition:
            self._condition.wait_for(lambda: self._is_idle, DRAIN_S)

    def write(self, data: bytes) -> None:
        self._type(data)

    def open(self) -> None:
        """Do nothing: there is no port to open."""

    def close(self) -> None:
        """Do nothing: there is no port to close."""

    def _read(self, size: int, timeout: float) -> bytes:
        """Return at most `size` bytes. Raises TIMEOUT if none come in `timeout` seconds."""
        with self._condition:
            if not self._waiting and timeout:
                self._is_idle = True
                self._condition.notify_all()
                self._condition.wait_for(lambda: bool(self._waiting), timeout)
            if not self._waiting:
                raise TIMEOUT("no output")
            found, self._waiting = self._waiting[:size], self._waiting[size:]
            self._condition.notify_all()
            return found
