"""States of a submission and its end."""

from __future__ import annotations

from itertools import product

import pytest

from wqlab_contracts.enums import ErrorKind, ExitCode, Outcome, Question, SubmissionState, Verdict
from wqlab_contracts.messages import Failure
from wqlab_server.jobs.errors import IllegalTransition
from wqlab_server.submissions.state import ALLOWED, check_transition, end

REGRESSION = (Question.KERNEL, Verdict.REGRESSION)


def failure(kind: ErrorKind) -> Failure:
    return Failure(kind=kind, summary=f"{kind} failed")


def test_finished_is_final() -> None:
    for state in SubmissionState:
        with pytest.raises(IllegalTransition):
            check_transition(SubmissionState.FINISHED, state)
    assert all(SubmissionState.FINISHED in ALLOWED[state] for state in SubmissionState if ALLOWED[state])


@pytest.mark.parametrize(("old", "new"), list(product(SubmissionState, SubmissionState)))
def test_every_submission_transition_is_allowed_or_refused(old: SubmissionState, new: SubmissionState) -> None:
    order = list(SubmissionState)
    if new in ALLOWED[old]:
        check_transition(old, new)
        assert order.index(new) > order.index(old)
    else:
        with pytest.raises(IllegalTransition):
            check_transition(old, new)


@pytest.mark.parametrize(
    ("kinds", "worst", "exit_code"),
    [
        ([ErrorKind.KERNEL, ErrorKind.INFRASTRUCTURE], ErrorKind.INFRASTRUCTURE, ExitCode.INFRASTRUCTURE),
        ([ErrorKind.KERNEL, ErrorKind.USER], ErrorKind.USER, ExitCode.SERIES_FAILED),
        ([ErrorKind.KERNEL], ErrorKind.KERNEL, ExitCode.SERIES_FAILED),
    ],
)
def test_worst_failure_decides(kinds: list[ErrorKind], worst: ErrorKind, exit_code: ExitCode) -> None:
    found = end([failure(kind) for kind in kinds], [REGRESSION])
    assert found.failure is not None
    assert (found.outcome, found.failure.kind, found.exit_code) == (Outcome.FAILED, worst, exit_code)


def test_only_a_regression_of_the_kernel_is_a_regression() -> None:
    assert end([], [REGRESSION]).exit_code is ExitCode.REGRESSION
    others = [
        (Question.SETTING, Verdict.REGRESSION),
        (Question.KERNEL, None),
    ]
    assert (end([], others).outcome, end([], others).exit_code) == (Outcome.PASSED, ExitCode.DONE)


def test_canceled_submission_is_never_a_pass() -> None:
    found = end([], [], canceled=True)
    assert (found.outcome, found.exit_code) == (Outcome.CANCELED, ExitCode.INFRASTRUCTURE)


@pytest.mark.parametrize(
    ("kinds", "verdicts", "code"),
    [
        ([], [], ExitCode.DONE),
        ([], [(Question.KERNEL, Verdict.IMPROVEMENT)], ExitCode.DONE),
        ([], [(Question.KERNEL, Verdict.INCONCLUSIVE)], ExitCode.DONE),
        ([], [REGRESSION], ExitCode.REGRESSION),
        ([], [(Question.SETTING, Verdict.REGRESSION)], ExitCode.DONE),
        ([ErrorKind.USER], [REGRESSION], ExitCode.SERIES_FAILED),
        ([ErrorKind.KERNEL], [REGRESSION], ExitCode.SERIES_FAILED),
        ([ErrorKind.INFRASTRUCTURE], [REGRESSION], ExitCode.INFRASTRUCTURE),
        ([ErrorKind.KERNEL, ErrorKind.INFRASTRUCTURE], [REGRESSION], ExitCode.INFRASTRUCTURE),
    ],
)
def test_exit_code_follows_failures_and_verdicts(
    kinds: list[ErrorKind], verdicts: list[tuple[Question, Verdict | None]], code: ExitCode
) -> None:
    result = end([failure(kind) for kind in kinds], verdicts)
    assert result.exit_code is code
    assert result.outcome is (Outcome.FAILED if kinds else Outcome.PASSED)


def test_order_of_failures_does_not_matter() -> None:
    mixed = [failure(ErrorKind.KERNEL), failure(ErrorKind.INFRASTRUCTURE), failure(ErrorKind.USER)]
    assert {end(order, []).failure for order in (mixed, mixed[::-1])} == {failure(ErrorKind.INFRASTRUCTURE)}
