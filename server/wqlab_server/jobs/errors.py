"""Failures by who has to act, and the refusals of the claim protocol."""

from __future__ import annotations

from wqlab_contracts.enums import ErrorKind
from wqlab_contracts.messages import EXCERPT_LIMIT, Failure

from ..http.problems import ApiProblem


class IllegalTransition(Exception):
    """A state change that the table of states does not have: a bug, never a user's mistake."""


class StaleFence(ApiProblem):
    """The request's fence is not the job's present one: somebody else holds it, or nobody does any more."""

    def __init__(self, what: str, fence: int) -> None:
        super().__init__(409, f"fence {fence} does not hold {what} any more; stop working on it", slug="stale-fence")


class NotClaimable(ApiProblem):
    """Somebody has the job already, or there is nothing left to do."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(409, f"{what} cannot be claimed: {why}", slug="not-claimable")


def failure(kind: ErrorKind, summary: str, *, excerpt: str = "", advice: str = "") -> Failure:
    return Failure(kind=kind, summary=summary, excerpt=excerpt[-EXCERPT_LIMIT:], advice=advice)


def infrastructure(summary: str, *, excerpt: str = "", advice: str = "") -> Failure:
    return failure(ErrorKind.INFRASTRUCTURE, summary, excerpt=excerpt, advice=advice)


def canceled(summary: str = "canceled by its owner") -> Failure:
    return failure(ErrorKind.CANCELED, summary)
