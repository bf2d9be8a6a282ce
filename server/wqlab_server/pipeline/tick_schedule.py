"""When Celery's beat sends the tick."""

from __future__ import annotations

from datetime import datetime

from celery.schedules import schedstate, schedule


class TickSchedule(schedule):  # type: ignore[misc]
    """An interval that survives a clock that is set back.

    Celery compares the wall clock with the time of the last tick: after a step back by an hour it would send no tick
    for an hour, and nothing would be assigned, retried or ended.
    """

    def is_due(self, last_run_at: datetime) -> schedstate:
        """Return (is due, seconds until the next check). A last tick in the future makes the tick due now."""
        if self.maybe_make_aware(last_run_at) > self.maybe_make_aware(self.now()):
            return schedstate(is_due=True, next=self.seconds)
        return super().is_due(last_run_at)
