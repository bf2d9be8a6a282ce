"""Failures of the series and the kernels: their kind, exit code and report."""

from __future__ import annotations

from collections.abc import Callable
from xml.etree import ElementTree

import pytest
from sqlalchemy import select, update

from wqlab_contracts.enums import Arm, DeviceHealth, ErrorKind, EventKind, FindingKind, JobKind, Outcome, Verdict
from wqlab_contracts.messages import ApplyResult, BlockFinished, BootKey, BuildResult, Finding, RunResult
from wqlab_server.models import BlockAttempt, Build, Comparison, Job, Lease
from wqlab_server.settings import Settings

from ..support.lab import NOW, LabUnderTest, RunSession, failed, passing_build, passing_run

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("good_devices")]


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"run_attempts": 2, "job_attempts": 2})


def candidate_panics(run: RunSession) -> RunResult:
    """Fail with the same panic in two boots, after which the worker ends the run."""
    panic = failed(ErrorKind.KERNEL, "Kernel panic - not syncing: lock taken twice")
    plan = run.remaining[0]
    for attempt in (0, 1):
        run.send_failed_boot(plan, Arm.CANDIDATE, panic, plan.first_attempt + attempt)
    return RunResult(outcome=Outcome.FAILED, failure=panic)


WARNING = "WARNING: CPU: 1 PID: 8 at kernel/workqueue.c:3842 __flush_work+0x1a/0x30"


def with_finding(kind: FindingKind, *boots: tuple[int, Arm], fatal: bool = False) -> Callable[[RunSession], RunResult]:
    """Return a handler of a passing run with a finding in the given boots (block, arm)."""

    def pass_with_finding(run: RunSession) -> RunResult:
        for plan in run.remaining:
            for position, arm in enumerate(plan.arms):
                key = BootKey(block=plan.block, position=position, arm=arm, attempt=plan.first_attempt)
                run.send(*run.boot_events(key))
                if (plan.block, arm) in boots:
                    run.send(
                        Finding(
                            at=NOW, boot=key, kind=kind, title=WARNING, excerpt=f"{WARNING}\nCall Trace:",
                            console_offset=position, fatal=fatal,
                        )
                    )  # fmt: skip
            run.send(BlockFinished(at=NOW, block=plan.block, attempt=plan.first_attempt))
        return RunResult(outcome=Outcome.PASSED)

    return pass_with_finding


def junit(lab: LabUnderTest, submission_id: int) -> tuple[int, int]:
    """Return (failures, errors) of the JUnit report."""
    answer = lab.client.get(
        f"/api/v1/submissions/{submission_id}/report?format=junit", headers={"Authorization": f"Bearer {lab.token}"}
    )
    assert answer.status_code == 200, answer.text
    root = ElementTree.fromstring(answer.text)
    return int(root.attrib["failures"]), int(root.attrib["errors"])


def test_apply_conflict_is_a_user_failure(lab: LabUnderTest) -> None:
    conflict = failed(ErrorKind.USER, "patch 1/1 does not apply: kernel/workqueue.c:3842")
    lab.worker.on_apply = lambda job, worker: ApplyResult(outcome=Outcome.FAILED, failure=conflict)
    submission_id = lab.submit("locks@device", "affinity@single")
    submission = lab.finished(submission_id)
    assert (submission.outcome, submission.failure, submission.exit_code) == (Outcome.FAILED, conflict, 3)
    assert [run.outcome for run in lab.runs(submission_id)] == [Outcome.FAILED, Outcome.FAILED]
    assert not [job for job in lab.worker.builds if not job.trusted]


def test_candidate_compile_error_is_a_user_failure_with_excerpt(lab: LabUnderTest) -> None:
    error = failed(ErrorKind.USER, "kernel/workqueue.c:12: error: expected ';'")
    lab.worker.on_build = lambda job, worker: (
        passing_build(job, worker) if job.trusted else BuildResult(outcome=Outcome.FAILED, failure=error)
    )
    submission_id = lab.submit("locks@device")
    submission = lab.finished(submission_id)
    assert (submission.outcome, submission.exit_code) == (Outcome.FAILED, 3)
    assert submission.failure is not None
    assert submission.failure.kind is ErrorKind.USER
    assert submission.failure.summary == f"candidate kernel: {error.summary}"
    assert submission.failure.excerpt == error.excerpt
    assert not [run for run in lab.worker.runs if run.job.purpose == "measure"]


def test_baseline_compile_error_is_an_infrastructure_failure(lab: LabUnderTest) -> None:
    error = failed(ErrorKind.USER, "does not compile")
    lab.worker.on_build = lambda job, worker: (
        BuildResult(outcome=Outcome.FAILED, failure=error) if job.trusted else passing_build(job, worker)
    )
    submission_id = lab.submit("locks@device")
    submission = lab.finished(submission_id)
    assert submission.exit_code == 4
    assert submission.failure is not None
    assert submission.failure.kind is ErrorKind.INFRASTRUCTURE


def test_infrastructure_failure_of_a_build_is_retried_up_to_the_bound(lab: LabUnderTest) -> None:
    disk = BuildResult(outcome=Outcome.FAILED, failure=failed(ErrorKind.INFRASTRUCTURE, "no space left"))
    answers = [disk]
    lab.worker.on_build = lambda job, worker: answers.pop() if answers else passing_build(job, worker)
    submission_id = lab.submit("locks@device")
    assert lab.finished(submission_id).outcome is Outcome.PASSED
    events = [event for event in lab.events(submission_id) if event.kind is EventKind.ATTEMPT_FAILED]
    assert [event.data["failure"]["summary"] for event in events] == ["no space left"]
    (attempt,) = lab.report(submission_id).attempts
    assert (attempt.what, attempt.attempt, attempt.failure.summary) == ("build", 1, "no space left")
    assert (attempt.plan, attempt.run_id) == (None, None)
    assert attempt.build_id in {build.id for build in lab.report(submission_id).submission.builds}

    lab.worker.on_build = lambda job, worker: disk
    with lab.transaction() as session:  # no build to reuse
        builds = Job.kind == JobKind.BUILD
        session.execute(update(Job).where(builds).values(key="0" * 64, outcome=Outcome.FAILED))
    second = lab.submit("locks@device")
    assert lab.finished(second).exit_code == 4
    with lab.transaction() as session:
        tried = session.scalars(select(Build.attempts).where(Build.key != "0" * 64)).all()
    assert set(tried) == {lab.settings.job_attempts}


def test_candidate_panic_fails_its_target_and_no_other(lab: LabUnderTest) -> None:
    lab.worker.on_run = lambda run: candidate_panics(run) if run.job.plan.name == "locks" else passing_run(run)
    submission_id = lab.submit("locks@device", "affinity@single")
    submission = lab.finished(submission_id)
    assert (submission.outcome, submission.exit_code) == (Outcome.FAILED, 3)
    assert submission.failure is not None
    assert submission.failure.kind is ErrorKind.KERNEL
    assert "lock taken twice" in submission.failure.excerpt
    assert [run.outcome for run in lab.runs(submission_id)] == [Outcome.FAILED, Outcome.PASSED]
    assert lab.device("device-1").health is DeviceHealth.GOOD
    with lab.transaction() as session:
        assert session.scalar(select(Lease)) is None
        verdicts = {row.data.plan: row.verdict for row in session.scalars(select(Comparison)) if row.role == "primary"}
        assert verdicts["locks"] is Verdict.FAILED
        assert verdicts["affinity"] is not Verdict.FAILED
        assert session.scalars(select(BlockAttempt.arm).where(~BlockAttempt.finished)).all() == [Arm.CANDIDATE] * 2


def test_panic_of_both_kernels_is_an_infrastructure_failure(lab: LabUnderTest) -> None:
    def both_panic(run: RunSession) -> RunResult:
        panic = failed(ErrorKind.KERNEL, "Kernel panic - not syncing: VFS")
        plan = run.remaining[0]
        run.send_failed_boot(plan, Arm.BASELINE, panic)
        run.send_failed_boot(plan, Arm.CANDIDATE, panic, plan.first_attempt + 1)
        return RunResult(outcome=Outcome.FAILED, failure=panic)

    lab.worker.on_run = both_panic
    submission_id = lab.submit("locks@device")
    submission = lab.finished(submission_id)
    assert submission.exit_code == 4
    assert submission.failure is not None
    assert submission.failure.kind is ErrorKind.INFRASTRUCTURE
    assert lab.runs(submission_id)[0].attempts == lab.settings.run_attempts


def test_different_baseline_oops_does_not_excuse_a_candidate_panic(lab: LabUnderTest) -> None:
    def both_fail(run: RunSession) -> RunResult:
        run.send_failed_boot(
            run.remaining[0], Arm.BASELINE, failed(ErrorKind.KERNEL, "oops: general protection fault"), 7
        )
        return candidate_panics(run)

    lab.worker.on_run = both_fail
    submission_id = lab.submit("locks@device")
    submission = lab.finished(submission_id)
    assert (submission.outcome, submission.exit_code) == (Outcome.FAILED, 3)
    assert submission.failure is not None
    assert "lock taken twice" in submission.failure.summary
    assert lab.runs(submission_id)[0].attempts == 1


@pytest.mark.parametrize("kind", [FindingKind.WARNING, FindingKind.LOCKDEP])
def test_finding_on_the_candidate_console_fails_the_submission(lab: LabUnderTest, kind: FindingKind) -> None:
    lab.worker.on_run = with_finding(kind, (0, Arm.CANDIDATE), (1, Arm.CANDIDATE))
    submission_id = lab.submit("locks@device")
    submission = lab.finished(submission_id)
    assert (submission.outcome, submission.exit_code) == (Outcome.FAILED, 3)
    assert submission.failure is not None
    assert submission.failure.kind is ErrorKind.KERNEL
    assert f"{kind.value} in 2 of 2 boots" in submission.failure.summary
    assert submission.failure.excerpt == f"{WARNING}\nCall Trace:"
    assert junit(lab, submission_id) == (1, 0)


def test_single_candidate_panic_fails_a_submission_whose_run_passed(lab: LabUnderTest) -> None:
    def panic_once(run: RunSession) -> RunResult:
        panic = failed(ErrorKind.KERNEL, "Kernel panic - not syncing: once")
        run.send_failed_boot(run.remaining[0], Arm.CANDIDATE, panic)
        run.job = run.job.model_copy(
            update={"blocks": [plan.model_copy(update={"first_attempt": 1}) for plan in run.job.blocks]}
        )
        return passing_run(run)

    lab.worker.on_run = panic_once
    submission_id = lab.submit("locks@device")
    submission = lab.finished(submission_id)
    assert (submission.outcome, submission.exit_code) == (Outcome.FAILED, 3)
    assert submission.failure is not None
    assert "panic in 1 of 3 boots" in submission.failure.summary
    assert junit(lab, submission_id) == (1, 0)


@pytest.mark.parametrize(
    ("kind", "boots"),
    [
        (FindingKind.WARNING, [(0, Arm.CANDIDATE), (1, Arm.BASELINE)]),
        (FindingKind.WARNING, [(0, Arm.BASELINE)]),
        (FindingKind.RCU_STALL, [(0, Arm.CANDIDATE)]),  # once, on an emulated device
    ],
)
def test_finding_that_is_not_the_candidates_passes(
    lab: LabUnderTest, kind: FindingKind, boots: list[tuple[int, Arm]]
) -> None:
    lab.worker.on_run = with_finding(kind, *boots)
    submission_id = lab.submit("locks@device")
    submission = lab.finished(submission_id)
    assert (submission.outcome, submission.failure, submission.exit_code) == (Outcome.PASSED, None, 0)
    assert junit(lab, submission_id) == (0, 0)
