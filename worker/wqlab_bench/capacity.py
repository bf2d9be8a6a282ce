"""Limit how many devices run at once: emulated CPUs share the host's cores, and too many devices cause timeouts."""

from __future__ import annotations

import asyncio
import os

WAIT_S = 20.0
"""Time that a power-on waits for a slot: a little longer than the power cycle of another device."""


class Busy(Exception):
    """All slots are in use; the message names the devices that hold them."""


class Slots:
    """Slots for running devices, given in order of request.

    The server knows `size` and leases no more devices at once, but a person may switch on further ones.
    """

    def __init__(self, size: int, wait_s: float = WAIT_S) -> None:
        self.size = size
        self._wait_s = wait_s
        self._free = asyncio.Semaphore(size)
        self._holders: set[str] = set()

    @property
    def holders(self) -> list[str]:
        return sorted(self._holders)

    async def take(self, name: str) -> None:
        """Take a slot for device `name`. Raises Busy if none is free within `wait_s` seconds."""
        try:
            await asyncio.wait_for(self._free.acquire(), self._wait_s)
        except TimeoutError:
            running = ", ".join(self.holders)
            raise Busy(f"{self.size} of {self.size} devices are running ({running}): switch one of them off") from None
        self._holders.add(name)

    def release(self, name: str) -> None:
        """Return the slot of device `name`, if it holds one."""
        if name in self._holders:
            self._holders.discard(name)
            self._free.release()


def default_size() -> int:
    """Return the number of cores that this process may use; a boot keeps one busy, however many CPUs it emulates."""
    return max(1, len(os.sched_getaffinity(0)))
