"""Messages of a list read: a worker reads mails of a mailing list from the repositories of its archive."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ..enums import JobKind, Outcome
from .base import Failure, Message
from .list_mails import MAILS_OF_A_PREVIEW, ListMails, ListSource


class ListReadJob(Message):
    """Job that reads mails behind a position of a list."""

    kind: Literal[JobKind.READ_LIST] = JobKind.READ_LIST
    source: ListSource
    heads_only: bool = False
    """Read on until the list has no more mails, and return only cover letters and patches: for the preview of a watch.
    If False, return at most `limit` mails; the next read continues after the last of them."""
    limit: int = Field(ge=1, le=MAILS_OF_A_PREVIEW)
    """Maximum number of mails to return."""


class ListReadResult(Message):
    """Mails of a list, or why they could not be read."""

    kind: Literal[JobKind.READ_LIST] = JobKind.READ_LIST
    outcome: Outcome
    failure: Failure | None = None
    found: ListMails | None = None
