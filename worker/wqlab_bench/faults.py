"""Faults on demand: what can be wrong with a device, as a test asks for it."""

from __future__ import annotations

import enum
import random
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

READY = "wqlab-ready "


class FaultKind(enum.StrEnum):
    DEAD = "dead"
    """The outlet switches, the device does not start."""
    MUTE = "mute"
    """The console says nothing."""
    GARBLED_CONSOLE = "garbled_console"
    """One console byte in ten is another one."""
    HANG = "hang"
    """The CPUs stand still."""
    PANIC = "panic"
    """The running kernel really panics, by SysRq on the serial line."""
    SLOW_POWER = "slow_power"
    """Every switch of the outlet takes `seconds`."""
    NETWORK_CUT = "network_cut"
    """The network cable is out, also for connections that are open."""


class Fault(BaseModel):
    """One fault. It strikes at once (at power-on if the device is off), or each time the console shows `when`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: FaultKind
    once: bool = False
    """Gone at the power-off after it struck (slow_power and panic: as soon as they struck)."""
    when: str | None = Field(default=None, min_length=1, max_length=500)
    """Console text that makes it strike, instead of at once."""
    seconds: float = Field(default=10.0, ge=0, le=600)
    """For slow_power."""

    @model_validator(mode="after")
    def _when_needs_a_running_device(self) -> Self:
        if self.when is not None and self.kind in (FaultKind.DEAD, FaultKind.SLOW_POWER):
            raise ValueError(f"{self.kind} cannot wait for console text: it is about switching the power")
        return self


class FaultList(BaseModel):
    """The body of `PUT /devices/<name>/faults`; it replaces the faults there were."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    faults: list[Fault]


class Trigger:
    """Finds a text in a stream of chunks, also across their borders."""

    def __init__(self, text: str) -> None:
        self._text = text.encode()
        self._tail = b""

    def seen(self, data: bytes) -> bool:
        window = self._tail + data
        found = self._text in window
        keep = len(self._text) - 1
        self._tail = b"" if found or not keep else window[-keep:]
        return found


def garble(data: bytes, noise: random.Random) -> bytes:
    """Replaces about one byte in ten, as a bad line does."""
    return bytes(noise.randrange(256) if noise.random() < 0.1 else byte for byte in data)
