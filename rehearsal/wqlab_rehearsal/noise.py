"""What a bad serial line does to bytes: another speed, wrong bits, lost bytes. Pure but for the clock."""

from __future__ import annotations

import random
import time

FLOOD_BYTES_S = 2000
"""A BMC that drops characters passes this many bytes per second on."""


class Damage:
    """The damage of one connection; it keeps the line's state between pieces of data."""

    def __init__(self) -> None:
        self._random = random.Random(1)  # noqa: S311 - equal in every run
        self._window, self._passed = 0.0, 0

    def apply(self, data: bytes, names: frozenset[str]) -> bytes:
        """Return what arrives of `data` with these faults."""
        if "console-mute" in names:
            return b""
        if "console-drops" in names:
            data = self._drop(data)
        if "console-speed" in names:
            data = read_at_half_speed(data)
        if "console-garbled" in names:
            data = bytes(
                byte ^ self._random.randrange(1, 256) if self._random.random() < 1 / 3 else byte for byte in data
            )
        return data

    def _drop(self, data: bytes) -> bytes:
        now = time.monotonic()
        if now >= self._window + 0.1:
            self._window, self._passed = now, 0
        kept = data[: max(0, FLOOD_BYTES_S // 10 - self._passed)]
        self._passed += len(kept)
        return kept


def read_at_half_speed(data: bytes) -> bytes:
    """Return what a UART receives if its baud rate is half the sender's (8 data bits, no parity, 1 stop bit)."""
    line = [1]
    for byte in data:
        line += [0, *((byte >> bit) & 1 for bit in range(8)), 1]
    line += [1] * 20
    received = bytearray()
    at = 1
    while at + 18 < len(line):
        if line[at] or not line[at - 1]:  # a start bit is a falling edge
            at += 1
            continue
        # Two bits of the sender are one of the receiver, which samples in the middle of each.
        received.append(sum(line[at + 1 + 2 * (bit + 1)] << bit for bit in range(8)))
        at += 19
    return bytes(received)
