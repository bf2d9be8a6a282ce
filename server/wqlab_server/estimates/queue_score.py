"""The score by which runs wait for devices. Pure."""

from __future__ import annotations

AGING_PER_MINUTE = 1.0
"""Points that a waiting run gains per minute."""
POINTS_PER_DEVICE_HELD = 25.0
"""Points that a run loses for each device that its submitter already holds."""


def queue_score(priority: int, waited_s: float, devices_held: int) -> float:
    """Return the score that orders runs waiting for devices, the highest first.

    Priority and devices held are bounded and the waiting time is not, so every run is served eventually.
    """
    return priority + AGING_PER_MINUTE * waited_s / 60 - POINTS_PER_DEVICE_HELD * devices_held
