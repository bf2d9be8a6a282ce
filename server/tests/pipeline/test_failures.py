"""Whatever goes wrong ends as what it is: the user's, the kernel's, or the lab's."""

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
    JobState,
    Outcome,
    SubmissionState,
    Verdict,
)
from wqlab_contracts.messages import ApplyResult, BlockFinished, BootKey, BootStarted, BuildResult, Finding, RunResult
from wqlab_server.models import Apply, BlockAttempt, Boot, Build, Comparison, Device, Lease, Run, RunAttempt

from ..support.lab import NOW, LabUnderTest, RunSession, failed, passing_apply, passing_build, passing_run, results

pytestmark = pytest.mark.integration


def infra(summary: str = "power switch does not answer", *, suspect: bool = False) -> RunResult:
    return RunResult(outcome=Outcome.FAILED, failure=failed(ErrorKind.INFRASTRUCTURE, summary), device_suspect=suspect)


# --- the series ---------------------------------------------------------------------------------------------------


def test_a_series_that_does_not_apply_ends_the_submission_as_the_users(lab: LabUnderTest) -> None:
    conflict = failed(ErrorKind.USER, "patch 1/1 does not apply: kernel/workqueue.c:3842")
    lab.worker.on_apply = lambda job, worker: ApplyResult(outcome=Outcome.FAILED, failure=conflict)
    submission_id = lab.submit("locks@board", "affinity@single")
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
    submission_id = lab.submit("locks@board")
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
    submission_id = lab.submit("locks@board")
    lab.until_idle()
    submission = lab.submission(submission_id)
    assert submission.exit_code == 4
    assert submission.failure is not None
    assert submission.failure.kind is ErrorKind.INFRASTRUCTURE


def test_a_build_that_fails_by_infrastructure_is_tried_again_with_a_bound(lab: LabUnderTest) -> None:
    disk = BuildResult(outcome=Outcome.FAILED, failure=failed(ErrorKind.INFRASTRUCTURE, "no space left"))
    answers = [disk]
    lab.worker.on_build = lambda job, worker: answers.pop() if answers else passing_build(job, worker)
    submission_id = lab.submit("locks@board")
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
    second = lab.submit("locks@board")
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
    submission_id = lab.submit("locks@board", "affinity@single")
    lab.until_idle()

    submission = lab.submission(submission_id)
    assert (submission.outcome, submission.exit_code) == (Outcome.FAILED, 3)
    assert submission.failure is not None
    assert submission.failure.kind is ErrorKind.KERNEL
    assert "lock taken twice" in submission.failure.excerpt
    assert [run.outcome for run in lab.runs(submission_id)] == [Outcome.FAILED, Outcome.PASSED]
    assert lab.device("board-1").health is DeviceHealth.GOOD
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
    submission_id = lab.submit("locks@board")
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
    submission_id = lab.submit("locks@board")
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
    submission_id = lab.submit("locks@board")
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
    submission_id = lab.submit("locks@board")
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
        (FindingKind.RCU_STALL, [(0, Arm.CANDIDATE)]),  # once, on an emulated board
    ],
)
def test_what_proves_nothing_against_the_candidate_passes(
    lab: LabUnderTest, kind: FindingKind, boots: list[tuple[int, Arm]]
) -> None:
    lab.worker.on_run = seeing(kind, *boots)
    submission_id = lab.submit("locks@board")
    lab.until_idle()
    submission = lab.submission(submission_id)
    assert (submission.outcome, submission.failure, submission.exit_code) == (Outcome.PASSED, None, 0)
    assert junit(lab, submission_id) == (0, 0)


# --- the lab ------------------------------------------------------------------------------------------------------


def test_an_infrastructure_failure_is_retried_on_another_unit(lab: LabUnderTest) -> None:
    lab.all_good()
    lab.worker.on_run = results(infra(), passing_run)
    submission_id = lab.submit("locks@board")
    lab.until_idle()

    assert lab.submission(submission_id).outcome is Outcome.PASSED
    with lab.transaction() as session:
        attempts = session.scalars(select(RunAttempt).order_by(RunAttempt.number)).all()
        assert [(a.device_name, a.outcome) for a in attempts] == [
            ("board-1", Outcome.FAILED),
            ("board-2", Outcome.PASSED),
        ]
    told = [event for event in lab.events(submission_id) if event.kind is EventKind.ATTEMPT_FAILED]
    assert [event.data["device"] for event in told] == ["board-1"]


def test_retries_are_bounded(lab: LabUnderTest) -> None:
    lab.all_good()
    lab.worker.on_run = results(infra())
    submission_id = lab.submit("locks@board")
    lab.until_idle()
    assert lab.submission(submission_id).exit_code == 4
    assert lab.runs(submission_id)[0].attempts == lab.settings.run_attempts


def test_a_suspect_board_is_checked_and_comes_back(lab: LabUnderTest) -> None:
    lab.all_good()
    lab.worker.on_run = results(infra(suspect=True), passing_run)
    submission_id = lab.submit("locks@single")
    lab.until_idle()

    assert lab.submission(submission_id).outcome is Outcome.PASSED
    assert [run.job.purpose.value for run in lab.worker.runs] == ["measure", "health_check", "measure"]
    assert lab.device("single-1").health is DeviceHealth.GOOD


def test_a_board_that_fails_its_check_is_quarantined_with_the_reason_and_the_run_moves_on(lab: LabUnderTest) -> None:
    lab.all_good()
    lab.sql("UPDATE devices SET health = 'unknown' WHERE device_type = 'board'")
    lab.worker.on_health_check = results(infra("no console output in 120 s", suspect=True), passing_run)
    submission_id = lab.submit("locks@board")
    lab.until_idle()

    device = lab.device("board-1")
    assert device.health is DeviceHealth.QUARANTINED
    assert "no console output in 120 s" in device.health_reason
    assert lab.submission(submission_id).outcome is Outcome.PASSED
    assert lab.runs(submission_id)[0].device_name == "board-2"


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


def test_a_board_whose_checks_never_come_to_an_end_is_quarantined_and_the_run_ends(lab: LabUnderTest) -> None:
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
    assert lab.device("single-1").health is DeviceHealth.UNKNOWN, "nobody has seen the board fail"


def test_a_lease_that_runs_out_keeps_whole_blocks_and_tells_the_next_holder(lab: LabUnderTest) -> None:
    lab.all_good()
    with lab.transaction() as session:
        session.execute(update(Device).where(Device.name == "board-2").values(health=DeviceHealth.QUARANTINED))

    def dies_in_second_block(run: RunSession) -> None:
        run.block(run.remaining[0])
        plan = run.remaining[1]
        run.send(*run.boot_events(BootKey(block=plan.block, position=0, arm=plan.arms[0], attempt=0)))

    lab.worker.on_run = results(dies_in_second_block, passing_run)
    submission_id = lab.submit("locks@board")
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
    submission_id = lab.submit("locks@board")
    lab.until_idle()
    lab.expire("runs", lab.runs(submission_id)[0].id)
    lab.until_idle()
    assert lab.submission(submission_id).outcome is Outcome.PASSED
    (target,) = lab.report(submission_id).targets
    assert target.discarded == {Arm.CANDIDATE: 1}


def test_a_worker_that_dies_while_building_loses_its_claim_not_the_build(lab: LabUnderTest) -> None:
    submission_id = lab.submit("locks@board")
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
    lab.submit("locks@board")
    lab.until_idle()
    for _ in range(5):
        lab.tick()
    with lab.transaction() as session:
        assert len(session.scalars(select(Build.id)).all()) <= 3


# --- messages -----------------------------------------------------------------------------------------------------


def test_without_a_broker_nothing_is_lost(lab: LabUnderTest) -> None:
    """Every message vanishes; ticks alone (an operator could run them by hand) bring the work to workers again."""
    submission_id = lab.submit("locks@board")
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
    submission_id = lab.submit("locks@board")
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
    lab.submit("locks@board")
    lab.sent.clear()
    for _ in range(10):
        lab.tick()
    per_job = [(message.task, message.id) for message in lab.sent if message.id is not None]
    assert len(per_job) == len(set(per_job))
