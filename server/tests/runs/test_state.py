"""States of jobs and submissions, and what a result means: every case of the pure tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import pytest

from wqlab_contracts.enums import (
    ErrorKind,
    ExitCode,
    JobState,
    Outcome,
    Question,
    Role,
    RunPurpose,
    SubmissionState,
    Verdict,
)
from wqlab_contracts.messages import Failure, RunResult
from wqlab_server.jobs import state as jobs
from wqlab_server.jobs.errors import IllegalTransition
from wqlab_server.jobs.state import Again, Ended, judge_job
from wqlab_server.runs.state import judge_run
from wqlab_server.submissions import state as submissions
from wqlab_server.submissions.state import end

MEASURE = RunPurpose.MEASURE


@dataclass
class Job:
    id: int
    state: JobState


def failure(kind: ErrorKind) -> Failure:
    return Failure(kind=kind, summary=f"{kind} trouble")


@pytest.mark.parametrize(("old", "new"), list(product(JobState, JobState)))
def test_every_job_transition_is_allowed_or_refused(old: JobState, new: JobState) -> None:
    job = Job(1, old)
    if new in jobs.ALLOWED[old]:
        jobs.move(job, new)
        assert job.state is new
    else:
        with pytest.raises(IllegalTransition, match=rf"Job 1 is {old} and cannot become {new}"):
            jobs.move(job, new)
        assert job.state is old


@pytest.mark.parametrize(("old", "new"), list(product(SubmissionState, SubmissionState)))
def test_every_submission_transition_is_allowed_or_refused(old: SubmissionState, new: SubmissionState) -> None:
    order = list(SubmissionState)
    if new in submissions.ALLOWED[old]:
        submissions.check_transition(old, new)
        assert order.index(new) > order.index(old)
    else:
        with pytest.raises(IllegalTransition):
            submissions.check_transition(old, new)


def test_terminal_states_never_change() -> None:
    assert jobs.ALLOWED[JobState.FINISHED] == frozenset()
    assert submissions.ALLOWED[SubmissionState.FINISHED] == frozenset()


def judged(
    result: RunResult,
    of_baseline: Sequence[Failure] = (),
    *,
    attempts: int = 1,
    cancel: bool = False,
    study: bool = False,
) -> Again | Ended:
    return judge_run(
        result,
        MEASURE,
        of_baseline,
        has_candidate=not study,
        attempts=attempts,
        bound=3,
        cancel_requested=cancel,
    )


def failed_by(kind: ErrorKind) -> RunResult:
    return RunResult(outcome=Outcome.FAILED, failure=failure(kind))


def dead(summary: str) -> Failure:
    return Failure(kind=ErrorKind.KERNEL, summary=summary)


OOPS = "oops: BUG: unable to handle page fault for address: ffffc90000{:06x}"
WARNING = "warning: WARNING: CPU: {} PID: {} at kernel/workqueue.c:3842 __flush_work+0x1a/0x30"


def test_a_candidate_that_dies_is_the_kernels_failure_at_once() -> None:
    assert judged(failed_by(ErrorKind.KERNEL)) == Ended(Outcome.FAILED, failure(ErrorKind.KERNEL))


@pytest.mark.parametrize(
    ("candidate", "baseline"),
    [(OOPS.format(0x1000), OOPS.format(0xAB2340)), (WARNING.format(1, 77), WARNING.format(0, 812))],
)
def test_a_baseline_that_dies_in_the_same_way_makes_it_infrastructure(candidate: str, baseline: str) -> None:
    result = RunResult(outcome=Outcome.FAILED, failure=dead(candidate))
    again = judged(result, [dead(baseline)])
    assert isinstance(again, Again)
    assert again.failure.kind is ErrorKind.INFRASTRUCTURE
    assert "the candidate is not blamed" in again.failure.summary
    assert isinstance(judged(result, [dead(baseline)], attempts=3), Ended)


def test_a_baseline_that_dies_in_another_way_does_not_clear_the_candidate() -> None:
    panic = dead("panic: Kernel panic - not syncing: lock taken twice")
    result = RunResult(outcome=Outcome.FAILED, failure=panic)
    assert judged(result, [dead(OOPS.format(0x1000))]) == Ended(Outcome.FAILED, panic)


def test_a_workload_that_broke_with_the_baseline_on_another_unit_is_infrastructure() -> None:
    result = RunResult(outcome=Outcome.FAILED, failure=dead("dmsetup refuses the table: error 3"))
    before = Failure(kind=ErrorKind.INFRASTRUCTURE, summary="dmsetup refuses the table: error 5")
    assert isinstance(judged(result, [before]), Again)
    assert isinstance(judged(result, [before.model_copy(update={"summary": "no power"})]), Ended)


def test_the_baselines_own_death_is_infrastructure_and_tried_again() -> None:
    oops = dead(OOPS.format(0x1000))
    again = judged(RunResult(outcome=Outcome.FAILED, failure=oops), [oops])
    assert isinstance(again, Again)
    assert again.failure.kind is ErrorKind.INFRASTRUCTURE


def test_a_study_has_no_candidate_to_speak_of() -> None:
    oops = dead(OOPS.format(0x1000))
    again = judged(RunResult(outcome=Outcome.FAILED, failure=oops), [oops], study=True)
    assert isinstance(again, Again)
    assert again.failure.summary == f"the tree's own kernel: {oops.summary}"


def test_infrastructure_is_tried_again_up_to_the_bound() -> None:
    result = failed_by(ErrorKind.INFRASTRUCTURE)
    assert [type(judged(result, attempts=n)) for n in (1, 2, 3)] == [Again, Again, Ended]


def test_a_cancel_ends_a_failed_attempt_but_not_one_that_passed() -> None:
    ended = judged(failed_by(ErrorKind.INFRASTRUCTURE), (), cancel=True)
    assert isinstance(ended, Ended)
    assert ended.outcome is Outcome.CANCELED
    assert judged(RunResult(outcome=Outcome.PASSED), (), cancel=True) == Ended(Outcome.PASSED, None)


def test_a_failure_without_a_reason_is_the_labs() -> None:
    again = judged(RunResult(outcome=Outcome.FAILED))
    assert isinstance(again, Again)
    assert again.failure.kind is ErrorKind.INFRASTRUCTURE


def test_a_users_failure_is_never_tried_again() -> None:
    user = failure(ErrorKind.USER)
    assert judge_job(Outcome.FAILED, user, attempts=1, bound=3, cancel_requested=False) == Ended(Outcome.FAILED, user)


# --- how a submission ends ----------------------------------------------------------------------------------------

REGRESSED = (Question.KERNEL, Role.PRIMARY, Verdict.REGRESSION)


@pytest.mark.parametrize(
    ("kinds", "verdicts", "code"),
    [
        ([], [], ExitCode.DONE),
        ([], [(Question.KERNEL, Role.PRIMARY, Verdict.IMPROVEMENT)], ExitCode.DONE),
        ([], [(Question.KERNEL, Role.PRIMARY, Verdict.INCONCLUSIVE)], ExitCode.DONE),
        ([], [REGRESSED], ExitCode.REGRESSION),
        ([], [(Question.KERNEL, Role.SECONDARY, Verdict.REGRESSION)], ExitCode.DONE),
        ([], [(Question.SETTING, Role.PRIMARY, Verdict.REGRESSION)], ExitCode.DONE),
        ([ErrorKind.USER], [REGRESSED], ExitCode.SERIES_FAILED),
        ([ErrorKind.KERNEL], [REGRESSED], ExitCode.SERIES_FAILED),
        ([ErrorKind.INFRASTRUCTURE], [REGRESSED], ExitCode.INFRASTRUCTURE),
        ([ErrorKind.KERNEL, ErrorKind.INFRASTRUCTURE], [REGRESSED], ExitCode.INFRASTRUCTURE),
    ],
)
def test_exit_codes(
    kinds: list[ErrorKind], verdicts: list[tuple[Question, Role, Verdict | None]], code: ExitCode
) -> None:
    result = end([failure(kind) for kind in kinds], verdicts)
    assert result.exit_code is code
    assert result.outcome is (Outcome.FAILED if kinds else Outcome.PASSED)


def test_the_order_of_failures_does_not_matter() -> None:
    mixed = [failure(ErrorKind.KERNEL), failure(ErrorKind.INFRASTRUCTURE), failure(ErrorKind.USER)]
    assert {end(order, []).failure for order in (mixed, mixed[::-1])} == {failure(ErrorKind.INFRASTRUCTURE)}


def test_canceled_is_no_good_result_for_a_ci() -> None:
    result = end([], [], canceled=True)
    assert (result.outcome, result.exit_code) == (Outcome.CANCELED, ExitCode.INFRASTRUCTURE)
