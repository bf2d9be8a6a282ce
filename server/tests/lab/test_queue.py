"""Positions, scores and reasons for waiting of queued runs."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from wqlab_contracts.api.queue import QueueEntry, Waits
from wqlab_contracts.enums import DeviceHealth, JobState, RunPurpose
from wqlab_server.estimates.lab_snapshot import DeviceSnapshot, LabSnapshot, UnfinishedRun
from wqlab_server.lab.queue import ENTRIES_MAX, view

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
GOOD, UNKNOWN, QUARANTINED = DeviceHealth.GOOD, DeviceHealth.UNKNOWN, DeviceHealth.QUARANTINED


def run(number: int, owner: str = "alice", **changes: Any) -> UnfinishedRun:
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
    return UnfinishedRun(**fields | changes)


def running(number: int, device: str, **changes: Any) -> UnfinishedRun:
    return run(number, device=device, state=JobState.RUNNING, **changes)


def make_device(name: str, health: DeviceHealth = GOOD, run_id: int | None = None) -> DeviceSnapshot:
    return DeviceSnapshot(name, "tiny", "local", health, run_id)


def entries(
    devices: list[DeviceSnapshot], runs: list[UnfinishedRun], capacity: dict[str, int] | None = None
) -> list[QueueEntry]:
    return view(LabSnapshot(NOW, devices, runs, capacity or {})).entries


def test_free_device_goes_to_the_highest_score() -> None:
    first, second = entries([make_device("t1")], [run(1), run(2, priority=60)])
    assert (first.run_id, first.waits, first.starts_at) == (2, Waits.NEXT, NOW)
    assert (first.priority, first.aging, first.share, first.score) == (60, 6.0, 0.0, 66.0)
    assert (second.waits, second.ahead_runs, second.ahead_boots) == (Waits.AHEAD, 1, 12)
    assert second.why == "waits for: 1 run of fsync (submission 20, alice; 12 boots left) ahead on tiny"
    assert second.starts_at == NOW + timedelta(minutes=12)
    assert [entry.position for entry in (first, second)] == [1, 2]


def test_devices_held_cost_points() -> None:
    bobs_runs = [running(1, "t1", owner="bob"), running(2, "t2", owner="bob"), run(3, owner="bob", priority=70)]
    first, second = entries([make_device("t1", run_id=1), make_device("t2", run_id=2)], [*bobs_runs, run(4)])
    assert (first.run_id, second.run_id) == (4, 3)
    assert (second.devices_held, second.share, second.score) == (2, -50.0, 26.0)
    assert "bob already holds 2 devices, which costs 50 points" in second.why


def test_run_waits_while_all_devices_are_busy() -> None:
    (entry,) = entries([make_device("t1", run_id=1)], [running(1, "t1", boots_left=3), run(2)])
    assert (entry.waits, entry.ahead_boots) == (Waits.BUSY, 3)
    assert entry.why.startswith("waits for: 1 run of fsync (submission 10, alice; running, 3 boots left) on tiny")
    assert entry.starts_at == NOW + timedelta(minutes=3)


def test_runs_ahead_are_grouped_by_submission() -> None:
    queue = [run(number, submission_id=7, priority=60) for number in (1, 2)]
    entry = entries([], [*queue, run(3)])[-1]
    assert [(group.submission_id, group.runs, group.boots_left) for group in entry.ahead] == []
    entry = entries([make_device("t1", run_id=9)], [running(9, "t1", submission_id=8), *queue, run(3)])[-1]
    assert [(group.submission_id, group.runs, group.running) for group in entry.ahead] == [(8, 1, True), (7, 2, False)]
    assert "2 runs of fsync (submission 7, alice; 24 boots left)" in entry.why


def test_start_is_unknown_without_measured_boots() -> None:
    (entry,) = entries([make_device("t1", run_id=1)], [running(1, "t1", boot_s=None), run(2)])
    assert entry.starts_at is None


@pytest.mark.parametrize(
    ("devices", "waits", "words"),
    [
        ([make_device("t1", UNKNOWN)], Waits.HEALTH_CHECK, "passed a health check"),
        ([make_device("t1", QUARANTINED)], Waits.QUARANTINED, "quarantined"),
        ([], Waits.QUARANTINED, "quarantined"),
        (
            [replace(make_device("t1"), unavailable_reason="LAVA does not answer")],
            Waits.AWAY,
            "t1: LAVA does not answer",
        ),
    ],
)
def test_unusable_devices_are_the_reason_for_waiting(devices: list[DeviceSnapshot], waits: Waits, words: str) -> None:
    (entry,) = entries(devices, [run(1)])
    assert entry.waits is waits
    assert words in entry.why
    assert entry.starts_at is None


def test_run_with_a_backend_waits_for_its_devices() -> None:
    lava = replace(make_device("l1", run_id=1), backend="lava")
    runs = [running(1, "l1"), run(2, wanted_backend="lava"), run(3)]
    on_lava, any_device = entries([make_device("t1"), lava], runs)
    assert (on_lava.run_id, on_lava.waits) == (2, Waits.BUSY)
    assert (any_device.run_id, any_device.waits) == (3, Waits.NEXT)


def test_run_waits_while_the_lab_is_at_capacity() -> None:
    busy = DeviceSnapshot("x1", "other", "local", GOOD, 1)
    (entry,) = entries([busy, make_device("t1")], [running(1, "x1", device_type="other"), run(2)], {"local": 1})
    assert entry.waits is Waits.CAPACITY
    assert "local: 1 at once" in entry.why
    assert entry.starts_at == NOW + timedelta(minutes=12)


def test_run_with_an_offered_device_comes_first() -> None:
    first, second = entries([make_device("t1", run_id=1)], [run(1, device="t1"), run(2, priority=90)])
    assert (first.run_id, first.waits, first.offered_device) == (1, Waits.OFFERED, "t1")
    assert second.waits is Waits.BUSY


def test_health_check_waits_for_its_own_device() -> None:
    check = run(5, owner="lab", purpose=RunPurpose.HEALTH_CHECK, wanted_device="t2", submission_id=None, priority=100)
    devices = [make_device("t1"), make_device("t2", UNKNOWN, run_id=1)]
    (entry,) = entries(devices, [running(1, "t2"), check])
    assert (entry.waits, entry.ahead_runs) == (Waits.BUSY, 1)
    (free,) = entries([make_device("t1"), make_device("t2", UNKNOWN)], [check])
    assert free.waits is Waits.NEXT, "a check ignores health"


def test_runs_waiting_for_kernels_are_counted() -> None:
    found = view(LabSnapshot(NOW, [make_device("t1")], [run(1, state=JobState.WAITING)], {}))
    assert (found.total, found.waiting_for_kernels) == (0, 1)
    assert "25 points for each device" in found.rule


def test_long_queue_is_truncated_but_counted() -> None:
    found = view(LabSnapshot(NOW, [make_device("t1")], [run(number) for number in range(1, ENTRIES_MAX + 20)], {}))
    assert (len(found.entries), found.total) == (ENTRIES_MAX, ENTRIES_MAX + 19)
