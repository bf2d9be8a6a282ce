"""The mails of one revision of a series, as they are found in a thread and as they are chosen. Pure."""

from __future__ import annotations

import email.utils
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property

from ..messages import normalised_subject
from . import mbox
from .canonical_mails import ChosenMails
from .mail_threads import address_of
from .mbox import Mail

_FIRST_YEAR, _LAST_YEAR = 1970, 2200
NO_DATE = datetime(_FIRST_YEAR - 1, 1, 1, tzinfo=UTC)
"""Time of a mail without a possible date."""
_TRAILER = re.compile(
    r"^[ \t]*([A-Za-z][A-Za-z-]{1,40}-by:[ \t]*[^\n]{0,200}[^\s@<>]@[^\s@<>][^\n]{0,200})$",
    re.MULTILINE | re.IGNORECASE,
)


@dataclass(eq=False)
class Group:
    """Cover letter and patches that were sent together."""

    root: Mail
    version: int
    total: int | None
    """The N of [PATCH 1/N]; None for a single patch without a number."""
    covers: list[Mail] = field(default_factory=list)
    patches: list[Mail] = field(default_factory=list)
    superseded: list[Mail] = field(default_factory=list)
    """Patches of the version before that were sent again; b4 needs them to complete a partial version."""

    @property
    def heads(self) -> list[Mail]:
        return [*self.covers[:1], *self.patches]

    @cached_property
    def first(self) -> Mail:
        """The cover letter, else the patch with the lowest number."""
        return self.covers[0] if self.covers else self.first_patch

    @property
    def first_patch(self) -> Mail:
        """The patch with the lowest number; the cover letter if no patch is known."""
        return min(self.patches, key=position) if self.patches else self.covers[0]

    @cached_property
    def change_id(self) -> str | None:
        return mbox.change_id([mail.body for mail in self.heads])

    @property
    def title(self) -> str:
        return normalised_subject(self.first.title)

    @property
    def address(self) -> str:
        return address_of(self.first)

    @property
    def sent_at(self) -> datetime:
        return date_of(self.first_patch) or NO_DATE

    @property
    def missing(self) -> list[str]:
        """`2/3` for each missing patch; for a cover letter alone, all of them."""
        if self.total is None:
            return []
        known = {position(mail) for mail in self.patches}
        return [f"{number}/{self.total}" for number in range(1, self.total + 1) if number not in known]


@dataclass(frozen=True)
class Selection:
    """The mails of one revision of a series."""

    revision: int
    revisions: list[int]
    subject: str
    author: str
    series_key: str
    covers: list[Mail]
    """Contains the cover letter, if there is one."""
    patches: list[Mail]
    """In order."""
    superseded: list[Mail]
    """Patches of the version before that were sent again."""
    replies: list[Mail]
    notes: list[str]

    @property
    def mails(self) -> list[Mail]:
        return [*self.covers, *self.superseded, *self.patches, *self.replies]

    @property
    def chosen(self) -> ChosenMails:
        return ChosenMails(self.revision, self.patches, self.covers[0] if self.covers else None, self.replies)


def position(mail: Mail) -> int:
    """Return 2 for [PATCH 2/3], 1 for a patch without a number."""
    return mail.counter[0] if mail.counter else 1


def date_of(mail: Mail) -> datetime | None:
    """Return the time in the mail's Date header, in UTC; None if it is missing or impossible."""
    try:
        found = email.utils.parsedate_to_datetime(mail.date)
        found = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return found if _FIRST_YEAR <= found.year <= _LAST_YEAR else None


def trailers_of(mail: Mail) -> list[str]:
    """Return the trailers in a mail that name a person, at most 50."""
    return [" ".join(found[1].split()) for found in list(_TRAILER.finditer(mail.body))[:50]]
