"""Compare times of the database's clock, which an administrator or NTP may set back."""

from __future__ import annotations

from datetime import datetime, timedelta


def is_recent(at: datetime, now: datetime, length: timedelta) -> bool:
    """Return True if less than `length` is between `at` and `now`.

    A time far after `now` is not recent: the clock was set back since, and nothing must wait for it to pass again.
    """
    return abs(now - at) < length
