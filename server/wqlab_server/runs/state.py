"""What an ended attempt of a run leads to. Pure."""

from __future__ import annotations

from collections.abc import Collection

from wqlab_contracts.defects import defect
from wqlab_contracts.enums import ErrorKind, Outcome, RunPurpose
from wqlab_contracts.messages import Failure, RunResult

from ..jobs.errors import canceled
from ..jobs.state import Again, Ended


def judge_run(
    result: RunResult,
    purpose: RunPurpose,
    of_baseline: Collection[Failure],
    *,
    has_candidate: bool,
    attempts: int,
    bound: int,
    cancel_requested: bool,
) -> Again | Ended:
    """What follows from the result of one attempt.

    `of_baseline`: how boots of this run's baseline failed, in all attempts. A baseline that fails in the same way says
    nothing about the candidate, so that is infrastructure; one that fails in another way clears nobody.
    """
    failure = result.failure
    if result.outcome is Outcome.PASSED:
        return Ended(Outcome.PASSED, None)
    if result.outcome is Outcome.CANCELED or cancel_requested:
        return Ended(Outcome.CANCELED, failure if failure and failure.kind is ErrorKind.CANCELED else canceled())
    if failure is None:
        failure = Failure(kind=ErrorKind.INFRASTRUCTURE, summary="the worker gave no reason why the run failed")
    if failure.kind is ErrorKind.KERNEL and purpose is RunPurpose.MEASURE and _is_among(failure, of_baseline):
        whose = (
            "the baseline kernel fails so, the candidate is not blamed" if has_candidate else "the tree's own kernel"
        )
        failure = failure.model_copy(
            update={"kind": ErrorKind.INFRASTRUCTURE, "summary": f"{whose}: {failure.summary}"}
        )
    if failure.kind is ErrorKind.INFRASTRUCTURE and attempts < bound:
        return Again(failure)
    return Ended(Outcome.FAILED, failure)


def _is_among(failure: Failure, others: Collection[Failure]) -> bool:
    return defect(failure.summary) in {defect(other.summary) for other in others}
