"""Exceptions that carry a contracts Failure: whoever catches one knows who has to act."""

from __future__ import annotations

from wqlab_contracts.enums import ErrorKind
from wqlab_contracts.messages import EXCERPT_LIMIT, Failure


class JobError(Exception):
    """A job cannot go on. `failure` is what the submission's owner will read."""

    kind = ErrorKind.INFRASTRUCTURE

    def __init__(self, summary: str, *, excerpt: str = "", advice: str = "") -> None:
        super().__init__(summary)
        self.failure = Failure(kind=self.kind, summary=summary, excerpt=shortened(excerpt), advice=advice)


class UserError(JobError):
    """What was submitted is at fault; trying again gives the same answer."""

    kind = ErrorKind.USER


class InfrastructureError(JobError):
    """The lab is at fault; the same job may succeed later or elsewhere."""

    kind = ErrorKind.INFRASTRUCTURE


def shortened(text: str, limit: int = EXCERPT_LIMIT) -> str:
    """`text`, or its beginning and end with a line between that says how much is missing."""
    if len(text) <= limit:
        return text
    half = limit // 2 - 40
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"
