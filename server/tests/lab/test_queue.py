"""Why a run waits, in words and numbers."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from wqlab_contracts.api.queue import QueueEntry, Waits
from wqlab_contracts.enums import DeviceHealth, JobState, RunPurpose
from wqlab_server.estimates.lab_snapshot import QueueState, Unit, Work
from wqlab_server.lab.queue import LONGEST, view

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
GOOD, UNKNOWN, QUARANTINED = DeviceHealth.GOOD, DeviceHealth.UNKNOWN, DeviceHealth.QUARANTINED


def run(number: int, owner: str = "alice", **changes: Any) -> Work:
    fields = {
        "run_id": number,
        "submission_id": number * 10,
        "title": "wq: faster",
        "owner": owner,
        "purpose": RunPurpose.MEASURE,
        "plan": "fsync",
        "device_type": "tiny",
        "wanted_device": None,
        "wanted_backend": None,
        "device": None,
        "state": JobState.QUEUED,
        "priority": 50,
        "created_at": NOW - timedelta(minutes=6),
        "boots_left": 12,
        "boot_s": 60.0,
    }
    return Work(**fields | changes)


def at_work(number: int, device: str, **changes: Any) -> Work:
    return run(number, device=device, state=JobState.RUNNING, **changes)


def unit(name: str, health: DeviceHealth = GOOD, run_id: int | None = None) -> Unit:
    return Unit(name, "tiny", "local", health, run_id)


def entries(units: list[Unit], work: list[Work], capacity: dict[str, int] | None = None) -> list[QueueEntry]:
    return view(QueueState(NOW, units, work, capacity or {})).entries


def test_a_free_device_goes_to_the_highest_score() -> None:
    first, second = entries([unit("t1")], [run(1), run(2, priority=60)])
    assert (first.run_id, first.waits, first.starts_at) == (2, Waits.NEXT, NOW)
    assert (first.priority, first.aging, first.share, first.score) == (60, 6.0, 0.0, 66.0)
    assert (second.waits, second.ahead_runs, second.ahead_boots) == (Waits.AHEAD, 1, 12)
    assert second.why == "waits for: 1 run of fsync (submission 20, alice; 12 boots left) ahead on tiny"
    assert second.starts_at == NOW + timedelta(minutes=12)
    assert [entry.position for entry in (first, second)] == [1, 2]


def test_devices_one_has_cost_points() -> None:
    greedy = [at_work(1, "t1", owner="bob"), at_work(2, "t2", owner="bob"), run(3, owner="bob", priority=70)]
    first, second = entries([unit("t1", run_id=1), unit("t2", run_id=2)], [*greedy, run(4)])
    assert (first.run_id, second.run_id) == (4, 3)
    assert (second.devices_held, second.share, second.score) == (2, -50.0, 26.0)
    assert "bob has 2 devices already, which takes 50 points" in second.why


def test_all_devices_at_work() -> None:
    (entry,) = entries([unit("t1", run_id=1)], [at_work(1, "t1", boots_left=3), run(2)])
    assert (entry.waits, entry.ahead_boots) == (Waits.BUSY, 3)
    assert entry.why.startswith("waits for: 1 run of fsync (submission 10, alice; at work, 3 boots left) on tiny")
    assert entry.starts_at == NOW + timedelta(minutes=3)


def test_several_runs_of_one_submission_are_one_group() -> None:
    queue = [run(number, submission_id=7, priority=60) for number in (1, 2)]
    entry = entries([], [*queue, run(3)])[-1]
    assert [(group.submission_id, group.runs, group.boots_left) for group in entry.ahead] == []
    entry = entries([unit("t1", run_id=9)], [at_work(9, "t1", submission_id=8), *queue, run(3)])[-1]
    assert [(group.submission_id, group.runs, group.running) for group in entry.ahead] == [(8, 1, True), (7, 2, False)]
    assert "2 runs of fsync (submission 7, alice; 24 boots left)" in entry.why


def test_a_time_that_was_never_measured_is_not_guessed() -> None:
    (entry,) = entries([unit("t1", run_id=1)], [at_work(1, "t1", boot_s=None), run(2)])
    assert entry.starts_at is None


@pytest.mark.parametrize(
    ("units", "waits", "words"),
    [
        ([unit("t1", UNKNOWN)], Waits.UNCHECKED, "passed a health check"),
        ([unit("t1", QUARANTINED)], Waits.OUT_OF_SERVICE, "quarantined"),
        ([], Waits.OUT_OF_SERVICE, "quarantined"),
        ([replace(unit("t1"), away="LAVA does not answer")], Waits.AWAY, "t1: LAVA does not answer"),
    ],
)
def test_devices_that_cannot_take_it(units: list[Unit], waits: Waits, words: str) -> None:
    (entry,) = entries(units, [run(1)])
    assert entry.waits is waits
    assert words in entry.why
    assert entry.starts_at is None


def test_a_run_that_wants_a_backend_waits_for_devices_of_that() -> None:
    lava = replace(unit("l1", run_id=1), backend="lava")
    work = [at_work(1, "l1"), run(2, wanted_backend="lava"), run(3)]
    wants_lava, any_device = entries([unit("t1"), lava], work)
    assert (wants_lava.run_id, wants_lava.waits) == (2, Waits.BUSY)
    assert (any_device.run_id, any_device.waits) == (3, Waits.NEXT)


def test_a_lab_that_is_full() -> None:
    busy = Unit("x1", "other", "local", GOOD, 1)
    (entry,) = entries([busy, unit("t1")], [at_work(1, "x1", device_type="other"), run(2)], {"local": 1})
    assert entry.waits is Waits.CAPACITY
    assert "local: 1 at once" in entry.why
    assert entry.starts_at == NOW + timedelta(minutes=12)


def test_an_offered_device_comes_first() -> None:
    first, second = entries([unit("t1", run_id=1)], [run(1, device="t1"), run(2, priority=90)])
    assert (first.run_id, first.waits, first.offered_device) == (1, Waits.OFFERED, "t1")
    assert second.waits is Waits.BUSY


def test_a_health_check_waits_for_its_own_device() -> None:
    check = run(5, owner="lab", purpose=RunPurpose.HEALTH_CHECK, wanted_device="t2", submission_id=None, priority=100)
    units = [unit("t1"), unit("t2", UNKNOWN, run_id=1)]
    (entry,) = entries(units, [at_work(1, "t2"), check])
    assert (entry.waits, entry.ahead_runs) == (Waits.BUSY, 1)
    (free,) = entries([unit("t1"), unit("t2", UNKNOWN)], [check])
    assert free.waits is Waits.NEXT, "whatever its health"


def test_what_waits_for_kernels_is_counted() -> None:
    found = view(QueueState(NOW, [unit("t1")], [run(1, state=JobState.WAITING)], {}))
    assert (found.total, found.waiting_for_kernels) == (0, 1)
    assert "25 points for each device" in found.rule


def test_a_long_queue_is_cut_and_counted() -> None:
    found = view(QueueState(NOW, [unit("t1")], [run(number) for number in range(1, LONGEST + 20)], {}))
    assert (len(found.entries), found.total) == (LONGEST, LONGEST + 19)
