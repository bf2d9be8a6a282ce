"""How many devices may run at once: emulated CPUs share the host's cores, and too many devices time each other out."""

from __future__ import annotations

import asyncio
import os

WAIT_S = 20.0
"""How long a power-on waits for a slot: a little longer than another device's cold cycle."""


class Busy(Exception):
    """All slots are taken; the text names the devices that hold them."""


class Slots:
    """First come, first served. The lab's allocator knows `size` and does not ask for more; a person may."""

    def __init__(self, size: int, wait_s: float = WAIT_S) -> None:
        self.size = size
        self._wait_s = wait_s
        self._free = asyncio.Semaphore(size)
        self._holders: set[str] = set()

    @property
    def holders(self) -> list[str]:
        return sorted(self._holders)

    async def take(self, name: str) -> None:
        """Waits its turn for a bounded time. Raises Busy."""
        try:
            await asyncio.wait_for(self._free.acquire(), self._wait_s)
        except TimeoutError:
            running = ", ".join(self.holders)
            raise Busy(f"{self.size} of {self.size} devices are running ({running}): switch one off first") from None
        self._holders.add(name)

    def give_back(self, name: str) -> None:
        """Does nothing if `name` holds none."""
        if name in self._holders:
            self._holders.discard(name)
            self._free.release()


def default_size() -> int:
    """One device per core that this process may use: a boot keeps one core busy, whatever the number of its CPUs."""
    return max(1, len(os.sched_getaffinity(0)))
