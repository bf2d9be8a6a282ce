"""When devices come free, played through."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from wqlab_server.estimates.schedule import DeviceAvailability, Schedule


def devices(*free: float | None, lab: str = "local") -> list[DeviceAvailability]:
    return [DeviceAvailability(f"b{number}", "tiny", lab, free_s) for number, free_s in enumerate(free)]


def test_each_run_takes_the_device_that_comes_free_first() -> None:
    schedule = Schedule(devices(0.0, 30.0), [], {})
    assert [schedule.place("tiny", 100.0) for _ in range(4)] == [0.0, 30.0, 100.0, 130.0]


def test_a_run_waits_for_its_kernels() -> None:
    schedule = Schedule(devices(0.0), [], {})
    assert schedule.place("tiny", 10.0, not_before_s=50.0) == 50.0
    assert schedule.place("tiny", 10.0) == 60.0


def test_a_check_waits_for_its_own_device() -> None:
    schedule = Schedule(devices(0.0, 70.0), [], {})
    assert schedule.place("tiny", 10.0, wanted="b1") == 70.0


def test_a_lab_runs_no_more_devices_than_it_can() -> None:
    busy = DeviceAvailability("x", "other", "local", 40.0)
    schedule = Schedule(devices(0.0, 0.0, 0.0), [busy], {"local": 2})
    assert [schedule.place("tiny", 100.0) for _ in range(3)] == [0.0, 40.0, 100.0]


def test_what_nobody_knows_is_not_guessed() -> None:
    assert Schedule([], [], {}).place("tiny", 1.0) is None
    assert Schedule(devices(None), [], {}).place("tiny", 1.0) is None
    schedule = Schedule(devices(0.0), [], {})
    assert schedule.place("tiny", None) == 0.0
    assert schedule.place("tiny", 1.0) is None, "nobody knows how long the one before takes"
    full = Schedule(devices(0.0), [DeviceAvailability("x", "other", "local", None)], {"local": 1})
    assert full.place("tiny", 1.0) is None, "nobody knows when the lab has room"


@given(
    st.lists(st.floats(0, 100), min_size=1, max_size=5),
    st.lists(st.floats(0.1, 100), max_size=20),
    st.integers(1, 5),
)
def test_no_more_runs_at_once_than_devices_and_room(free: list[float], durations: list[float], room: int) -> None:
    schedule = Schedule(devices(*free), [], {"local": room})
    spans = []
    for duration in durations:
        start = schedule.place("tiny", duration)
        assert start is not None
        spans.append((start, start + duration))
    for begin, _ in spans:
        assert sum(start <= begin < end for start, end in spans) <= min(len(free), room)
