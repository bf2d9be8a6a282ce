"""Arm that a discarded block counts against."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from wqlab_contracts.enums import Arm, ErrorKind, FindingKind, Outcome, Verdict
from wqlab_contracts.messages import (
    BlockDiscarded,
    BootFinished,
    BootKey,
    BootStarted,
    Failure,
    Finding,
    GitSeries,
    RunResult,
    Series,
)
from wqlab_server.models import BlockAttempt, Device, Job, Run
from wqlab_server.runs.block_attempts import SIMULTANEOUS, record_block_attempt
from wqlab_server.runs.record import record

from ..support.lab import NOW, LabUnderTest, RunSession, passing_run, results

pytestmark = pytest.mark.integration

HANG = Failure(kind=ErrorKind.KERNEL, summary="hang: no answer by SSH and no console output")
NO_SSH = Failure(kind=ErrorKind.INFRASTRUCTURE, summary="no answer by SSH", of_variant=True)
CONSOLE_LOST = Failure(kind=ErrorKind.INFRASTRUCTURE, summary="the console server closed the connection")


@pytest.fixture
def two_runs(lab: LabUnderTest) -> tuple[int, int]:
    """Runs of two series on two devices of one lab."""
    lab.mark_all_good()
    lab.worker.on_run = results(lambda run: None)
    ids = [
        lab.runs(lab.submit("locks@device", series=Series(git=GitSeries(url="https://git.example.org/x", ref=ref))))[
            0
        ].id
        for ref in ("one", "other")
    ]
    lab.until_idle()
    with lab.transaction() as session:
        devices = session.scalars(select(Run.device_name).where(Run.id.in_(ids))).all()
        assert sorted(map(str, devices)) == ["device-1", "device-2"]
    return ids[0], ids[1]


def discard(
    lab: LabUnderTest, run_id: int, failure: Failure, arm: Arm = Arm.CANDIDATE, kind: FindingKind | None = None
) -> None:
    with lab.transaction() as session:
        run = session.get_one(Run, run_id)
        if kind is not None:
            report_of(session, run, arm, kind)
        assert record_block_attempt(session, run, 0, 0, finished=False, arm=arm, failure=failure)


def report_of(session: Session, run: Run, arm: Arm, kind: FindingKind) -> None:
    key = BootKey(block=0, position=run.blocks[0].index(arm), arm=arm, attempt=0)
    finding = Finding(at=NOW, boot=key, kind=kind, title="seen", excerpt="", console_offset=0, fatal=True)
    record(session, run, [BootStarted(at=NOW, boot=key), finding])


def counted(lab: LabUnderTest) -> list[Arm | None]:
    with lab.transaction() as session:
        return list(session.scalars(select(BlockAttempt.arm).order_by(BlockAttempt.run_id)))


@pytest.mark.parametrize(("failure", "arm"), [(NO_SSH, Arm.CANDIDATE), (HANG, Arm.CANDIDATE), (CONSOLE_LOST, None)])
def test_discard_counts_if_the_failure_was_seen_through_the_device(
    lab: LabUnderTest, two_runs: tuple[int, int], failure: Failure, arm: Arm | None
) -> None:
    discard(lab, two_runs[0], failure)
    assert counted(lab) == [arm]


@pytest.mark.parametrize("second", [NO_SSH, HANG])
def test_two_devices_that_fail_at_once_count_against_no_arm(
    lab: LabUnderTest, two_runs: tuple[int, int], second: Failure
) -> None:
    discard(lab, two_runs[0], NO_SSH)
    discard(lab, two_runs[1], second)
    assert counted(lab) == [None, None]


def test_kernel_report_counts_although_another_device_failed_at_once(
    lab: LabUnderTest, two_runs: tuple[int, int]
) -> None:
    panic = Failure(kind=ErrorKind.KERNEL, summary="panic: seen")
    discard(lab, two_runs[0], NO_SSH)
    discard(lab, two_runs[1], panic, kind=FindingKind.PANIC)
    assert counted(lab) == [Arm.CANDIDATE, Arm.CANDIDATE]


def test_failures_at_different_times_count(lab: LabUnderTest, two_runs: tuple[int, int]) -> None:
    discard(lab, two_runs[0], NO_SSH)
    with lab.transaction() as session:
        session.execute(update(BlockAttempt).values(at=BlockAttempt.at - SIMULTANEOUS - timedelta(seconds=1)))
    discard(lab, two_runs[1], NO_SSH)
    assert counted(lab) == [Arm.CANDIDATE, Arm.CANDIDATE]


def test_devices_of_different_labs_have_no_common_host(lab: LabUnderTest, two_runs: tuple[int, int]) -> None:
    with lab.transaction() as session:
        session.execute(update(Device).where(Device.name == "device-1").values(lab="elsewhere"))
    discard(lab, two_runs[0], NO_SSH)
    discard(lab, two_runs[1], NO_SSH)
    assert counted(lab) == [Arm.CANDIDATE, Arm.CANDIDATE]


def test_one_candidate_that_hangs_on_two_devices_counts(lab: LabUnderTest, two_runs: tuple[int, int]) -> None:
    first, second = two_runs
    with lab.transaction() as session:
        same = session.scalar(select(Run.submission_id).where(Run.id == first))
        session.execute(update(Job).where(Job.id == second).values(submission_id=same))
    discard(lab, first, HANG)
    discard(lab, second, HANG)
    assert counted(lab) == [Arm.CANDIDATE, Arm.CANDIDATE]


def test_candidate_that_is_submitted_twice_does_not_excuse_itself(lab: LabUnderTest, two_runs: tuple[int, int]) -> None:
    first, second = two_runs
    with lab.transaction() as session:
        same = session.scalar(select(Run.candidate_build_id).where(Run.id == first))
        session.execute(update(Run).where(Run.id == second).values(candidate_build_id=same))
    discard(lab, first, HANG)
    discard(lab, second, HANG)
    assert counted(lab) == [Arm.CANDIDATE, Arm.CANDIDATE]


def test_hang_of_the_lab_is_not_held_against_the_candidate(lab: LabUnderTest) -> None:
    """The device falls silent in one boot when the lab's other device fails; the repeated block passes."""
    lab.mark_all_good()
    lab.worker.on_run = results(passing_run)
    earlier = lab.submit("locks@device")
    assert lab.finished(earlier).outcome is Outcome.PASSED

    def hang_once(run: RunSession) -> RunResult:
        plan = run.remaining[0]
        key = BootKey(block=plan.block, position=plan.arms.index(Arm.CANDIDATE), arm=Arm.CANDIDATE, attempt=0)
        silence = Finding(
            at=NOW, boot=key, kind=FindingKind.HANG, title="no answer", excerpt="", console_offset=0, fatal=True
        )
        with lab.transaction() as session:
            other = session.scalars(select(Device.name).where(Device.name.like("device-%"))).all()
            other_device = next(name for name in other if name != run.job.device.name)
            session.add(
                BlockAttempt(
                    run_id=lab.runs(earlier)[0].id, block=99, attempt=0, finished=False, device_name=other_device,
                    arm=Arm.BASELINE, failure=NO_SSH,
                )
            )  # fmt: skip
        run.send(
            BootStarted(at=NOW, boot=key),
            silence,
            BootFinished(at=NOW, boot=key, outcome=Outcome.FAILED, failure=HANG),
            BlockDiscarded(at=NOW, block=plan.block, attempt=0, arm=Arm.CANDIDATE, failure=HANG),
        )
        run.send_block(plan.model_copy(update={"first_attempt": 1}))
        for rest in run.remaining[1:]:
            run.send_block(rest)
        return RunResult(outcome=Outcome.PASSED)

    lab.worker.on_run = results(hang_once)
    submission_id = lab.submit("locks@device")
    assert lab.finished(submission_id).exit_code == 0
    (target,) = lab.report(submission_id).targets
    assert (target.verdict, target.discarded, target.discarded_by_lab) == (Verdict.IMPROVEMENT, {}, 1)
