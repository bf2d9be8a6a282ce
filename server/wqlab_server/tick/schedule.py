"""When Celery's beat sends the tick."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from celery.schedules import schedstate, schedule

_MONOTONIC_ZERO = datetime.now(UTC) - timedelta(seconds=time.monotonic())


class TickSchedule(schedule):  # type: ignore[misc]
    """An interval that survives a clock that is set back.

    Celery's beat computes with the wall clock: after a step back by an hour it would send no tick for an hour, and
    nothing would be assigned, retried or ended.
    """

    def now(self) -> datetime:
        """Return the time when this process began plus the time since, which no step changes."""
        return _MONOTONIC_ZERO + timedelta(seconds=time.monotonic())

    def is_due(self, last_run_at: datetime) -> schedstate:
        """Return (is due, seconds until the next check).

        The last tick may have been sent by an earlier process with a later clock; then a tick is due now.
        """
        if self.maybe_make_aware(last_run_at) > self.now():
            return schedstate(is_due=True, next=self.seconds)
        return super().is_due(last_run_at)
