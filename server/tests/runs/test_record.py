"""Recording of run events: repeated, invalid and unverified ones."""

from __future__ import annotations

import pytest
from sqlalchemy import func, select, update

from wqlab_contracts.celery_names import ADVANCE
from wqlab_contracts.enums import Arm, ErrorKind, FindingKind, Outcome
from wqlab_contracts.messages import BlockFinished, BootKey, Finding, RunResult, StackFrame
from wqlab_server.models import BlockAttempt, Boot, Device, Event, Sample

from ..support.lab import NOW, LabUnderTest, RunSession, passing_run, results

pytestmark = pytest.mark.integration

STACK = (StackFrame(function="flush_one", offset=8, file="kernel/workqueue.c", line=7, source="poke(where);"),)


def test_block_with_a_wrong_build_id_is_discarded(lab: LabUnderTest) -> None:
    lab.mark_all_good()

    def report_wrong_build_ids(run: RunSession) -> RunResult:
        kernels = {arm: kernel.model_copy(update={"build_id_gnu": "f" * 40}) for arm, kernel in run.job.kernels.items()}
        run.job = run.job.model_copy(update={"kernels": kernels})
        return passing_run(run)

    lab.worker.on_run = report_wrong_build_ids
    submission_id = lab.submit("locks@single")
    submission = lab.finished(submission_id)
    assert (submission.outcome, submission.exit_code) == (Outcome.FAILED, 4)
    with lab.transaction() as session:
        run_id = lab.runs(submission_id)[0].id
        assert not session.scalars(select(Boot).where(Boot.valid, Boot.run_id == run_id)).all()


def test_fatal_finding_after_the_last_sample_discards_the_block(lab: LabUnderTest) -> None:
    lab.mark_all_good()

    def report_late_oops(run: RunSession) -> None:
        plan = run.remaining[0]
        keys = [BootKey(block=plan.block, position=at, arm=arm, attempt=0) for at, arm in enumerate(plan.arms)]
        for key in keys:
            run.send(*run.boot_events(key))
        late = next(key for key in keys if key.arm is Arm.BASELINE)
        run.send(
            Finding(
                at=NOW, boot=late, kind=FindingKind.OOPS, title="NULL pointer", excerpt="BUG: NULL pointer",
                console_offset=9, fatal=True, stack=STACK, defect="oops: NULL pointer in flush_one",
            ),
            BlockFinished(at=NOW, block=plan.block, attempt=0),
        )  # fmt: skip
        passing_run(run)

    lab.worker.on_run = results(report_late_oops, passing_run, passing_run)
    lab.submit("locks@device")
    lab.until_idle()

    with lab.transaction() as session:
        late = session.scalars(select(BlockAttempt).where(BlockAttempt.block == 0, BlockAttempt.attempt == 0)).one()
        assert (late.finished, late.arm) == (False, Arm.BASELINE)
        assert late.failure is not None and late.failure.kind is ErrorKind.KERNEL
        assert (late.failure.stack, late.failure.defect) == (STACK, "oops: NULL pointer in flush_one")


def test_nul_byte_from_a_device_does_not_block_its_run(lab: LabUnderTest, run: RunSession) -> None:
    key = run.first_key
    started, verified, samples, _ = run.boot_events(key)
    verified_with_nul = verified.model_dump(mode="json") | {"environment": {"cpu\0model": "a\0b"}}
    samples_with_nul = samples.model_dump(mode="json") | {"facts": {"fio": "3.\0"}, "commands": {"c": "fio \0"}}
    body = {"fence": run.fence, "events": [started.model_dump(mode="json"), verified_with_nul, samples_with_nul]}
    lab.worker.post(f"jobs/{run.job.run_id}/events", body, 204)
    with lab.transaction() as session:
        boot = session.scalars(select(Boot)).one()
        assert boot.environment == {"cpu\ufffdmodel": "a\ufffdb", "fio": "3.\ufffd"}
        assert boot.commands == {"c": "fio \ufffd"}


def test_repeated_events_are_recorded_once(lab: LabUnderTest, run: RunSession) -> None:
    for plan in run.remaining:
        run.send_block(plan, times=3)
    run.finish()
    lab.work(ADVANCE)
    with lab.transaction() as session:
        assert session.scalar(select(func.count()).select_from(Boot)) == 4
        assert session.scalar(select(func.count()).select_from(Sample)) == 4 * 2 * 2
        assert session.scalar(select(func.count()).select_from(BlockAttempt)) == 2
        kinds = list(session.scalars(select(Event.kind).where(Event.run_id == run.job.run_id)))
    assert kinds.count("block_finished") == 2
    assert kinds.count("boot_state") == 4 * 3
    assert lab.submission(1).outcome is Outcome.PASSED


def test_events_of_an_unstarted_boot_are_refused(lab: LabUnderTest, run: RunSession) -> None:
    key = run.first_key
    events = run.boot_events(key)
    run.send(*events[1:], expect=404)
    run.send(events[0], BlockFinished(at=NOW, block=7, attempt=0), expect=422)
    with lab.transaction() as session:
        assert session.scalar(select(func.count()).select_from(Boot)) == 0


def test_incomplete_block_is_discarded(lab: LabUnderTest, run: RunSession) -> None:
    run.send(*run.boot_events(run.first_key), BlockFinished(at=NOW, block=0, attempt=0))
    with lab.transaction() as session:
        attempt = session.scalars(select(BlockAttempt)).one()
        assert not attempt.finished
        assert attempt.failure is not None
        assert "1 boots are not the 2" in attempt.failure.summary
        assert not session.scalars(select(Boot.valid)).one()


def test_block_with_a_duplicate_kernel_boot_id_is_discarded(lab: LabUnderTest, run: RunSession) -> None:
    _send_block_with_one_boot_id(run)
    with lab.transaction() as session:
        failure = session.scalars(select(BlockAttempt.failure)).one()
    assert failure is not None
    assert "same kernel boot id" in failure.summary


def test_both_boots_of_a_seed_may_have_the_same_kernel_boot_id(lab: LabUnderTest, run: RunSession) -> None:
    # The boot id is a random number of the kernel, and an instrumented device gives both boots of a block one seed.
    with lab.transaction() as session:
        session.execute(update(Device).values(backend="instrumented"))
    _send_block_with_one_boot_id(run)
    with lab.transaction() as session:
        attempt = session.scalars(select(BlockAttempt)).one()
        assert (attempt.finished, attempt.failure) == (True, None)
        assert session.scalars(select(Boot.kernel_boot_id)).all() == ["same", "same"]


def _send_block_with_one_boot_id(run: RunSession) -> None:
    plan = run.remaining[0]
    for position, arm in enumerate(plan.arms):
        key = BootKey(block=0, position=position, arm=arm, attempt=0)
        started, verified, *rest = run.boot_events(key)
        run.send(started, verified.model_copy(update={"kernel_boot_id": "same"}), *rest)
    run.send(BlockFinished(at=NOW, block=0, attempt=0))
