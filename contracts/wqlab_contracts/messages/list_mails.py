"""Messages about mails that a worker reads from a watched mailing list."""

from __future__ import annotations

import base64
from datetime import datetime
from typing import Annotated

from pydantic import Field, StringConstraints

from ..specs import Archive
from .base import Message, ShortText, Title

MAILS_A_READ = 1_000
"""Maximum number of mails that one read of a watched list returns; the next read goes on behind them."""
MAILS_OF_A_PREVIEW = 20_000
"""Maximum number of cover letters and patches that the preview of a watch looks at."""
PATH_LIMIT = 300
PATH_LENGTH = 300
SYMBOL_LIMIT = 300
"""Maximum number of symbols of a mail."""
REPLY_BYTES = 64 << 10
"""Size of the largest reply that may be a command; it has a few kilobytes."""
_MessageId = Annotated[str, StringConstraints(max_length=1000)]
_Path = Annotated[str, StringConstraints(max_length=PATH_LENGTH)]
_Symbol = Annotated[str, StringConstraints(max_length=100)]
_Commit = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]


class ListPosition(Message):
    """The last mail of a list that was read. public-inbox keeps mails as commits, in repositories that it numbers."""

    epoch: int = Field(ge=0, le=10_000)
    commit: _Commit | None = None
    """Null before the first mail of the epoch."""


class ListMail(Message):
    """A mail of a list, as far as watches look at it."""

    message_id: _MessageId
    in_reply_to: _MessageId | None = None
    references: list[_MessageId] = Field(default_factory=list, max_length=50)
    subject: Title
    author: Title
    date: datetime | None = None
    """By the sender's clock."""
    archived_at: datetime
    """By the archive's clock."""
    is_reply: bool = False
    has_patch: bool = False
    version: int = Field(default=1, ge=0, le=9999)
    number: int | None = Field(default=None, ge=0, le=9999)
    """M of [PATCH M/N]."""
    total: int | None = Field(default=None, ge=0, le=9999)
    paths: list[_Path] = Field(default_factory=list, max_length=PATH_LIMIT)
    """Files that the patch changes."""
    symbols: dict[_Path, list[_Symbol]] = Field(default_factory=dict, max_length=PATH_LIMIT)
    """Functions, variables, types and macros that the patch changes in them, at most SYMBOL_LIMIT in all."""
    asks: bool = False
    """True if it has a line `wqlab: test`; quoted lines do not count."""

    @property
    def is_head(self) -> bool:
        """Return True for a mail that is no reply: a patch, or what may be the cover letter of patches to come."""
        return not self.is_reply


class ListSource(Message):
    """What a worker reads of a watched list."""

    archive: Archive
    position: ListPosition | None = None
    """Null for a list that was never read."""
    since: datetime
    """With no position: the first mails are those that the archive has received since then."""


class ArchivedReply(Message):
    """A reply with a line `wqlab: ...`, as the archive has it: it may be a command about a mail of the lab."""

    message_id: _MessageId
    raw: Annotated[str, StringConstraints(max_length=4 * (REPLY_BYTES // 3 + 1))]
    """The mail (RFC 5322) in base64, unchanged, because its signature covers it."""

    @classmethod
    def of(cls, message_id: str, data: bytes) -> ArchivedReply:
        return cls(message_id=message_id, raw=base64.b64encode(data).decode())

    @property
    def data(self) -> bytes:
        """The bytes of the mail. Raises ValueError if `raw` is not base64."""
        return base64.b64decode(self.raw, validate=True)


class ListMails(Message):
    """Mails behind a position of a list, in the order in which the archive received them."""

    position: ListPosition | None
    """Position behind these mails; null if the list has none yet."""
    mails: list[ListMail] = Field(default_factory=list, max_length=MAILS_OF_A_PREVIEW)
    replies: list[ArchivedReply] = Field(default_factory=list, max_length=MAILS_A_READ)
    """Those of the mails that may be commands, of at most REPLY_BYTES each."""
    removed: list[_MessageId] = Field(default_factory=list, max_length=MAILS_OF_A_PREVIEW)
    """Mails that the archive removed."""
    unread: int = Field(default=0, ge=0)
    """Number of mails that were too large, or no mails."""
    is_complete: bool = True
    """False if the list has more mails already."""
    notes: list[ShortText] = Field(default_factory=list, max_length=10)
