"""Faults that a test can inject into an emulated device."""

from __future__ import annotations

import enum
import random
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

READY = "wqlab-ready "


class FaultKind(enum.StrEnum):
    DEAD = "dead"
    """The outlet switches, but the device does not start."""
    MUTE = "mute"
    """The console has no output."""
    GARBLED_CONSOLE = "garbled_console"
    """One console byte in ten is replaced."""
    HANG = "hang"
    """The CPUs stop."""
    PANIC = "panic"
    """The running kernel panics, by SysRq on the serial line."""
    SLOW_POWER = "slow_power"
    """Every switch of the outlet takes `seconds`."""
    NETWORK_CUT = "network_cut"
    """The network cable is unplugged; open connections stall too."""


class Fault(BaseModel):
    """A fault. It starts at once (at power-on if the device is off), or each time the console shows `when`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: FaultKind
    once: bool = False
    """Remove the fault at the first power-off after it started (slow_power and panic: as soon as it has started)."""
    every: int = Field(default=1, ge=1, le=1000)
    """The fault affects one power-on in this number, counted from when it was set: 3 affects the third, the sixth..."""
    when: str | None = Field(default=None, min_length=1, max_length=500)
    """Console text that starts the fault; None: the fault starts at once."""
    seconds: float = Field(default=10.0, ge=0, le=600)
    """Delay of each switch, for slow_power."""

    @model_validator(mode="after")
    def _is_possible(self) -> Self:
        if self.when is not None and self.kind in (FaultKind.DEAD, FaultKind.SLOW_POWER):
            raise ValueError(f"{self.kind} cannot wait for console text, because it affects power switching")
        if self.every > 1 and self.kind is FaultKind.SLOW_POWER:
            raise ValueError("slow_power delays every switch: leave out `every`, which counts power-ons")
        return self


class FaultList(BaseModel):
    """The body of `PUT /devices/<name>/faults`, which replaces all faults of the device."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    faults: list[Fault]


class Trigger:
    """Find a text in a stream of chunks, also across chunk boundaries."""

    def __init__(self, text: str) -> None:
        self._text = text.encode()
        self._tail = b""

    def seen(self, data: bytes) -> bool:
        """Return True if the text ends in this chunk."""
        window = self._tail + data
        found = self._text in window
        keep = len(self._text) - 1
        self._tail = b"" if found or not keep else window[-keep:]
        return found


def garble(data: bytes, noise: random.Random) -> bytes:
    """Replace about one byte in ten, like a bad serial line."""
    return bytes(noise.randrange(256) if noise.random() < 0.1 else byte for byte in data)
