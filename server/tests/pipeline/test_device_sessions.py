"""Retries, lost workers and repeated finishes of runs."""

from __future__ import annotations

import pytest
from sqlalchemy import select, update

from wqlab_contracts.celery_names import ADVANCE
from wqlab_contracts.enums import Arm, DeviceHealth, EventKind, Outcome
from wqlab_contracts.messages import BootKey, BootStarted, RunResult
from wqlab_server.models import BlockAttempt, Boot, Comparison, Device, RunAttempt
from wqlab_server.settings import Settings

from ..support.lab import NOW, LabUnderTest, RunSession, infrastructure_result, passing_run, results

pytestmark = pytest.mark.integration


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"run_attempts": 2})


def test_infrastructure_failure_is_retried_on_another_device(lab: LabUnderTest) -> None:
    lab.mark_all_good()
    lab.worker.on_run = results(infrastructure_result(), passing_run)
    submission_id = lab.submit("locks@device")
    assert lab.finished(submission_id).outcome is Outcome.PASSED
    with lab.transaction() as session:
        attempts = session.scalars(select(RunAttempt).order_by(RunAttempt.number)).all()
        assert [(a.device_name, a.outcome) for a in attempts] == [
            ("device-1", Outcome.FAILED),
            ("device-2", Outcome.PASSED),
        ]
    events = [event for event in lab.events(submission_id) if event.kind is EventKind.ATTEMPT_FAILED]
    assert [event.data["device"] for event in events] == ["device-1"]


def test_run_that_advances_is_not_given_up(lab: LabUnderTest) -> None:
    """The lab fails after each block, in more attempts than are allowed without progress."""
    lab.mark_all_good()

    def one_block(run: RunSession) -> RunResult:
        run.send_block(run.remaining[0])
        return infrastructure_result()

    lab.worker.on_run = results(one_block)
    submission_id = lab.submit("locks@device", blocks=lab.settings.run_attempts + 2)
    assert lab.finished(submission_id).outcome is Outcome.PASSED
    assert lab.runs(submission_id)[0].attempts > lab.settings.run_attempts


def test_expired_lease_keeps_blocks_and_orders_a_check(lab: LabUnderTest) -> None:
    lab.mark_all_good()
    with lab.transaction() as session:
        session.execute(update(Device).where(Device.name == "device-2").values(health=DeviceHealth.QUARANTINED))

    def stop_in_second_block(run: RunSession) -> None:
        run.send_block(run.remaining[0])
        plan = run.remaining[1]
        run.send(*run.boot_events(BootKey(block=plan.block, position=0, arm=plan.arms[0], attempt=0)))

    lab.worker.on_run = results(stop_in_second_block, passing_run)
    submission_id = lab.submit("locks@device")
    lab.until_idle()
    run_id = lab.runs(submission_id)[0].id
    lab.expire(run_id)
    assert lab.finished(submission_id).outcome is Outcome.PASSED
    _, check, second = lab.worker.runs
    assert check.job.purpose == "health_check"
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
        assert discarded.arm is None, "no boot was unfinished"
        figures = session.scalars(select(Comparison).where(Comparison.run_id == run_id)).all()
        assert {row.data.baseline.n for row in figures if row.data.baseline} == {2}


def test_boot_of_a_lost_worker_counts_against_no_arm(lab: LabUnderTest) -> None:
    lab.mark_all_good()

    def stop_during_a_boot(run: RunSession) -> None:
        plan = run.remaining[0]
        position = plan.arms.index(Arm.CANDIDATE)
        for arm in plan.arms[:position]:
            run.send(*run.boot_events(BootKey(block=plan.block, position=0, arm=arm, attempt=0)))
        key = BootKey(block=plan.block, position=position, arm=Arm.CANDIDATE, attempt=0)
        run.send(BootStarted(at=NOW, boot=key))

    lab.worker.on_run = results(stop_during_a_boot, passing_run)
    submission_id = lab.submit("locks@device")
    lab.until_idle()
    lab.expire(lab.runs(submission_id)[0].id)
    assert lab.finished(submission_id).outcome is Outcome.PASSED
    (target,) = lab.report(submission_id).targets
    assert (target.discarded, target.discarded_by_lab) == ({}, 1)
    assert [attempt.arm for attempt in lab.report(submission_id).attempts if attempt.block is not None] == [
        Arm.CANDIDATE
    ], "the report still names the boot that was lost"


def test_run_passes_if_its_worker_is_lost_after_the_last_block(lab: LabUnderTest) -> None:
    lab.mark_all_good()

    def stop_before_finish(run: RunSession) -> None:
        for plan in run.remaining:
            run.send_block(plan)

    lab.worker.on_run = results(stop_before_finish)
    submission_id = lab.submit("locks@device")
    lab.until_idle()
    lab.expire(lab.runs(submission_id)[0].id)
    lab.until_idle()

    run = lab.runs(submission_id)[0]
    assert (run.outcome, run.attempts) == (Outcome.PASSED, 1)
    assert lab.submission(submission_id).outcome is Outcome.PASSED


def test_repeated_finish_needs_the_same_result(lab: LabUnderTest, run: RunSession) -> None:
    for plan in run.remaining:
        run.send_block(plan)
    run.finish()
    run.finish()
    run.finish(RunResult(outcome=Outcome.CANCELED), expect=409)
    lab.work(ADVANCE)
    run.finish()
    assert lab.submission(1).outcome is Outcome.PASSED
