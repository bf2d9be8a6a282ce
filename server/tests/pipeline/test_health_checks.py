"""Ordering, results, cancellation and kernels of health checks."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from wqlab_contracts.enums import DeviceHealth, ErrorKind, JobKind, JobState, Outcome, RunPurpose, SubmissionState
from wqlab_contracts.messages import ApplyResult, BlockPlan, BootKey, BootStarted, BuildResult, RunResult
from wqlab_server.models import Build, Device, Lease, Run
from wqlab_server.storage.live_data import LiveData

from ..support.lab import (
    NOW,
    LabUnderTest,
    RunSession,
    failed,
    infrastructure_result,
    passing_apply,
    passing_run,
    results,
)

pytestmark = pytest.mark.integration


def skip_an_hour(lab: LabUnderTest) -> None:
    """Move all jobs an hour into the past, beyond the pause after an inconclusive check, and work until idle."""
    for column in ("created_at", "finished_at"):
        lab.sql(f"UPDATE jobs SET {column} = {column} - interval '1h'")
    lab.until_idle()


def submit_with_unclaimed_check(lab: LabUnderTest, *, offered: bool) -> int:
    """Submit, and order a check that waits for its kernel, or is `offered` to a worker that does not claim it."""
    submission_id = lab.submit("locks@single")
    if offered:
        for _ in range(10):
            lab.work(JobKind.APPLY, JobKind.BUILD, "wqlab.advance", "wqlab.tick")
            lab.tick()
        lab.sent.clear()
    else:
        lab.tick()
    (check,) = lab.checks("single-1")
    assert check.state is (JobState.QUEUED if offered else JobState.WAITING)
    return submission_id


def test_unknown_device_is_checked_before_its_first_run(lab: LabUnderTest) -> None:
    submission_id = lab.submit("locks@device")
    lab.until_idle()

    checks = [run.job for run in lab.worker.runs if run.job.purpose == "health_check"]
    assert [job.device.name for job in checks] == ["device-1"]
    assert lab.runs(submission_id)[0].device_name == "device-1"
    device = lab.device("device-1")
    assert device.health is DeviceHealth.GOOD
    assert device.measured_topology is not None
    assert lab.device("device-2").health is DeviceHealth.UNKNOWN


def test_suspect_device_is_checked_and_becomes_good(lab: LabUnderTest) -> None:
    lab.mark_all_good()
    lab.worker.on_run = results(infrastructure_result(suspect=True), passing_run)
    submission_id = lab.submit("locks@single")
    assert lab.finished(submission_id).outcome is Outcome.PASSED
    assert [run.job.purpose.value for run in lab.worker.runs] == ["measure", "health_check", "measure"]
    assert lab.device("single-1").health is DeviceHealth.GOOD


def test_failed_check_quarantines_and_the_run_gets_another_device(lab: LabUnderTest) -> None:
    lab.mark_all_good()
    lab.sql("UPDATE devices SET health = 'unknown' WHERE device_type = 'device'")
    lab.worker.on_health_check = results(infrastructure_result("no console output in 120 s", suspect=True), passing_run)
    submission_id = lab.submit("locks@device")
    lab.until_idle()

    device = lab.device("device-1")
    assert device.health is DeviceHealth.QUARANTINED
    assert "no console output in 120 s" in device.health_reason
    assert lab.submission(submission_id).outcome is Outcome.PASSED
    assert lab.runs(submission_id)[0].device_name == "device-2"


def test_run_without_a_usable_device_fails_with_the_reason(lab: LabUnderTest) -> None:
    lab.worker.on_health_check = results(infrastructure_result("dead", suspect=True))
    submission_id = lab.submit("locks@single")
    submission = lab.finished(submission_id)
    assert submission.exit_code == 4
    assert submission.failure is not None
    assert "single-1: health check: dead" in submission.failure.summary


@pytest.mark.nightly
def test_inconclusive_check_is_repeated_after_a_pause(lab: LabUnderTest) -> None:
    inconclusive = infrastructure_result("no coordinator")
    lab.worker.on_health_check = results(*[inconclusive] * 4, passing_run)
    submission_id = lab.submit("locks@single")
    lab.until_idle()
    assert len(lab.worker.runs) == 2, "tried twice, then a pause"
    skip_an_hour(lab)
    assert lab.device("single-1").health is DeviceHealth.UNKNOWN
    assert lab.device("single-1").health_checked_at is None
    skip_an_hour(lab)
    assert lab.submission(submission_id).outcome is Outcome.PASSED
    assert lab.device("single-1").health is DeviceHealth.GOOD


def test_outage_of_the_equipment_of_all_devices_quarantines_none(lab: LabUnderTest) -> None:
    gone = infrastructure_result("the console cannot be opened: Connection refused", suspect=True)
    gone = gone.model_copy(update={"equipment_unreachable": True})
    lab.mark_all_good()
    lab.worker.on_run = results(gone, gone, passing_run)
    lab.worker.on_health_check = results(gone, gone, gone, gone, passing_run)
    submission_id = lab.submit("locks@device")
    lab.until_idle()
    healths = {lab.device(name).health for name in ("device-1", "device-2")}
    assert DeviceHealth.QUARANTINED not in healths
    assert lab.submission(submission_id).state is not SubmissionState.FINISHED
    for _ in range(3):
        skip_an_hour(lab)
    assert lab.submission(submission_id).outcome is Outcome.PASSED


@pytest.mark.nightly
def test_device_with_only_inconclusive_checks_is_quarantined(lab: LabUnderTest) -> None:
    lab.worker.on_health_check = results(infrastructure_result("the console cannot be read"))
    submission_id = lab.submit("locks@single")
    lab.until_idle()
    for _ in range(2):
        assert lab.device("single-1").health is DeviceHealth.UNKNOWN
        assert lab.submission(submission_id).state is not SubmissionState.FINISHED
        skip_an_hour(lab)
    device = lab.device("single-1")
    assert device.health is DeviceHealth.QUARANTINED
    assert "the console cannot be read" in device.health_reason
    assert lab.submission(submission_id).exit_code == 4
    assert len(lab.worker.runs) == 6

    # A release resets the count of inconclusive checks.
    lab.client.post("/api/v1/devices/single-1/release", headers={"Authorization": f"Bearer {lab.token}"})
    second = lab.submit("locks@single")
    lab.until_idle()
    assert lab.device("single-1").health is DeviceHealth.UNKNOWN
    lab.worker.on_health_check = passing_run
    skip_an_hour(lab)
    assert lab.submission(second).outcome is Outcome.PASSED


@pytest.mark.nightly
def test_run_fails_when_checks_have_no_kernel(lab: LabUnderTest) -> None:
    unreachable = failed(ErrorKind.INFRASTRUCTURE, "git.example.org does not answer")
    lab.worker.on_apply = lambda job, worker: (
        passing_apply(job, worker) if job.series else ApplyResult(outcome=Outcome.FAILED, failure=unreachable)
    )
    submission_id = lab.submit("locks@single")
    lab.until_idle()
    for _ in range(4):
        if lab.submission(submission_id).state is SubmissionState.FINISHED:
            break
        skip_an_hour(lab)
    submission = lab.submission(submission_id)
    assert submission.exit_code == 4
    assert submission.failure is not None
    assert "git.example.org does not answer" in submission.failure.summary
    assert lab.device("single-1").health is DeviceHealth.UNKNOWN, "the device itself never failed"


def test_failed_golden_kernel_build_is_not_repeated_at_once(lab: LabUnderTest) -> None:
    lab.worker.on_build = lambda job, worker: BuildResult(
        outcome=Outcome.FAILED, failure=failed(ErrorKind.USER, "does not compile")
    )
    lab.submit("locks@device")
    lab.until_idle()
    for _ in range(5):
        lab.tick()
    with lab.transaction() as session:
        assert len(session.scalars(select(Build.id)).all()) <= 3


def test_check_with_a_removed_recipe_fails(lab: LabUnderTest) -> None:
    lab.submit("locks@single")
    lab.tick()
    lab.sql(
        "UPDATE runs SET device_spec = jsonb_set(device_spec, '{recipe}', '\"gone\"') WHERE wanted_device = 'single-1'"
    )
    lab.tick()
    with lab.transaction() as session:
        check = session.scalars(select(Run).where(Run.wanted_device.is_not(None))).one()
    assert check.outcome is Outcome.FAILED
    assert check.failure is not None
    assert "recipe gone no longer exists" in check.failure.summary
    assert lab.tick_errors() == {}


@pytest.mark.parametrize("offered", [False, True])
def test_quarantine_cancels_checks_and_release_orders_one(lab: LabUnderTest, offered: bool) -> None:
    submit_with_unclaimed_check(lab, offered=offered)
    lab.post("devices/single-1/quarantine", {"reason": "smells of smoke"})
    (check,) = lab.checks("single-1")
    assert (check.state, check.outcome) == (JobState.FINISHED, Outcome.CANCELED)
    assert check.failure is not None
    assert check.failure.kind is ErrorKind.CANCELED
    assert check.failure.summary == "single-1 was quarantined: smells of smoke (dev)"
    with lab.transaction() as session:
        assert session.scalar(select(Lease)) is None
    lab.until_idle()
    assert len(lab.checks("single-1")) == 1, "a quarantined device is not checked"

    lab.post("devices/single-1/release")
    lab.until_idle()
    first, fresh = lab.checks("single-1")
    assert (first.id, fresh.outcome) == (check.id, Outcome.PASSED)
    assert lab.device("single-1").health is DeviceHealth.GOOD


@pytest.mark.nightly
def test_tick_cancels_a_check_ordered_during_a_quarantine(lab: LabUnderTest) -> None:
    submit_with_unclaimed_check(lab, offered=True)
    lab.sql("UPDATE devices SET health = 'quarantined', health_reason = 'by hand' WHERE name = 'single-1'")
    lab.tick()
    (check,) = lab.checks("single-1")
    assert check.outcome is Outcome.CANCELED
    assert check.failure is not None
    assert check.failure.summary == "single-1 was quarantined: by hand"


@pytest.mark.nightly
def test_check_of_a_retired_device_is_canceled(lab: LabUnderTest) -> None:
    submit_with_unclaimed_check(lab, offered=True)
    (lab.settings.data_dir / "device-types/single.yaml").unlink()
    lab.app.state.data = LiveData(lab.settings.data_dir)  # the old one rereads the folder only once a second
    lab.tick()
    (check,) = lab.checks("single-1")
    assert check.outcome is Outcome.CANCELED
    assert check.failure is not None
    assert "no longer in the device-types folder" in check.failure.summary


def test_running_check_of_a_quarantined_device_is_not_retried(lab: LabUnderTest) -> None:
    def quarantine_during_check(run: RunSession) -> RunResult:
        plan: BlockPlan = run.remaining[0]
        run.send(BootStarted(at=NOW, boot=BootKey(block=0, position=0, arm=plan.arms[0], attempt=plan.first_attempt)))
        lab.post("devices/single-1/quarantine", {"reason": "smoke"})
        return RunResult(outcome=Outcome.FAILED, failure=failed(ErrorKind.INFRASTRUCTURE, "no coordinator"))

    lab.worker.on_health_check = quarantine_during_check
    lab.submit("locks@single")
    lab.until_idle()
    (check,) = lab.checks("single-1")
    assert (check.state, check.outcome, check.attempts) == (JobState.FINISHED, Outcome.CANCELED, 1)
    assert check.failure is not None
    assert check.failure.summary == "single-1 was quarantined: smoke (dev)"


def test_release_orders_a_check_without_a_waiting_run(lab: LabUnderTest) -> None:
    lab.mark_all_good()
    lab.post("devices/device-2/quarantine", {"reason": "new fan"})
    lab.post("devices/device-2/release")
    assert [message.task for message in lab.sent] == ["wqlab.tick"], "a tick is requested at once"
    lab.until_idle()
    (check,) = lab.checks("device-2")
    assert (check.purpose, check.outcome) == (RunPurpose.HEALTH_CHECK, Outcome.PASSED)
    with lab.transaction() as session:
        assert not session.scalars(select(Device.name).where(Device.check_requested_at.is_not(None))).all()
