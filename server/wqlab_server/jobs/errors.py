"""Errors of the claim protocol, and constructors for failures by kind."""

from __future__ import annotations

from wqlab_contracts.enums import ErrorKind
from wqlab_contracts.excerpts import shorten
from wqlab_contracts.messages import Failure

from ..http.problems import ApiProblem


class IllegalTransition(Exception):
    """A state change that the state table does not allow. Always a bug, never a user's mistake."""


class StaleFence(ApiProblem):
    """The request's fence is not the job's current one: the job has another holder, or none."""

    def __init__(self, job: str, fence: int) -> None:
        super().__init__(409, f"fence {fence} no longer holds {job}; stop working on the job", slug="stale-fence")


class NotClaimable(ApiProblem):
    """The job is held by a worker, finished, or being canceled."""

    def __init__(self, job: str, reason: str) -> None:
        super().__init__(409, f"{job} cannot be claimed: {reason}", slug="not-claimable")


def make_failure(kind: ErrorKind, summary: str, *, excerpt: str = "", advice: str = "") -> Failure:
    """Return a failure; the middle of a long `excerpt` is left out."""
    return Failure(kind=kind, summary=summary, excerpt=shorten(excerpt), advice=advice)


def infrastructure_failure(summary: str, *, excerpt: str = "", advice: str = "") -> Failure:
    """Return a failure that the lab's operator has to fix."""
    return make_failure(ErrorKind.INFRASTRUCTURE, summary, excerpt=excerpt, advice=advice)


def canceled_failure(summary: str = "canceled by its owner") -> Failure:
    """Return the failure of a canceled job."""
    return make_failure(ErrorKind.CANCELED, summary)
