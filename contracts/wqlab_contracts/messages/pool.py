"""What a lab's worker sees of a LAVA server whose devices it drives."""

from __future__ import annotations

from pydantic import Field

from .base import Message


class LavaDevice(Message):
    device_type: str
    """As LAVA calls it."""
    state: str
    """Idle, Reserved or Running."""
    health: str
    """Good, Unknown, Looping, Bad, Maintenance or Retired."""


class LavaPool(Message):
    url: str = Field(pattern=r"^https?://[^\s/]+\S*$", max_length=500)
    """A page links to it."""
    version: str = ""
    problem: str = ""
    """Why it cannot be used now; devices and queue are then those of before, or unknown."""
    devices: dict[str, LavaDevice] = Field(default_factory=dict)
    queued: dict[str, int] = Field(default_factory=dict)
    """LAVA's device type -> jobs that wait for a device of it."""
