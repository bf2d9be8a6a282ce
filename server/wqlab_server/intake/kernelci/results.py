"""Result of a job in KernelCI's words. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from wqlab_contracts.enums import ErrorKind, Verdict
from wqlab_contracts.messages import Failure

MESSAGE_LIMIT = 1000
_DECIDED = frozenset({Verdict.IMPROVEMENT, Verdict.EQUIVALENT, Verdict.BELOW_THRESHOLD})


@dataclass(frozen=True)
class NodeResult:
    """What is written into a job's node."""

    result: str
    """pass, fail, skip or incomplete."""
    error_code: str | None = None
    """One of KernelCI's codes, for `incomplete`."""
    error_msg: str | None = None


def unmappable(reason: str) -> NodeResult:
    """Return the result of a job that the lab cannot do."""
    return NodeResult("incomplete", "invalid_job_params", reason[:MESSAGE_LIMIT])


def lab_failure(reason: str) -> NodeResult:
    """Return the result of a job that the lab failed to do."""
    return NodeResult("incomplete", "Infrastructure", reason[:MESSAGE_LIMIT])


def measured(failure: Failure | None, verdicts: Collection[Verdict], *, applied: bool) -> NodeResult:
    """Return the result of a finished submission.

    `fail` is a regression or a fault of the kernel. A job without any decision is `skip`, not `pass`: nothing is known
    of the code. A failure of the lab is `incomplete`, which KernelCI may retry. `applied`: the commit and its base were
    found, so that a fault of the submission is one of the code, such as a compile error.
    """
    if failure is not None:
        summary = failure.summary[:MESSAGE_LIMIT]
        if failure.kind is ErrorKind.INFRASTRUCTURE:
            return lab_failure(failure.summary)
        if failure.kind is ErrorKind.CANCELED:
            return NodeResult("incomplete", "Canceled", summary or "canceled")
        if failure.kind is ErrorKind.USER and not applied:
            return unmappable(failure.summary)
        return NodeResult("fail", None, summary)
    if Verdict.REGRESSION in verdicts or Verdict.FAILED in verdicts:
        return NodeResult("fail", None, "regression" if Verdict.REGRESSION in verdicts else "the kernel failed")
    if _DECIDED & set(verdicts):
        return NodeResult("pass")
    told = ", ".join(sorted(verdict.replace("_", " ") for verdict in verdicts)) or "nothing was measured"
    return NodeResult("skip", None, f"not decided: {told}")
