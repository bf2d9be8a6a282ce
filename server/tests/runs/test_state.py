"""Decision between retry and end after an attempt of a run."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from wqlab_contracts.enums import ErrorKind, FindingKind, Outcome, RunPurpose
from wqlab_contracts.keys import describe_defect
from wqlab_contracts.messages import Failure, RunResult, StackFrame
from wqlab_server.jobs.state import Ended, Retry
from wqlab_server.runs.state import decide_run

MEASURE = RunPurpose.MEASURE


def failure(kind: ErrorKind) -> Failure:
    return Failure(kind=kind, summary=f"{kind} failure")


def judge(
    result: RunResult,
    baseline_failures: Sequence[Failure] = (),
    *,
    attempts: int = 1,
    cancel: bool = False,
    study: bool = False,
    purpose: RunPurpose = MEASURE,
    complete: bool = False,
) -> Retry | Ended:
    return decide_run(
        result,
        purpose,
        baseline_failures,
        has_candidate=not study,
        attempts=attempts,
        bound=3,
        cancel_requested=cancel,
        complete=complete,
    )


def failed_by(kind: ErrorKind) -> RunResult:
    return RunResult(outcome=Outcome.FAILED, failure=failure(kind))


def kernel_failure(summary: str) -> Failure:
    return Failure(kind=ErrorKind.KERNEL, summary=summary)


OOPS = "oops: BUG: unable to handle page fault for address: ffffc90000{:06x}"

WARNING = "warning: WARNING: CPU: {} PID: {} at kernel/workqueue.c:3842 __flush_work+0x1a/0x30"


def test_candidate_failure_ends_the_run_at_once() -> None:
    assert judge(failed_by(ErrorKind.KERNEL)) == Ended(Outcome.FAILED, failure(ErrorKind.KERNEL))


@pytest.mark.parametrize(
    ("candidate", "baseline"),
    [(OOPS.format(0x1000), OOPS.format(0xAB2340)), (WARNING.format(1, 77), WARNING.format(0, 812))],
)
def test_same_baseline_failure_makes_it_infrastructure(candidate: str, baseline: str) -> None:
    result = RunResult(outcome=Outcome.FAILED, failure=kernel_failure(candidate))
    decision = judge(result, [kernel_failure(baseline)])
    assert isinstance(decision, Retry)
    assert decision.failure.kind is ErrorKind.INFRASTRUCTURE
    assert "the candidate is not blamed" in decision.failure.summary
    assert isinstance(judge(result, [kernel_failure(baseline)], attempts=3), Ended)


def test_different_baseline_failure_does_not_excuse_the_candidate() -> None:
    panic = kernel_failure("panic: Kernel panic - not syncing: lock taken twice")
    result = RunResult(outcome=Outcome.FAILED, failure=panic)
    assert judge(result, [kernel_failure(OOPS.format(0x1000))]) == Ended(Outcome.FAILED, panic)


def test_workload_failure_of_both_arms_is_infrastructure() -> None:
    result = RunResult(outcome=Outcome.FAILED, failure=kernel_failure("dmsetup refuses the table: error 3"))
    before = Failure(kind=ErrorKind.INFRASTRUCTURE, summary="dmsetup refuses the table: error 5")
    assert isinstance(judge(result, [before]), Retry)
    assert isinstance(judge(result, [before.model_copy(update={"summary": "no power"})]), Ended)


def test_baseline_failure_is_infrastructure_and_retried() -> None:
    oops = kernel_failure(OOPS.format(0x1000))
    decision = judge(RunResult(outcome=Outcome.FAILED, failure=oops), [oops])
    assert isinstance(decision, Retry)
    assert decision.failure.kind is ErrorKind.INFRASTRUCTURE


def test_failure_of_a_study_names_the_tree_kernel() -> None:
    oops = kernel_failure(OOPS.format(0x1000))
    decision = judge(RunResult(outcome=Outcome.FAILED, failure=oops), [oops], study=True)
    assert isinstance(decision, Retry)
    assert decision.failure.summary == f"the tree's own kernel: {oops.summary}"


def test_infrastructure_failure_is_retried_up_to_the_bound() -> None:
    result = failed_by(ErrorKind.INFRASTRUCTURE)
    assert [type(judge(result, attempts=n)) for n in (1, 2, 3)] == [Retry, Retry, Ended]


def test_cancel_ends_a_failed_attempt_but_not_a_passed_one() -> None:
    ended = judge(failed_by(ErrorKind.INFRASTRUCTURE), (), cancel=True)
    assert isinstance(ended, Ended)
    assert ended.outcome is Outcome.CANCELED
    assert judge(RunResult(outcome=Outcome.PASSED), (), cancel=True) == Ended(Outcome.PASSED, None)


@pytest.mark.parametrize("attempts", [1, 3])
def test_lab_failure_after_the_last_due_block_loses_nothing(attempts: int) -> None:
    lost = failed_by(ErrorKind.INFRASTRUCTURE)
    assert judge(lost, attempts=attempts, complete=True) == Ended(Outcome.PASSED, None)
    kernel = failed_by(ErrorKind.KERNEL)
    assert judge(kernel, complete=True) == Ended(Outcome.FAILED, failure(ErrorKind.KERNEL))


def test_canceled_canary_is_tried_again() -> None:
    canceled = RunResult(outcome=Outcome.CANCELED)
    assert isinstance(judge(canceled, purpose=RunPurpose.CANARY, attempts=9), Retry)
    assert isinstance(judge(canceled), Ended)


def test_failure_without_a_reason_is_infrastructure() -> None:
    decision = judge(RunResult(outcome=Outcome.FAILED))
    assert isinstance(decision, Retry)
    assert decision.failure.kind is ErrorKind.INFRASTRUCTURE


def null_dereference(*functions: str, line: int) -> Failure:
    title = "BUG: kernel NULL pointer dereference, address: 0000000000000008"
    stack = tuple(StackFrame(function=name, file="kernel/workqueue.c", line=line) for name in functions)
    defect = describe_defect(FindingKind.OOPS, title, stack)
    return Failure(kind=ErrorKind.KERNEL, summary=f"oops: {title}", stack=stack, defect=defect)


def test_oopses_of_both_kernels_are_compared_by_call_trace() -> None:
    candidate = null_dereference("flush_one", "flush_all", line=20)
    result = RunResult(outcome=Outcome.FAILED, failure=candidate)
    assert judge(result, [null_dereference("free_one", "free_all", line=20)]) == Ended(Outcome.FAILED, candidate)
    same = judge(result, [null_dereference("flush_one", "flush_all", line=17)], attempts=3)
    assert same.failure and same.failure.kind is ErrorKind.INFRASTRUCTURE, "the series moved the lines"
