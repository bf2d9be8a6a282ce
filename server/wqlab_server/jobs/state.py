"""Job states, and the decision between retry and end after an attempt. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from wqlab_contracts.enums import ErrorKind, JobState, Outcome
from wqlab_contracts.messages import Failure

from .errors import IllegalTransition, canceled_failure

ALLOWED: Mapping[JobState, frozenset[JobState]] = {
    JobState.WAITING: frozenset({JobState.QUEUED, JobState.FINISHED}),
    JobState.QUEUED: frozenset({JobState.RUNNING, JobState.FINISHED}),
    JobState.RUNNING: frozenset({JobState.QUEUED, JobState.FINISHED}),
    JobState.FINISHED: frozenset(),
}


class HasState(Protocol):
    id: int
    state: JobState


def change_state(job: HasState, state: JobState) -> None:
    """Set the job's state. Raises IllegalTransition for a change that is not in `ALLOWED`; FINISHED is final."""
    if state not in ALLOWED[job.state]:
        raise IllegalTransition(f"{type(job).__name__} {job.id} is {job.state} and cannot become {state}")
    job.state = state


@dataclass(frozen=True)
class Retry:
    """The attempt failed for a reason other than the kernel: queue the job again."""

    failure: Failure


@dataclass(frozen=True)
class Ended:
    """The job is finished."""

    outcome: Outcome
    failure: Failure | None


def decide_job(
    outcome: Outcome, failure: Failure | None, *, attempts: int, bound: int, cancel_requested: bool
) -> Retry | Ended:
    """Decide whether an apply or build is retried or ends, from the result of one attempt.

    An infrastructure failure is retried while `attempts` is below `bound`.
    """
    if outcome is Outcome.PASSED:
        return Ended(Outcome.PASSED, None)
    if outcome is Outcome.CANCELED or cancel_requested:
        return Ended(
            Outcome.CANCELED, failure if failure and failure.kind is ErrorKind.CANCELED else canceled_failure()
        )
    if failure is None:
        failure = Failure(kind=ErrorKind.INFRASTRUCTURE, summary="the worker gave no reason for the failure")
    if failure.kind is ErrorKind.INFRASTRUCTURE and attempts < bound:
        return Retry(failure)
    return Ended(Outcome.FAILED, failure)
