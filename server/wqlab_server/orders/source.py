"""What a source of submissions says: what it wants to have measured, and what a result means to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from sqlalchemy.orm import Session

from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.enums import ErrorKind
from wqlab_contracts.loading import DataFolder
from wqlab_contracts.specs import Tree

from ..models import Order, Submission
from ..settings import Settings


@dataclass(frozen=True)
class Context:
    """What the steps of a source may use. The session is a transaction of their own."""

    session: Session
    settings: Settings
    data: DataFolder


@dataclass(frozen=True)
class Proposal:
    """What is to be submitted, and for whom."""

    request: SubmissionRequest
    owner: str
    repository: Tree | None = None
    """Repository of a pair of commits, if it is not that of the lab's tree."""
    limited: bool | None = None
    """True if the owner's quotas limit it; None: as the role of the owner's account says."""
    on_behalf: bool = False
    """True if the series is not the owner's: devices for the series of named people do not take it then."""
    needs_account: bool = True
    """False if the owner may be a token without an account."""


class Stop(Exception):
    """The order will never be submitted, or was submitted for the last time; the text says why."""


class Refused(Stop):
    """The lab refuses the request, such as for a plan that it does not have.

    Of kind USER it is the submitter's mistake, and the order ends. Of kind INFRASTRUCTURE it is the operator's, who can
    correct it, and the order waits.
    """

    def __init__(self, kind: ErrorKind, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


class TooLarge(Refused):
    """The order alone needs more device time than its watch has in a day."""


def is_correctable(stop: Stop) -> bool:
    """Return True if the lab's operator can correct what keeps an order from being submitted."""
    return isinstance(stop, Refused) and stop.kind is ErrorKind.INFRASTRUCTURE


class Source:
    """One kind of order. A module of `sources` makes a subclass for each.

    Each call of a method but `items` is a transaction, and gets an order that is locked. A tick first calls
    `conclude`, then `find`, then `propose`.
    """

    name: ClassVar[str]
    tries: ClassVar[int] = 1
    """Submissions of an order that the lab fails to measure, before it is given up."""
    first_retry: ClassVar[timedelta] = timedelta(minutes=15)
    """Pause before the second submission; it is doubled before each later one."""
    mistakes: ClassVar[ErrorKind] = ErrorKind.USER
    """Kind of a refusal: USER if submitters write what is requested, INFRASTRUCTURE if the lab's operator does."""
    longest_wait: ClassVar[timedelta | None] = None
    """How long an order waits for its first submission; None: as long as it takes."""

    def items(self, context: Context) -> Sequence[int | str]:
        """Return the ids or names of what may have something new to order."""
        return ()

    def find(self, context: Context, item: int | str) -> None:
        """Place the orders of an item with `orders.place`, and withdraw those that are not wanted any more."""

    def propose(self, context: Context, order: Order) -> Proposal:
        """Return what to submit. Raises Wait if nothing can be submitted now, Stop if nothing is to be."""
        raise NotImplementedError

    def submitted(self, context: Context, order: Order, submission: Submission) -> None:
        """Act on the order's submission, in the transaction that makes it."""

    def waits(self, context: Context, order: Order, reason: Exception) -> None:
        """Act on what prevents the submission now: a Wait, or a mistake of the operator."""

    def stopped(self, context: Context, order: Order, stop: Stop) -> None:
        """Act on an order that will not be submitted, or, if it has a `submission_id`, not again."""

    def conclude(self, context: Context, order: Order, submission: Submission) -> str:
        """Take the result of a finished submission.

        Returns why it has to be submitted again, or an empty string. `waits` is called then, or after `tries`
        submissions `stopped`. A transaction that is rolled back is repeated at the next tick, so an effect outside of
        the database has to be repeatable.
        """
        return ""


def lab_failure(submission: Submission) -> str:
    """Return how the lab failed to measure a submission; an empty string if it did not fail."""
    failure = submission.failure
    if failure is None or failure.kind is not ErrorKind.INFRASTRUCTURE:
        return ""
    return f"the lab failed in submission {submission.id}: {failure.summary}"
