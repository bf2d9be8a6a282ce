"""Exceptions that end a job. Each carries a Failure, which says who has to act."""

from __future__ import annotations

from wqlab_contracts.enums import ErrorKind
from wqlab_contracts.excerpts import shorten
from wqlab_contracts.messages import Failure


class JobError(Exception):
    """A job cannot continue. `failure` is shown to the owner of the submission."""

    kind = ErrorKind.INFRASTRUCTURE

    def __init__(self, summary: str, *, excerpt: str = "", advice: str = "") -> None:
        super().__init__(summary)
        self.failure = Failure(kind=self.kind, summary=summary, excerpt=shorten(excerpt), advice=advice)


class UserError(JobError):
    """The submission is at fault; another attempt would fail in the same way."""

    kind = ErrorKind.USER


class InfrastructureError(JobError):
    """The lab is at fault; the same job may succeed later or on another machine."""

    kind = ErrorKind.INFRASTRUCTURE
