"""The lab snapshot: which devices a run may use, and the schedule that starts from it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from wqlab_contracts.celery_names import ADVANCE
from wqlab_contracts.enums import DeviceHealth, JobKind, JobState, RunPurpose
from wqlab_server.estimates import lab_snapshot
from wqlab_server.estimates.lab_snapshot import DeviceSnapshot, LabSnapshot, UnfinishedRun, availability_class

from ..support.lab import LabUnderTest

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
GOOD, UNKNOWN, QUARANTINED = DeviceHealth.GOOD, DeviceHealth.UNKNOWN, DeviceHealth.QUARANTINED
DEVICE = DeviceSnapshot("t1", "tiny", "local", GOOD, None)
RUN = UnfinishedRun(
    run_id=1,
    submission_id=10,
    title="wq: faster",
    owner="alice",
    purpose=RunPurpose.MEASURE,
    plan="fsync",
    device_type="tiny",
    wanted_device=None,
    wanted_backend=None,
    device=None,
    state=JobState.QUEUED,
    priority=50,
    created_at=NOW - timedelta(minutes=6),
    boots_left=4,
    boot_s=60.0,
)


@pytest.mark.parametrize(
    ("health", "leased", "expected"),
    [(GOOD, False, "good"), (GOOD, True, "busy"), (UNKNOWN, False, "unknown"), (QUARANTINED, True, "quarantined")],
)
def test_device_is_counted_in_one_class(health: DeviceHealth, leased: bool, expected: str) -> None:
    assert availability_class(health, leased=leased) == expected


def test_run_can_use_devices_of_its_type_and_backend() -> None:
    assert RUN.can_use(DEVICE)
    assert not RUN.can_use(replace(DEVICE, device_type="big"))
    assert not replace(RUN, wanted_backend="lava").can_use(DEVICE)
    check = replace(RUN, wanted_device="t2")
    assert (check.can_use(DEVICE), check.can_use(replace(DEVICE, name="t2"))) == (False, True)


def test_queued_runs_are_ordered_by_score() -> None:
    busy_owner = replace(RUN, run_id=2, priority=60)
    holding = replace(RUN, run_id=3, device="t9", state=JobState.RUNNING)
    snapshot = LabSnapshot(NOW, [], [replace(busy_owner, owner="bob"), replace(holding, owner="bob"), RUN], {})
    assert [run.run_id for run in snapshot.queued] == [1, 2], "a held device costs 25 points"
    assert snapshot.score(RUN) == 56.0


def test_schedule_waits_for_the_run_on_a_leased_device() -> None:
    running = replace(RUN, device="t1", state=JobState.RUNNING)
    snapshot = LabSnapshot(NOW, [replace(DEVICE, run_id=1)], [running], {})
    assert snapshot.schedule().place("tiny", 10.0) == 240.0


def test_schedule_uses_devices_of_unknown_health_only_without_a_good_one() -> None:
    unknown = DeviceSnapshot("t2", "tiny", "local", UNKNOWN, None)
    assert LabSnapshot(NOW, [unknown], [], {}).schedule().place("tiny", 10.0) == 0.0
    both = LabSnapshot(NOW, [replace(DEVICE, run_id=1), unknown], [replace(RUN, device="t1")], {})
    assert both.schedule().place("tiny", 10.0) == 240.0
    unavailable = replace(DEVICE, unavailable_reason="LAVA does not answer")
    assert LabSnapshot(NOW, [unavailable], [], {}).schedule().place("tiny", 10.0) is None


@pytest.mark.integration
def test_load_reads_devices_leases_and_runs(lab: LabUnderTest) -> None:
    lab.mark_all_good()
    submission_id = lab.submit("locks@single")
    lab.work(JobKind.APPLY, JobKind.BUILD, ADVANCE)
    with lab.transaction() as session:
        snapshot = lab_snapshot.load(session, lab.settings)
    (run,) = snapshot.runs
    assert (run.submission_id, run.device, run.boots_left, run.boot_s) == (submission_id, "single-1", 4, None)
    assert {device.name: device.run_id for device in snapshot.devices} == {
        "device-1": None,
        "device-2": None,
        "single-1": run.run_id,
    }
    assert [each.run_id for each in snapshot.offered] == [run.run_id]
