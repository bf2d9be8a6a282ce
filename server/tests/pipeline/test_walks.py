"""Series that are walked patch by patch, from the request to the ladder, through the real application."""

from __future__ import annotations

from collections import Counter

import pytest
from sqlalchemy import select

from wqlab_contracts.enums import BETWEEN, Arm, ErrorKind, Outcome, Verdict
from wqlab_contracts.messages import BuildJob, BuildResult, RunResult
from wqlab_contracts.messages.walk import StepState
from wqlab_server.models import Boot, SubmissionBuild

from ..support.lab import LabUnderTest, RunSession, ScriptedWorker, failed, oid, passing_build
from ..support.walks import after, values_of, walking_apply

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("good_devices")]


def walk(lab: LabUnderTest, *locks: float, **more: object) -> int:
    """Submit a series whose kernels take so many locks per flush: the base, and after each patch."""
    lab.worker.on_apply = walking_apply(len(locks) - 1)
    lab.worker.value = values_of(after(*locks))
    return lab.submit("locks@device", walk=True, **more)


def test_third_patch_regresses_and_fifth_repairs(lab: LabUnderTest) -> None:
    submission_id = walk(lab, 33, 33, 33, 40, 40, 33, blocks=2)
    submission = lab.finished(submission_id)
    assert (submission.outcome, submission.exit_code) == (Outcome.PASSED, 0)
    (target,) = lab.report(submission_id).targets
    assert target.ladder is not None
    assert [rung.verdict for rung in target.ladder.rungs] == [
        Verdict.EQUIVALENT, Verdict.EQUIVALENT, Verdict.REGRESSION, Verdict.EQUIVALENT, Verdict.IMPROVEMENT,
    ]  # fmt: skip
    assert target.ladder.sentence == "patch 3 regresses; patch 5 improves"
    assert [rung.reference for rung in target.ladder.rungs] == [0, 1, 2, 3, 4]
    third = next(each for each in target.ladder.rungs[2].comparisons if each.metric == "locks_per_flush")
    assert (third.reference, third.effect, third.exact) == ("patch 2", 7.0, True)
    assert target.verdict is Verdict.EQUIVALENT, "the whole series changes nothing"
    assert all(each.patch is None for each in target.comparisons)


def test_each_kernel_boots_once_in_each_block(lab: LabUnderTest) -> None:
    submission_id = walk(lab, 33, 33, 33, 40, 40, 33, blocks=4)
    lab.finished(submission_id)
    (run,) = lab.runs(submission_id)
    kernels = {Arm.BASELINE, *BETWEEN[:4], Arm.CANDIDATE}
    assert [set(arms) for arms in run.blocks] == [kernels] * 4
    assert (run.boots_done, run.boots_planned) == (24, 24)
    with lab.transaction() as session:
        boots = session.scalars(select(Boot).where(Boot.run_id == run.id)).all()
        assert Counter(boot.arm for boot in boots) == dict.fromkeys(kernels, 4)
        assert len({boot.build_id_gnu for boot in boots}) == 6
        parts = session.scalars(select(SubmissionBuild).where(SubmissionBuild.submission_id == submission_id)).all()
        assert {part.arm for part in parts} == kernels


def test_kernels_between_have_layouts_too(lab: LabUnderTest) -> None:
    submission_id = walk(lab, 33, 40, 33, blocks=2, layouts=2)
    assert lab.finished(submission_id).outcome is Outcome.PASSED
    with lab.transaction() as session:
        boots = session.scalars(select(Boot).where(Boot.run_id == lab.runs(submission_id)[0].id, Boot.valid)).all()
        assert {boot.arm for boot in boots} == {Arm.BASELINE, *BETWEEN[:1], Arm.CANDIDATE}
        assert len({boot.build_id_gnu for boot in boots}) == 6, "each of three kernels in two layouts"


def test_patch_that_does_not_build_is_left_out(lab: LabUnderTest) -> None:
    def build(job: BuildJob, worker: ScriptedWorker) -> BuildResult:
        if job.source.commit == oid("commit 2"):
            return BuildResult(outcome=Outcome.FAILED, failure=failed(ErrorKind.USER, "kernel/workqueue.c: undeclared"))
        return passing_build(job, worker)

    lab.worker.on_build = build
    submission_id = walk(lab, 33, 33, 33, 5)
    assert lab.finished(submission_id).outcome is Outcome.PASSED
    (target,) = lab.report(submission_id).targets
    assert target.ladder is not None
    second, third = target.ladder.rungs[1:]
    assert (second.state, second.verdict) == (StepState.NOT_BUILT, Verdict.FAILED)
    assert second.failure is not None and "excerpt of" in second.failure.excerpt
    assert (third.reference, third.verdict) == (1, Verdict.IMPROVEMENT)
    assert target.ladder.boots_per_block == 3
    assert target.ladder.sentence == (
        "patch 3 improves; patch 2 does not build alone, so the series cannot be bisected there"
    )


def test_last_patch_that_does_not_build_fails_the_series_but_not_the_others(lab: LabUnderTest) -> None:
    def build(job: BuildJob, worker: ScriptedWorker) -> BuildResult:
        if job.source.commit not in {oid("base"), oid("commit 1"), oid("commit 2")}:
            return BuildResult(outcome=Outcome.FAILED, failure=failed(ErrorKind.USER, "undeclared"))
        return passing_build(job, worker)

    lab.worker.on_build = build
    submission_id = walk(lab, 33, 33, 5, 5)
    submission = lab.finished(submission_id)
    assert (submission.outcome, submission.exit_code) == (Outcome.FAILED, 3)
    (target,) = lab.report(submission_id).targets
    assert target.ladder is not None
    assert [rung.verdict for rung in target.ladder.rungs] == [
        Verdict.EQUIVALENT, Verdict.IMPROVEMENT, Verdict.FAILED,
    ]  # fmt: skip
    assert target.verdict is Verdict.FAILED


def same_kernel_after(*commits: str) -> object:
    def build(job: BuildJob, worker: ScriptedWorker) -> BuildResult:
        digest = "a" * 64 if job.source.commit in {oid(each) for each in commits} else job.key
        return passing_build(job, worker).model_copy(update={"content_sha256": digest})

    return build


def test_byte_identical_kernels_share_their_boots(lab: LabUnderTest) -> None:
    lab.worker.on_build = same_kernel_after("commit 1", "commit 2")  # type: ignore[assignment]
    submission_id = walk(lab, 33, 5, 5, 4)
    lab.finished(submission_id)
    (run,) = lab.runs(submission_id)
    assert {len(arms) for arms in run.blocks} == {3}
    (target,) = lab.report(submission_id).targets
    assert target.ladder is not None
    first, second, third = target.ladder.rungs
    assert (second.state, second.verdict, second.comparisons) == (StepState.IDENTICAL, Verdict.EQUIVALENT, [])
    assert "same by identity" in second.headline
    assert (first.verdict, third.verdict, third.reference) == (Verdict.IMPROVEMENT, Verdict.IMPROVEMENT, 2)


def test_patch_that_restores_an_earlier_kernel_has_its_boots(lab: LabUnderTest) -> None:
    lab.worker.on_build = same_kernel_after("base", "commit 2")  # type: ignore[assignment]
    submission_id = walk(lab, 33, 40, 33, 5)
    lab.finished(submission_id)
    (target,) = lab.report(submission_id).targets
    assert target.ladder is not None
    assert target.ladder.boots_per_block == 3
    assert [rung.verdict for rung in target.ladder.rungs] == [
        Verdict.REGRESSION, Verdict.IMPROVEMENT, Verdict.IMPROVEMENT,
    ]  # fmt: skip
    assert target.ladder.rungs[1].arm is Arm.BASELINE


def test_series_whose_kernels_are_all_the_same_needs_no_boot(lab: LabUnderTest) -> None:
    def build(job: BuildJob, worker: ScriptedWorker) -> BuildResult:
        return passing_build(job, worker).model_copy(update={"content_sha256": "c" * 64})

    lab.worker.on_build = build
    submission_id = walk(lab, 33, 33, 33)
    assert lab.finished(submission_id).outcome is Outcome.PASSED
    (target,) = lab.report(submission_id).targets
    assert (target.byte_identical, target.verdict) == (True, Verdict.EQUIVALENT)
    assert target.ladder is not None
    assert [rung.state for rung in target.ladder.rungs] == [StepState.IDENTICAL] * 2


def failing(arm: Arm) -> object:
    """Return a handler of runs in which the kernel of `arm` panics in its second block."""

    def run(session: RunSession) -> RunResult:
        panic = failed(ErrorKind.KERNEL, "Kernel panic - not syncing: Fatal exception")
        for plan in session.remaining:
            if plan.block and arm in plan.arms:
                session.send_failed_boot(plan, arm, panic)
                return RunResult(outcome=Outcome.FAILED, failure=panic, arm=arm)
            session.send_block(plan)
        return RunResult(outcome=Outcome.PASSED)

    return run


def test_kernel_that_panics_is_left_out_and_the_walk_goes_on(lab: LabUnderTest) -> None:
    lab.worker.on_run = failing(BETWEEN[1])  # type: ignore[assignment]
    submission_id = walk(lab, 33, 33, 33, 5, blocks=4)
    assert lab.finished(submission_id).outcome is Outcome.PASSED
    (run,) = lab.runs(submission_id)
    assert [BETWEEN[1] in arms for arms in run.blocks] == [True, False, False, False]
    (target,) = lab.report(submission_id).targets
    assert target.ladder is not None
    second, third = target.ladder.rungs[1:]
    assert (second.state, second.verdict) == (StepState.KERNEL_FAILED, Verdict.FAILED)
    assert "Fatal exception" in second.headline
    assert (third.reference, third.verdict) == (1, Verdict.IMPROVEMENT)
    assert third.comparisons[0].candidate is not None
    assert third.comparisons[0].candidate.n == 4
    assert target.verdict is Verdict.IMPROVEMENT, "the last kernel is not to blame for the panic of another"


def test_last_kernel_that_panics_fails_the_series(lab: LabUnderTest) -> None:
    lab.worker.on_run = failing(Arm.CANDIDATE)  # type: ignore[assignment]
    submission_id = walk(lab, 33, 5, 5, 5, blocks=4)
    submission = lab.finished(submission_id)
    assert submission.outcome is Outcome.FAILED
    (target,) = lab.report(submission_id).targets
    assert (target.verdict, target.blocks_completed) == (Verdict.FAILED, 4)
    assert target.ladder is not None
    assert [rung.verdict for rung in target.ladder.rungs] == [
        Verdict.IMPROVEMENT, Verdict.EQUIVALENT, Verdict.FAILED,
    ]  # fmt: skip


def test_walk_continues_after_a_lost_lease(lab: LabUnderTest) -> None:
    def lost(session: RunSession) -> RunResult | None:
        session.send_block(session.remaining[0])
        return None

    submission_id = walk(lab, 33, 33, 40, blocks=2)
    lab.worker.on_run = lost
    lab.until_idle()
    (run,) = lab.runs(submission_id)
    assert run.boots_done == 3
    lab.expire(run.id)
    lab.worker.on_run = lambda session: (
        [session.send_block(plan) for plan in session.remaining] and RunResult(outcome=Outcome.PASSED)
    )
    lab.finished(submission_id)
    (target,) = lab.report(submission_id).targets
    assert target.ladder is not None
    assert [rung.verdict for rung in target.ladder.rungs] == [Verdict.EQUIVALENT, Verdict.REGRESSION]
