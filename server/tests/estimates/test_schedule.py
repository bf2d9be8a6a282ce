"""Simulation of when devices become free."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from wqlab_server.estimates.schedule import DeviceAvailability, Schedule


def devices(*free: float | None, lab: str = "local") -> list[DeviceAvailability]:
    return [DeviceAvailability(f"b{number}", "tiny", lab, free_s) for number, free_s in enumerate(free)]


def test_run_takes_the_device_that_becomes_free_first() -> None:
    schedule = Schedule(devices(0.0, 30.0), [], {})
    assert [schedule.place("tiny", 100.0) for _ in range(4)] == [0.0, 30.0, 100.0, 130.0]


def test_run_does_not_start_before_its_earliest_time() -> None:
    schedule = Schedule(devices(0.0), [], {})
    assert schedule.place("tiny", 10.0, not_before_s=50.0) == 50.0
    assert schedule.place("tiny", 10.0) == 60.0


def test_check_waits_for_its_requested_device() -> None:
    schedule = Schedule(devices(0.0, 70.0), [], {})
    assert schedule.place("tiny", 10.0, requested_device="b1") == 70.0


def test_capacity_limits_devices_at_once() -> None:
    busy = DeviceAvailability("x", "other", "local", 40.0)
    schedule = Schedule(devices(0.0, 0.0, 0.0), [busy], {"local": 2})
    assert [schedule.place("tiny", 100.0) for _ in range(3)] == [0.0, 40.0, 100.0]


def test_unknown_times_are_not_guessed() -> None:
    assert Schedule([], [], {}).place("tiny", 1.0) is None
    assert Schedule(devices(None), [], {}).place("tiny", 1.0) is None
    schedule = Schedule(devices(0.0), [], {})
    assert schedule.place("tiny", None) == 0.0
    assert schedule.place("tiny", 1.0) is None, "the duration of the first run is unknown"
    full = Schedule(devices(0.0), [DeviceAvailability("x", "other", "local", None)], {"local": 1})
    assert full.place("tiny", 1.0) is None, "it is unknown when the lab has capacity"


@given(
    st.lists(st.floats(0, 100), min_size=1, max_size=5),
    st.lists(st.floats(0.1, 100), max_size=20),
    st.integers(1, 5),
)
def test_runs_at_once_never_exceed_devices_or_capacity(
    free: list[float], durations: list[float], capacity: int
) -> None:
    schedule = Schedule(devices(*free), [], {"local": capacity})
    spans = []
    for duration in durations:
        start = schedule.place("tiny", duration)
        assert start is not None
        spans.append((start, start + duration))
    for begin, _ in spans:
        assert sum(start <= begin < end for start, end in spans) <= min(len(free), capacity)
