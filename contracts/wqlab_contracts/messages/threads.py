"""Messages about a series that is found by Message-ID in a mail archive."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from ..specs import Archive, Name
from .base import Artifact, Message, ShortText, Title
from .source_mail import SourceMail

LISTED_REPLIES = 100
"""Maximum number of replies that are listed; the others are only counted."""
REVISION_LIMIT = 9999


Url = Annotated[str, StringConstraints(max_length=2000, pattern=r"^(https?://[^\s<>\"`]+)?$")]
"""URL that can be written into a report as it is; empty if there is none."""


class ThreadMail(Message):
    """A mail of a series that was taken from an archive."""

    role: Literal["cover", "patch", "superseded", "reply"]
    """`superseded`: a patch that a later version sent again alone, as a reply; the later one is applied."""
    subject: Title
    author: Title
    date: datetime | None
    message_id: str = Field(max_length=1000)
    trailers: list[Title] = Field(default_factory=list, max_length=50)
    """Trailers that a reply gives, such as `Reviewed-by: Ada <ada@example.org>`."""
    url: Url = ""
    """Page of the mail in the archive."""


class ThreadSelection(Message):
    """The mails of a thread that make up one revision of a series, as the parser in the sandbox chose them."""

    revision: int = Field(ge=0, le=REVISION_LIMIT)
    revisions: list[int] = Field(max_length=1000)
    """All revisions that were found, in ascending order."""
    subject: Title
    """Title of the cover letter, else of the first patch."""
    author: Title
    series_key: Title
    """Key common to all revisions: the change-id, else the normalised subject."""
    mails: list[ThreadMail] = Field(max_length=800)
    """Cover letter, superseded patches, patches in order, and the first LISTED_REPLIES replies with trailers."""
    replies: int = Field(ge=0)
    """Number of replies that were taken: those with trailers, and those that lead to them."""
    notes: list[ShortText] = Field(default_factory=list, max_length=20)
    """What a reader should know of the choice, such as a revision that was sent twice."""
    source: SourceMail | None = None
    """The cover letter or first patch, as the mail that an answer replies to; null if nobody could be answered."""


class TakenThread(ThreadSelection):
    """A revision of a series as taken from an archive."""

    message_id: str = Field(max_length=1000)
    """The mail by which the series was found."""
    archive: Name
    url: Url
    """Page of the cover letter or first patch in the archive."""
    taken_at: datetime
    mbox: Artifact
    """The mails as they were taken, which the series is applied from."""


class ThreadSource(Message):
    """Where an apply job gets a series from that is found by Message-ID."""

    archives: list[Archive]
    """Archives to ask, in this order."""
    taken: TakenThread | None = None
    """The mails that an earlier attempt or submission took; they are used again."""
