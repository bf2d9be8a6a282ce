"""What goes wrong in the lab itself costs a device its turn, or its place, and no series its verdict."""

from __future__ import annotations

import pytest
from sqlalchemy import select, update

from wqlab_contracts.enums import Arm, DeviceHealth, ErrorKind, EventKind, JobState, Outcome, SubmissionState
from wqlab_contracts.messages import ApplyResult, BootKey, BootStarted, BuildResult, RunResult
from wqlab_server.models import BlockAttempt, Boot, Build, Comparison, Device, RunAttempt

from ..support.lab import NOW, LabUnderTest, RunSession, failed, passing_apply, passing_run, results

pytestmark = pytest.mark.integration


def infra(summary: str = "power switch does not answer", *, suspect: bool = False) -> RunResult:
    return RunResult(outcome=Outcome.FAILED, failure=failed(ErrorKind.INFRASTRUCTURE, summary), device_suspect=suspect)


def test_an_infrastructure_failure_is_retried_on_another_unit(lab: LabUnderTest) -> None:
    lab.all_good()
    lab.worker.on_run = results(infra(), passing_run)
    submission_id = lab.submit("locks@device")
    lab.until_idle()

    assert lab.submission(submission_id).outcome is Outcome.PASSED
    with lab.transaction() as session:
        attempts = session.scalars(select(RunAttempt).order_by(RunAttempt.number)).all()
        assert [(a.device_name, a.outcome) for a in attempts] == [
            ("device-1", Outcome.FAILED),
            ("device-2", Outcome.PASSED),
        ]
    told = [event for event in lab.events(submission_id) if event.kind is EventKind.ATTEMPT_FAILED]
    assert [event.data["device"] for event in told] == ["device-1"]


def test_retries_are_bounded(lab: LabUnderTest) -> None:
    lab.all_good()
    lab.worker.on_run = results(infra())
    submission_id = lab.submit("locks@device")
    lab.until_idle()
    assert lab.submission(submission_id).exit_code == 4
    assert lab.runs(submission_id)[0].attempts == lab.settings.run_attempts


def test_a_suspect_device_is_checked_and_comes_back(lab: LabUnderTest) -> None:
    lab.all_good()
    lab.worker.on_run = results(infra(suspect=True), passing_run)
    submission_id = lab.submit("locks@single")
    lab.until_idle()

    assert lab.submission(submission_id).outcome is Outcome.PASSED
    assert [run.job.purpose.value for run in lab.worker.runs] == ["measure", "health_check", "measure"]
    assert lab.device("single-1").health is DeviceHealth.GOOD


def test_a_device_that_fails_its_check_is_quarantined_with_the_reason_and_the_run_moves_on(lab: LabUnderTest) -> None:
    lab.all_good()
    lab.sql("UPDATE devices SET health = 'unknown' WHERE device_type = 'device'")
    lab.worker.on_health_check = results(infra("no console output in 120 s", suspect=True), passing_run)
    submission_id = lab.submit("locks@device")
    lab.until_idle()

    device = lab.device("device-1")
    assert device.health is DeviceHealth.QUARANTINED
    assert "no console output in 120 s" in device.health_reason
    assert lab.submission(submission_id).outcome is Outcome.PASSED
    assert lab.runs(submission_id)[0].device_name == "device-2"


def test_a_run_that_no_unit_can_serve_says_so_instead_of_waiting(lab: LabUnderTest) -> None:
    lab.worker.on_health_check = results(infra("dead", suspect=True))
    submission_id = lab.submit("locks@single")
    lab.until_idle()
    submission = lab.submission(submission_id)
    assert submission.exit_code == 4
    assert submission.failure is not None
    assert "single-1: health check: dead" in submission.failure.summary


def an_hour_later(lab: LabUnderTest) -> None:
    """The wait after a check that gave no answer is over."""
    for table in ("runs", "applies", "builds"):
        for column in ("created_at", "finished_at"):
            lab.sql(f"UPDATE {table} SET {column} = {column} - interval '1h'")
    lab.until_idle()


def test_checks_that_the_lab_cuts_short_are_repeated_and_harm_nobody(lab: LabUnderTest) -> None:
    away = infra("no coordinator")
    lab.worker.on_health_check = results(away, away, away, away, passing_run)
    submission_id = lab.submit("locks@single")
    lab.until_idle()
    assert len(lab.worker.runs) == 2, "tried twice, then a pause"
    an_hour_later(lab)
    assert lab.device("single-1").health is DeviceHealth.UNKNOWN
    assert lab.device("single-1").health_checked_at is None
    an_hour_later(lab)
    assert lab.submission(submission_id).outcome is Outcome.PASSED
    assert lab.device("single-1").health is DeviceHealth.GOOD


def test_a_device_whose_checks_never_come_to_an_end_is_quarantined_and_the_run_ends(lab: LabUnderTest) -> None:
    lab.worker.on_health_check = results(infra("the console cannot be read"))
    submission_id = lab.submit("locks@single")
    lab.until_idle()
    for _ in range(2):
        assert lab.device("single-1").health is DeviceHealth.UNKNOWN
        assert lab.submission(submission_id).state is not SubmissionState.FINISHED
        an_hour_later(lab)
    device = lab.device("single-1")
    assert device.health is DeviceHealth.QUARANTINED
    assert "the console cannot be read" in device.health_reason
    assert lab.submission(submission_id).exit_code == 4
    assert len(lab.worker.runs) == 6

    # Released, it starts with a clean record.
    lab.client.post("/api/v1/devices/single-1/release", headers={"Authorization": f"Bearer {lab.token}"})
    second = lab.submit("locks@single")
    lab.until_idle()
    assert lab.device("single-1").health is DeviceHealth.UNKNOWN
    lab.worker.on_health_check = passing_run
    an_hour_later(lab)
    assert lab.submission(second).outcome is Outcome.PASSED


def test_a_run_does_not_wait_for_ever_for_checks_that_have_no_kernel(lab: LabUnderTest) -> None:
    nowhere = ApplyResult(outcome=Outcome.FAILED, failure=failed(ErrorKind.INFRASTRUCTURE, "git.example.org is away"))
    lab.worker.on_apply = lambda job, worker: passing_apply(job, worker) if job.series else nowhere
    submission_id = lab.submit("locks@single")
    lab.until_idle()
    for _ in range(4):
        if lab.submission(submission_id).state is SubmissionState.FINISHED:
            break
        an_hour_later(lab)
    submission = lab.submission(submission_id)
    assert submission.exit_code == 4
    assert submission.failure is not None
    assert "git.example.org is away" in submission.failure.summary
    assert lab.device("single-1").health is DeviceHealth.UNKNOWN, "nobody has seen the device fail"


def test_a_lease_that_runs_out_keeps_whole_blocks_and_tells_the_next_holder(lab: LabUnderTest) -> None:
    lab.all_good()
    with lab.transaction() as session:
        session.execute(update(Device).where(Device.name == "device-2").values(health=DeviceHealth.QUARANTINED))

    def dies_in_second_block(run: RunSession) -> None:
        run.block(run.remaining[0])
        plan = run.remaining[1]
        run.send(*run.boot_events(BootKey(block=plan.block, position=0, arm=plan.arms[0], attempt=0)))

    lab.worker.on_run = results(dies_in_second_block, passing_run)
    submission_id = lab.submit("locks@device")
    lab.until_idle()
    run_id = lab.runs(submission_id)[0].id
    lab.expire("runs", run_id)
    lab.until_idle()

    assert lab.submission(submission_id).outcome is Outcome.PASSED
    first, check, second = lab.worker.runs
    assert not first.job.previous_holder
    assert check.job.purpose == "health_check"
    assert check.job.previous_holder, "the first to come must release the place and power-cycle"
    assert not second.job.previous_holder
    assert second.completed == [0]
    assert [plan.first_attempt for plan in second.job.blocks] == [1, 1]
    with lab.transaction() as session:
        boots = session.scalars(select(Boot).where(Boot.run_id == run_id).order_by(Boot.id)).all()
        assert [(boot.block, boot.attempt, boot.valid) for boot in boots] == [
            (0, 0, True), (0, 0, True), (1, 0, False), (1, 1, True), (1, 1, True),
        ]  # fmt: skip
        discarded = session.scalars(select(BlockAttempt).where(~BlockAttempt.finished)).one()
        assert discarded.failure is not None
        assert "stopped answering" in discarded.failure.summary
        assert discarded.arm is None, "no boot was under way"
        figures = session.scalars(select(Comparison).where(Comparison.run_id == run_id)).all()
        assert {row.data.baseline.n for row in figures if row.data.baseline} == {2}


def test_a_boot_under_way_when_its_worker_is_lost_counts_for_its_arm(lab: LabUnderTest) -> None:
    lab.all_good()

    def dies_in_a_boot(run: RunSession) -> None:
        plan = run.remaining[0]
        position = plan.arms.index(Arm.CANDIDATE)
        for arm in plan.arms[:position]:
            run.send(*run.boot_events(BootKey(block=plan.block, position=0, arm=arm, attempt=0)))
        key = BootKey(block=plan.block, position=position, arm=Arm.CANDIDATE, attempt=0)
        run.send(BootStarted(at=NOW, boot=key))

    lab.worker.on_run = results(dies_in_a_boot, passing_run)
    submission_id = lab.submit("locks@device")
    lab.until_idle()
    lab.expire("runs", lab.runs(submission_id)[0].id)
    lab.until_idle()
    assert lab.submission(submission_id).outcome is Outcome.PASSED
    (target,) = lab.report(submission_id).targets
    assert target.discarded == {Arm.CANDIDATE: 1}


def test_a_worker_that_dies_while_building_loses_its_claim_not_the_build(lab: LabUnderTest) -> None:
    submission_id = lab.submit("locks@device")
    lab.work("wqlab.apply", "wqlab.advance")
    build_id = next(m.id for m in lab.sent if m.task == "wqlab.build")
    assert build_id is not None
    assert lab.worker.claim("builds", build_id) is not None
    lab.sent[:] = [message for message in lab.sent if message.id != build_id]
    lab.tick()
    assert not [m for m in lab.sent if m.id == build_id and m.task == "wqlab.build"], "it is claimed, not lost"
    lab.expire("builds", build_id)
    lab.until_idle()
    assert lab.submission(submission_id).outcome is Outcome.PASSED


def test_an_offer_that_no_worker_takes_lapses_without_blame(lab: LabUnderTest) -> None:
    lab.all_good()
    submission_id = lab.submit("locks@single")
    lab.work("wqlab.apply", "wqlab.build", "wqlab.advance")
    run = lab.runs(submission_id)[0]
    assert (run.state, run.device_name) == (JobState.QUEUED, "single-1")
    lab.sql("UPDATE leases SET expires_at = now() - interval '1 second'")
    lab.sent.clear()
    assert lab.worker.claim("runs", run.id) is None
    lab.until_idle()
    assert lab.submission(submission_id).outcome is Outcome.PASSED
    assert lab.runs(submission_id)[0].attempts == 1


def test_a_kernel_swapped_behind_the_labs_back_is_no_figure(lab: LabUnderTest) -> None:
    lab.all_good()

    def swapped(run: RunSession) -> RunResult:
        kernels = {arm: kernel.model_copy(update={"build_id_gnu": "f" * 40}) for arm, kernel in run.job.kernels.items()}
        run.job = run.job.model_copy(update={"kernels": kernels})
        return passing_run(run)

    lab.worker.on_run = swapped
    submission_id = lab.submit("locks@single")
    lab.until_idle()
    submission = lab.submission(submission_id)
    assert (submission.outcome, submission.exit_code) == (Outcome.FAILED, 4)
    with lab.transaction() as session:
        run_id = lab.runs(submission_id)[0].id
        assert not session.scalars(select(Boot).where(Boot.valid, Boot.run_id == run_id)).all()


def test_a_golden_kernel_that_cannot_be_built_does_not_spin(lab: LabUnderTest) -> None:
    lab.worker.on_build = lambda job, worker: BuildResult(
        outcome=Outcome.FAILED, failure=failed(ErrorKind.USER, "does not compile")
    )
    lab.submit("locks@device")
    lab.until_idle()
    for _ in range(5):
        lab.tick()
    with lab.transaction() as session:
        assert len(session.scalars(select(Build.id)).all()) <= 3
