"""What goes wrong ends as what it is, the user's or the kernel's; a message that is lost or doubled changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from xml.etree import ElementTree

import pytest
from sqlalchemy import select, update

from wqlab_contracts.enums import (
    Arm,
    DeviceHealth,
    ErrorKind,
    EventKind,
    FindingKind,
    Outcome,
    SubmissionState,
    Verdict,
)
from wqlab_contracts.messages import ApplyResult, BlockFinished, BootKey, BuildResult, Finding, RunResult
from wqlab_server.models import Apply, BlockAttempt, Build, Comparison, Lease, Run

from ..support.lab import NOW, LabUnderTest, RunSession, failed, passing_build, passing_run

pytestmark = pytest.mark.integration


# --- the series ---------------------------------------------------------------------------------------------------


def test_a_series_that_does_not_apply_ends_the_submission_as_the_users(lab: LabUnderTest) -> None:
    conflict = failed(ErrorKind.USER, "patch 1/1 does not apply: kernel/workqueue.c:3842")
    lab.worker.on_apply = lambda job, worker: ApplyResult(outcome=Outcome.FAILED, failure=conflict)
    submission_id = lab.submit("locks@device", "affinity@single")
    lab.until_idle()

    submission = lab.submission(submission_id)
    assert (submission.outcome, submission.failure, submission.exit_code) == (Outcome.FAILED, conflict, 3)
    assert [run.outcome for run in lab.runs(submission_id)] == [Outcome.FAILED, Outcome.FAILED]
    assert not [job for job in lab.worker.builds if not job.trusted]


def test_a_candidate_that_does_not_compile_ends_as_the_users_with_the_excerpt(lab: LabUnderTest) -> None:
    error = failed(ErrorKind.USER, "kernel/workqueue.c:12: error: expected ';'")
    lab.worker.on_build = lambda job, worker: (
        passing_build(job, worker) if job.trusted else BuildResult(outcome=Outcome.FAILED, failure=error)
    )
    submission_id = lab.submit("locks@device")
    lab.until_idle()

    submission = lab.submission(submission_id)
    assert (submission.outcome, submission.exit_code) == (Outcome.FAILED, 3)
    assert submission.failure is not None
    assert submission.failure.kind is ErrorKind.USER
    assert submission.failure.summary == f"candidate kernel: {error.summary}"
    assert submission.failure.excerpt == error.excerpt
    assert not [run for run in lab.worker.runs if run.job.purpose == "measure"]


def test_a_baseline_of_an_operators_tree_that_does_not_compile_is_the_labs_trouble(lab: LabUnderTest) -> None:
    error = failed(ErrorKind.USER, "does not compile")
    lab.worker.on_build = lambda job, worker: (
        BuildResult(outcome=Outcome.FAILED, failure=error) if job.trusted else passing_build(job, worker)
    )
    submission_id = lab.submit("locks@device")
    lab.until_idle()
    submission = lab.submission(submission_id)
    assert submission.exit_code == 4
    assert submission.failure is not None
    assert submission.failure.kind is ErrorKind.INFRASTRUCTURE


def test_a_build_that_fails_by_infrastructure_is_tried_again_with_a_bound(lab: LabUnderTest) -> None:
    disk = BuildResult(outcome=Outcome.FAILED, failure=failed(ErrorKind.INFRASTRUCTURE, "no space left"))
    answers = [disk]
    lab.worker.on_build = lambda job, worker: answers.pop() if answers else passing_build(job, worker)
    submission_id = lab.submit("locks@device")
    lab.until_idle()
    assert lab.submission(submission_id).outcome is Outcome.PASSED
    told = [event for event in lab.events(submission_id) if event.kind is EventKind.ATTEMPT_FAILED]
    assert [event.data["failure"]["summary"] for event in told] == ["no space left"]
    (attempt,) = lab.report(submission_id).attempts
    assert (attempt.what, attempt.attempt, attempt.failure.summary) == ("build", 1, "no space left")
    assert (attempt.plan, attempt.run_id) == (None, None)
    assert attempt.build_id in {build.id for build in lab.report(submission_id).submission.builds}

    lab.worker.on_build = lambda job, worker: disk
    with lab.transaction() as session:  # nothing to reuse
        session.execute(update(Build).values(key="0" * 64, outcome=Outcome.FAILED))
    second = lab.submit("locks@device")
    lab.until_idle()
    assert lab.submission(second).exit_code == 4
    with lab.transaction() as session:
        tried = session.scalars(select(Build.attempts).where(Build.key != "0" * 64)).all()
    assert set(tried) == {lab.settings.job_attempts}


# --- the kernel ---------------------------------------------------------------------------------------------------


def candidate_panics(run: RunSession) -> RunResult:
    """Dies at boot twice in the same way; the worker gives up then."""
    panic = failed(ErrorKind.KERNEL, "Kernel panic - not syncing: lock taken twice")
    plan = run.remaining[0]
    for attempt in (0, 1):
        run.dead_boot(plan, Arm.CANDIDATE, panic, plan.first_attempt + attempt)
    return RunResult(outcome=Outcome.FAILED, failure=panic)


def test_a_candidate_that_panics_fails_its_target_and_the_others_go_on(lab: LabUnderTest) -> None:
    lab.worker.on_run = lambda run: candidate_panics(run) if run.job.plan.name == "locks" else passing_run(run)
    submission_id = lab.submit("locks@device", "affinity@single")
    lab.until_idle()

    submission = lab.submission(submission_id)
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


def test_a_panic_that_the_baseline_shows_too_is_no_verdict_on_the_candidate(lab: LabUnderTest) -> None:
    def both_panic(run: RunSession) -> RunResult:
        panic = failed(ErrorKind.KERNEL, "Kernel panic - not syncing: VFS")
        plan = run.remaining[0]
        run.dead_boot(plan, Arm.BASELINE, panic)
        run.dead_boot(plan, Arm.CANDIDATE, panic, plan.first_attempt + 1)
        return RunResult(outcome=Outcome.FAILED, failure=panic)

    lab.worker.on_run = both_panic
    submission_id = lab.submit("locks@device")
    lab.until_idle()
    submission = lab.submission(submission_id)
    assert submission.exit_code == 4
    assert submission.failure is not None
    assert submission.failure.kind is ErrorKind.INFRASTRUCTURE
    assert lab.runs(submission_id)[0].attempts == lab.settings.run_attempts


def test_a_panic_is_the_candidates_though_the_baseline_oopses_in_another_way(lab: LabUnderTest) -> None:
    def both_die(run: RunSession) -> RunResult:
        run.dead_boot(run.remaining[0], Arm.BASELINE, failed(ErrorKind.KERNEL, "oops: general protection fault"), 7)
        return candidate_panics(run)

    lab.worker.on_run = both_die
    submission_id = lab.submit("locks@device")
    lab.until_idle()
    submission = lab.submission(submission_id)
    assert (submission.outcome, submission.exit_code) == (Outcome.FAILED, 3)
    assert submission.failure is not None
    assert "lock taken twice" in submission.failure.summary
    assert lab.runs(submission_id)[0].attempts == 1


# --- what a run that went through has seen ------------------------------------------------------------------------


WARNING = "WARNING: CPU: 1 PID: 8 at kernel/workqueue.c:3842 __flush_work+0x1a/0x30"


def seeing(kind: FindingKind, *boots: tuple[int, Arm], fatal: bool = False) -> Callable[[RunSession], RunResult]:
    """A run that goes through to its end; in the boots named by block and arm the console shows a report."""

    def run_through(run: RunSession) -> RunResult:
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

    return run_through


def junit(lab: LabUnderTest, submission_id: int) -> tuple[int, int]:
    """(failures, errors) of the report as a CI reads it."""
    answer = lab.client.get(
        f"/api/v1/submissions/{submission_id}/report?format=junit", headers={"Authorization": f"Bearer {lab.token}"}
    )
    assert answer.status_code == 200, answer.text
    root = ElementTree.fromstring(answer.text)
    return int(root.attrib["failures"]), int(root.attrib["errors"])


@pytest.mark.parametrize("kind", [FindingKind.WARNING, FindingKind.LOCKDEP])
def test_a_report_on_the_candidates_console_fails_the_submission(lab: LabUnderTest, kind: FindingKind) -> None:
    lab.worker.on_run = seeing(kind, (0, Arm.CANDIDATE), (1, Arm.CANDIDATE))
    submission_id = lab.submit("locks@device")
    lab.until_idle()

    submission = lab.submission(submission_id)
    assert (submission.outcome, submission.exit_code) == (Outcome.FAILED, 3)
    assert submission.failure is not None
    assert submission.failure.kind is ErrorKind.KERNEL
    assert f"{kind.value} in 2 of 2 boots" in submission.failure.summary
    assert submission.failure.excerpt == f"{WARNING}\nCall Trace:"
    assert junit(lab, submission_id) == (1, 0)


def test_a_candidate_that_panicked_once_fails_the_submission_though_the_run_went_on(lab: LabUnderTest) -> None:
    def dies_once(run: RunSession) -> RunResult:
        panic = failed(ErrorKind.KERNEL, "Kernel panic - not syncing: once")
        run.dead_boot(run.remaining[0], Arm.CANDIDATE, panic)
        run.job = run.job.model_copy(
            update={"blocks": [plan.model_copy(update={"first_attempt": 1}) for plan in run.job.blocks]}
        )
        return passing_run(run)

    lab.worker.on_run = dies_once
    submission_id = lab.submit("locks@device")
    lab.until_idle()
    submission = lab.submission(submission_id)
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
def test_what_proves_nothing_against_the_candidate_passes(
    lab: LabUnderTest, kind: FindingKind, boots: list[tuple[int, Arm]]
) -> None:
    lab.worker.on_run = seeing(kind, *boots)
    submission_id = lab.submit("locks@device")
    lab.until_idle()
    submission = lab.submission(submission_id)
    assert (submission.outcome, submission.failure, submission.exit_code) == (Outcome.PASSED, None, 0)
    assert junit(lab, submission_id) == (0, 0)


# --- messages -----------------------------------------------------------------------------------------------------


def test_without_a_broker_nothing_is_lost(lab: LabUnderTest) -> None:
    """Every message vanishes; ticks alone (an operator could run them by hand) bring the work to workers again."""
    submission_id = lab.submit("locks@device")
    for _ in range(60):
        lab.sent.clear()  # lost
        for table in ("applies", "builds", "runs"):
            lab.sql(f"UPDATE {table} SET nudged_at = nudged_at - interval '1 hour'")
        lab.tick()
        delivered, lab.sent[:] = list(lab.sent), []
        for message in delivered:
            lab.handle(message)
        if lab.submission(submission_id).state is SubmissionState.FINISHED:
            break
    assert lab.submission(submission_id).outcome is Outcome.PASSED


def test_every_message_twice_doubles_nothing(lab: LabUnderTest) -> None:
    submission_id = lab.submit("locks@device")
    for _ in range(200):
        if not lab.sent:
            lab.tick()
        if not lab.sent:
            break
        message = lab.sent.pop(0)
        lab.handle(message)
        lab.handle(message)
    assert lab.submission(submission_id).outcome is Outcome.PASSED
    with lab.transaction() as session:
        assert len(session.scalars(select(Build.id)).all()) == 2
        assert session.scalars(select(Run.attempts)).all() == [1, 1]
        assert session.scalars(select(Apply.attempts).where(Apply.submission_id == submission_id)).all() == [1]


def test_ticks_do_not_flood(lab: LabUnderTest) -> None:
    lab.submit("locks@device")
    lab.sent.clear()
    for _ in range(10):
        lab.tick()
    per_job = [(message.task, message.id) for message in lab.sent if message.id is not None]
    assert len(per_job) == len(set(per_job))
