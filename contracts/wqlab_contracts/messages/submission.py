"""Content of a submission, and its event stream."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field, StringConstraints, field_validator

from ..enums import EventKind
from ..jsontypes import JSON_NUMBER, JsonFloat, JsonInt
from ..message_ids import find_message_id, find_series
from ..specs import Name
from .base import GitObject, Message
from .threads import REVISION_LIMIT

TEXT_LIMIT = 20_000_000
"""Maximum length (characters) of an mbox."""


class GitSeries(Message):
    """A series as a git branch."""

    url: str
    ref: str
    base: str | None = None


class MboxSeries(Message):
    """A series as an mbox."""

    text: str = Field(max_length=TEXT_LIMIT)

    @field_validator("text", mode="before")
    @classmethod
    def _reject_nul(cls, value: object) -> object:
        """Raise ValueError for a NUL byte: it cannot be stored, and a patch must not be altered."""
        if isinstance(value, str) and "\0" in value:
            raise ValueError(f"a NUL byte at character {value.index(chr(0))}: patches are text; use git format-patch")
        return value


class ThreadSeries(Message):
    """A series as a thread of a mail archive, of which one revision is taken with the trailers of its replies, or as a
    series of a Patchwork."""

    message_id: Annotated[str, Field(min_length=1, max_length=2000)]
    """Message-ID of any mail of the thread. A URL of the mail in any archive is accepted, and its id is stored. A
    series of a Patchwork is named by its URL, or by its number if the lab knows one Patchwork."""
    revision: Annotated[int, Field(ge=1, le=REVISION_LIMIT), JSON_NUMBER] | None = None
    """Revision to take, 2 for `[PATCH v2]`; null: the latest that the archive has."""

    @field_validator("message_id")
    @classmethod
    def _find_message_id(cls, value: str) -> str:
        found = find_message_id(value) or find_series(value)
        if found is None:
            raise ValueError(
                f"there is no Message-ID in {value[:200]!r}: write the part between < and >, a URL of the mail, or "
                "that of a Patchwork's series"
            )
        return found

    @property
    def patchwork_series(self) -> str | None:
        """Address of a series of a Patchwork; None for a Message-ID."""
        return None if "@" in self.message_id else self.message_id


class CommitPair(Message):
    """Two commits of the tree's own repository, such as two heads of a branch; the baseline need not be an ancestor."""

    baseline: GitObject
    candidate: GitObject
    ref: Annotated[str, Field(min_length=1, max_length=250)]
    """Branch or tag of the tree's repository that has the candidate. The baseline must be on it too, or on the tree's
    branch; the lab also finds commits that it has seen as heads of a watched tree."""
    reverted: GitObject | None = None
    """Commit before the candidate that is reverted on top of it; null: the candidate is measured as it is."""


class Series(Message):
    """A patch series: exactly one of `git`, `mbox`, `thread` and `commits`."""

    git: GitSeries | None = None
    mbox: MboxSeries | None = None
    thread: ThreadSeries | None = None
    commits: CommitPair | None = None


class Target(Message):
    """A plan to run on a device type."""

    plan: Name
    device_type: Annotated[str, StringConstraints(pattern=r"^([A-Za-z0-9][A-Za-z0-9_.-]{0,63})?$")] = ""
    """Required, but empty in a request with a sweep, which determines the device types."""
    scenarios: list[Name] | None = None
    """Scenarios to measure; None: those of the plan's profile."""
    settings: list[str] | None = None
    """Canonical settings to measure; None: those of the plan's profile."""
    parameters: dict[str, str | JsonInt | JsonFloat] = Field(default_factory=dict)
    """Parameters that override those of the profile."""
    device: Name | None = None
    """Device on which to measure, such as that of an earlier submission; null: any of the type. It is waited for; if it
    is quarantined or removed meanwhile, another of the type is taken."""


class Event(Message):
    """One entry of a submission's event stream; `seq` counts per submission from 1."""

    seq: int
    at: datetime
    kind: EventKind
    build_id: int | None = None
    run_id: int | None = None
    boot_id: int | None = None
    data: dict[str, Any] = Field(default_factory=dict)


_SUBJECT_PREFIX = re.compile(r"^\s*(?:\[[^\]]*\]\s*|(?:re|fwd?):\s*)+", re.IGNORECASE)


def normalised_subject(subject: str) -> str:
    """Return a patch subject in lower case without `[PATCH v2 0/3]` and `Re:`; equal for all versions of a series."""
    return " ".join(_SUBJECT_PREFIX.sub("", subject).split()).casefold()
