"""States of a submission, and its outcome. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from wqlab_contracts.enums import ErrorKind, ExitCode, Outcome, Question, SubmissionState, Verdict
from wqlab_contracts.messages import Failure

from ..jobs.errors import IllegalTransition

ALLOWED: Mapping[SubmissionState, frozenset[SubmissionState]] = {
    SubmissionState.APPLYING: frozenset({SubmissionState.BUILDING, SubmissionState.FINISHED}),
    SubmissionState.BUILDING: frozenset({SubmissionState.RUNNING, SubmissionState.COMPARING, SubmissionState.FINISHED}),
    SubmissionState.RUNNING: frozenset({SubmissionState.COMPARING, SubmissionState.FINISHED}),
    SubmissionState.COMPARING: frozenset({SubmissionState.FINISHED}),
    SubmissionState.FINISHED: frozenset(),
}


def check_transition(old: SubmissionState, new: SubmissionState) -> None:
    """Raise IllegalTransition unless `old` may become `new`. States only advance, and FINISHED is final."""
    if new not in ALLOWED[old]:
        raise IllegalTransition(f"a submission that is {old} cannot become {new}")


@dataclass(frozen=True)
class End:
    """Final result of a submission."""

    outcome: Outcome
    failure: Failure | None
    exit_code: ExitCode


_SEVERITY = (ErrorKind.INFRASTRUCTURE, ErrorKind.USER, ErrorKind.KERNEL, ErrorKind.CANCELED)


def end(
    failures: Sequence[Failure], verdicts: Iterable[tuple[Question, Verdict | None]], *, canceled: bool = False
) -> End:
    """Determine the end of a submission from its failures and the verdicts of its metrics.

    Exit codes by precedence: 4 infrastructure, 3 the series failed, 1 a judged metric regressed against the baseline
    kernel, 0 otherwise. A setting that is worse than the reference setting is a result, not a regression. A canceled
    submission says nothing about the series; its exit code is 4, so that a CI does not take it for a pass.
    """
    if canceled:
        cancellation = next((failure for failure in failures if failure.kind is ErrorKind.CANCELED), None)
        return End(
            Outcome.CANCELED,
            cancellation or Failure(kind=ErrorKind.CANCELED, summary="canceled by its owner"),
            ExitCode.INFRASTRUCTURE,
        )
    if failures:
        worst = min(failures, key=lambda failure: _SEVERITY.index(failure.kind))
        series_failed = worst.kind in {ErrorKind.USER, ErrorKind.KERNEL}
        return End(Outcome.FAILED, worst, ExitCode.SERIES_FAILED if series_failed else ExitCode.INFRASTRUCTURE)
    regressed = (Question.KERNEL, Verdict.REGRESSION) in verdicts
    return End(Outcome.PASSED, None, ExitCode.REGRESSION if regressed else ExitCode.DONE)
