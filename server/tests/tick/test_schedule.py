"""The tick goes on when the clock is set back."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta

import pytest
from celery import Celery
from celery.beat import Scheduler

from wqlab_server.tick.schedule import TickSchedule


@pytest.fixture
def schedule() -> TickSchedule:
    return TickSchedule(3.0, app=Celery("test", set_as_current=False))


def test_tick_is_due_after_the_interval(schedule: TickSchedule) -> None:
    now = datetime.now(UTC)
    assert schedule.is_due(now - timedelta(seconds=4)) == (True, 3.0)
    due, wait_s = schedule.is_due(now - timedelta(seconds=1))
    assert not due
    assert 1 < wait_s <= 2


def test_beat_goes_on_when_the_clock_is_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    app = Celery("test", set_as_current=False)
    app.conf.beat_schedule = {"tick": {"task": "tick", "schedule": TickSchedule(3.0)}}
    beat = Scheduler(app=app)
    assert beat.tick() <= 3
    real = Celery.now
    monkeypatch.setattr(Celery, "now", lambda self: real(self) - timedelta(hours=1))
    assert beat.tick() <= 3


def test_tick_is_due_when_an_earlier_beat_had_a_later_clock(schedule: TickSchedule) -> None:
    assert schedule.is_due(datetime.now(UTC) + timedelta(hours=1)) == (True, 3.0)


def test_schedule_is_stored_in_the_file_of_beat(schedule: TickSchedule) -> None:
    assert pickle.loads(pickle.dumps(schedule)) == schedule
