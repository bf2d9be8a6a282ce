"""Exceptions that end a job. Each carries a Failure, which says who has to act."""

from __future__ import annotations

from wqlab_contracts.enums import ErrorKind
from wqlab_contracts.messages import EXCERPT_LIMIT, Failure


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


def shorten(text: str, limit: int = EXCERPT_LIMIT) -> str:
    """Return `text`. If it is longer than `limit`, replace the middle by a line that says how much is left out."""
    if len(text) <= limit:
        return text
    half = limit // 2 - 40
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"
