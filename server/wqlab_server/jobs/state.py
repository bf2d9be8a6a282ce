"""States of applies, builds and runs, and what an ended attempt of one leads to. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from wqlab_contracts.enums import ErrorKind, JobState, Outcome
from wqlab_contracts.messages import Failure

from .errors import IllegalTransition, canceled

ALLOWED: Mapping[JobState, frozenset[JobState]] = {
    JobState.WAITING: frozenset({JobState.QUEUED, JobState.FINISHED}),
    JobState.QUEUED: frozenset({JobState.RUNNING, JobState.FINISHED}),
    JobState.RUNNING: frozenset({JobState.QUEUED, JobState.FINISHED}),
    JobState.FINISHED: frozenset(),
}


AGING_PER_MINUTE = 1.0
"""Priority that a waiting run gains."""
SHARE = 25.0
"""Priority that each device costs which the submitter already holds."""


def queue_score(priority: int, waited_s: float, devices_held: int) -> float:
    """What orders the runs that wait for devices: the highest goes first. Priority and devices held are bounded and the
    wait is not, so nobody waits for ever."""
    return priority + AGING_PER_MINUTE * waited_s / 60 - SHARE * devices_held


class HasState(Protocol):
    id: int
    state: JobState


def move(job: HasState, state: JobState) -> None:
    """Raises IllegalTransition for a change that `ALLOWED` does not have; nothing leaves FINISHED."""
    if state not in ALLOWED[job.state]:
        raise IllegalTransition(f"{type(job).__name__} {job.id} is {job.state} and cannot become {state}")
    job.state = state


@dataclass(frozen=True)
class Again:
    """The attempt failed for a reason that is not the kernel's: give the job out once more."""

    failure: Failure


@dataclass(frozen=True)
class Ended:
    outcome: Outcome
    failure: Failure | None


def judge_job(
    outcome: Outcome, failure: Failure | None, *, attempts: int, bound: int, cancel_requested: bool
) -> Again | Ended:
    """What follows from the result of one attempt of an apply or a build."""
    if outcome is Outcome.PASSED:
        return Ended(Outcome.PASSED, None)
    if outcome is Outcome.CANCELED or cancel_requested:
        return Ended(Outcome.CANCELED, failure if failure and failure.kind is ErrorKind.CANCELED else canceled())
    if failure is None:
        failure = Failure(kind=ErrorKind.INFRASTRUCTURE, summary="the worker gave no reason for the failure")
    if failure.kind is ErrorKind.INFRASTRUCTURE and attempts < bound:
        return Again(failure)
    return Ended(Outcome.FAILED, failure)
