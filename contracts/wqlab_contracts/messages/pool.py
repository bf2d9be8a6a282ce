"""State of a LAVA server, as reported by the worker of its lab."""

from __future__ import annotations

from pydantic import Field

from .base import Message


class LavaDevice(Message):
    """State of one device on a LAVA server."""

    device_type: str
    """Device type by its name in LAVA."""
    state: str
    """Idle, Reserved or Running."""
    health: str
    """Good, Unknown, Looping, Bad, Maintenance or Retired."""


class LavaPool(Message):
    """Devices and queue of a LAVA server."""

    url: str = Field(pattern=r"^https?://[^\s/]+\S*$", max_length=500)
    """Address of the server; a page links to it."""
    version: str = ""
    problem: str = ""
    """Reason why the server is unavailable, or empty. Devices and queue are then earlier values or unknown."""
    devices: dict[str, LavaDevice] = Field(default_factory=dict)
    queued: dict[str, int] = Field(default_factory=dict)
    """LAVA device type -> number of waiting jobs."""
