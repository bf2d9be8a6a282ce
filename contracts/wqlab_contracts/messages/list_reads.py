"""Messages of a list read: a worker reads mails of a mailing list from the repositories of its archive."""

from __future__ import annotations

from pydantic import Field

from ..enums import Outcome
from .base import Failure, Message
from .list_mails import MAILS_OF_A_PREVIEW, ListMails, ListSource


class ListReadJob(Message):
    """Job that reads mails behind a position of a list."""

    source: ListSource
    heads_only: bool = False
    """Read on until the list has no more mails, and return only cover letters and patches: for the preview of a rule.
    If False, return at most `limit` mails; the next read continues after the last of them."""
    limit: int = Field(ge=1, le=MAILS_OF_A_PREVIEW)
    """Maximum number of mails to return."""


class ListReadResult(Message):
    """Mails of a list, or why they could not be read."""

    outcome: Outcome
    failure: Failure | None = None
    found: ListMails | None = None


class ListReadClaim(Message):
    """Claim of a list read."""

    job: ListReadJob
    fence: int
    expires_in_s: float


class FinishListRead(Message):
    """Final message of a list read."""

    fence: int
    result: ListReadResult
