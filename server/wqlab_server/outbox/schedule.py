"""When a delivery is tried again. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

DELAYS = tuple(
    timedelta(seconds=seconds) for seconds in (0, 5, 5 * 60, 30 * 60, 2 * 3600, 5 * 3600, 10 * 3600, 10 * 3600)
)
"""Time before each attempt, counted from the end of the attempt before: eight attempts in 27 and a half hours."""


def next_attempt(tries: int, ended_at: datetime) -> datetime | None:
    """Return when to try again after `tries` attempts, the last of which ended at `ended_at`; None to give up."""
    return ended_at + DELAYS[tries] if tries < len(DELAYS) else None


def total() -> timedelta:
    """Return the time from the first attempt to the last one, if each fails at once."""
    return sum(DELAYS, timedelta())
