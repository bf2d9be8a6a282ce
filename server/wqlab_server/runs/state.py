"""Decide whether a run is retried or ends after an attempt. Pure."""

from __future__ import annotations

from collections.abc import Collection

from wqlab_contracts.enums import ErrorKind, Outcome, RunPurpose
from wqlab_contracts.keys import defect_key
from wqlab_contracts.messages import Failure, RunResult

from ..jobs.errors import canceled_failure
from ..jobs.state import Ended, Retry


def decide_run(
    result: RunResult,
    purpose: RunPurpose,
    baseline_failures: Collection[Failure],
    *,
    has_candidate: bool,
    attempts: int,
    bound: int,
    cancel_requested: bool,
    complete: bool = False,
) -> Retry | Ended:
    """Decide from the result of one attempt. `complete`: the blocks that are due are finished.

    `baseline_failures`: failures of the run's baseline boots in all attempts. A kernel failure that the baseline shows
    too is not the candidate's, so it becomes an infrastructure failure; a different baseline failure changes nothing.
    An infrastructure failure is retried while `attempts`, those since the last finished block, are below `bound`; after
    the last block that is due it loses nothing. A canceled canary has given way to another run, and is retried.
    """
    failure = result.failure
    if result.outcome is Outcome.PASSED:
        return Ended(Outcome.PASSED, None)
    if result.outcome is Outcome.CANCELED or cancel_requested:
        reason = failure if failure and failure.kind is ErrorKind.CANCELED else canceled_failure()
        return Retry(reason) if purpose is RunPurpose.CANARY else Ended(Outcome.CANCELED, reason)
    if failure is None:
        failure = Failure(kind=ErrorKind.INFRASTRUCTURE, summary="the worker gave no reason why the run failed")
    if failure.kind is ErrorKind.KERNEL and purpose is RunPurpose.MEASURE and _is_among(failure, baseline_failures):
        origin = (
            "the baseline kernel fails the same way, the candidate is not blamed"
            if has_candidate
            else "the tree's own kernel"
        )
        failure = failure.model_copy(
            update={"kind": ErrorKind.INFRASTRUCTURE, "summary": f"{origin}: {failure.summary}"}
        )
    if failure.kind is ErrorKind.INFRASTRUCTURE and complete:
        return Ended(Outcome.PASSED, None)
    if failure.kind is ErrorKind.INFRASTRUCTURE and attempts < bound:
        return Retry(failure)
    return Ended(Outcome.FAILED, failure)


def _is_among(failure: Failure, others: Collection[Failure]) -> bool:
    """Return True if one of `others` is the same defect, in another kernel: oopses with the same call trace."""
    return _key(failure) in {_key(other) for other in others}


def _key(failure: Failure) -> str:
    return defect_key(failure.defect or failure.summary)
