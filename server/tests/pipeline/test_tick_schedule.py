"""The tick goes on when the clock is set back."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta

import pytest
from celery import Celery

from wqlab_server.pipeline.tick_schedule import TickSchedule


@pytest.fixture
def schedule() -> TickSchedule:
    return TickSchedule(3.0, app=Celery("test", set_as_current=False))


def test_tick_is_due_after_the_interval(schedule: TickSchedule) -> None:
    now = datetime.now(UTC)
    assert schedule.is_due(now - timedelta(seconds=4)) == (True, 3.0)
    due, wait_s = schedule.is_due(now - timedelta(seconds=1))
    assert not due
    assert 1 < wait_s <= 2


def test_tick_is_due_at_once_when_the_clock_was_set_back(schedule: TickSchedule) -> None:
    assert schedule.is_due(datetime.now(UTC) + timedelta(hours=1)) == (True, 3.0)


def test_schedule_is_stored_in_the_file_of_beat(schedule: TickSchedule) -> None:
    assert pickle.loads(pickle.dumps(schedule)) == schedule
