"""When a delivery is tried again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from wqlab_server.outbox import schedule

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_attempts_are_spread_over_27_hours() -> None:
    waits = [schedule.next_attempt(tries, NOON) for tries in range(1, 8)]
    assert [wait - NOON for wait in waits if wait] == [
        timedelta(seconds=5),
        timedelta(minutes=5),
        timedelta(minutes=30),
        timedelta(hours=2),
        timedelta(hours=5),
        timedelta(hours=10),
        timedelta(hours=10),
    ]
    assert timedelta(hours=27) < schedule.total() < timedelta(hours=28)


def test_the_eighth_failure_is_the_last() -> None:
    assert schedule.next_attempt(8, NOON) is None
