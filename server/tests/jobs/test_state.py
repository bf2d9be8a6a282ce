"""Every transition of job states, and retries of jobs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import pytest

from wqlab_contracts.enums import ErrorKind, JobState, Outcome
from wqlab_contracts.messages import Failure
from wqlab_server.jobs.errors import IllegalTransition
from wqlab_server.jobs.state import ALLOWED, Ended, Retry, change_state, decide_job


@dataclass
class Job:
    id: int
    state: JobState


def failure(kind: ErrorKind) -> Failure:
    return Failure(kind=kind, summary=f"{kind} failure")


@pytest.mark.parametrize(("old", "new"), list(product(JobState, JobState)))
def test_every_job_transition_is_allowed_or_refused(old: JobState, new: JobState) -> None:
    job = Job(1, old)
    if new in ALLOWED[old]:
        change_state(job, new)
        assert job.state is new
    else:
        with pytest.raises(IllegalTransition, match=rf"Job 1 is {old} and cannot become {new}"):
            change_state(job, new)
        assert job.state is old


def test_user_failure_is_never_retried() -> None:
    user = failure(ErrorKind.USER)
    assert decide_job(Outcome.FAILED, user, attempts=1, bound=3, cancel_requested=False) == Ended(Outcome.FAILED, user)


def test_finished_jobs_never_change() -> None:
    assert ALLOWED[JobState.FINISHED] == frozenset()


def test_infrastructure_failure_is_retried_while_attempts_are_left() -> None:
    lost = failure(ErrorKind.INFRASTRUCTURE)
    decisions = [
        decide_job(Outcome.FAILED, lost, attempts=attempts, bound=3, cancel_requested=False) for attempts in (1, 2, 3)
    ]
    assert decisions == [Retry(lost), Retry(lost), Ended(Outcome.FAILED, lost)]


def test_canceled_job_is_not_retried() -> None:
    decision = decide_job(Outcome.FAILED, failure(ErrorKind.INFRASTRUCTURE), attempts=1, bound=3, cancel_requested=True)
    assert isinstance(decision, Ended)
    assert decision.outcome is Outcome.CANCELED
