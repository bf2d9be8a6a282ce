"""REST resources of a series before it is submitted: what an mbox holds, what branches a repository has."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Literal

from pydantic import Field

from ..enums import JobState, Outcome
from ..messages import Failure, Message
from ..messages.lookups import GitBranch


class SeriesDefect(StrEnum):
    """What can be wrong with an mbox."""

    NOT_AN_MBOX = "not_an_mbox"
    NO_PATCH = "no_patch"
    """Mails, but none with a diff."""
    MISSING_PATCH = "missing_patch"
    SEVERAL_SERIES = "several_series"
    """More than one series of one version: which is meant cannot be told."""
    TOO_LARGE = "too_large"
    UNREADABLE_MAIL = "unreadable_mail"
    NO_BASE_COMMIT = "no_base_commit"
    OLDER_VERSION = "older_version"
    """The mbox holds more than one version; the newest is taken."""
    MERGED_VERSIONS = "merged_versions"
    """Patches that the newest version lacks are taken from the one before."""
    BINARY_PATCH = "binary_patch"


class SeriesProblem(Message):
    defect: SeriesDefect
    severity: Literal["error", "warning"]
    """`error`: a submission of this mbox would be refused or would fail to apply."""
    detail: str
    """What is wrong and what to do."""


class FileChange(Message):
    path: str
    """Its name after the patch; for a deletion the one before."""
    old_path: str | None = None
    """Set when the patch renames or copies it."""
    status: Literal["added", "changed", "deleted", "renamed", "copied"]
    insertions: int
    deletions: int
    binary: bool = False


class SeriesPatch(Message):
    position: int
    """From 1, in the order they are applied."""
    subject: str
    """Without `[PATCH v2 1/3]`."""
    author: str
    """`Name <address>`; the in-body `From:` where there is one."""
    date: datetime | None
    message_id: str | None
    message: str
    """The commit message; at most 10,000 characters."""
    files: list[FileChange]
    insertions: int
    deletions: int


class CoverLetter(Message):
    subject: str
    text: str
    """At most 20,000 characters."""


class SeriesInspection(Message):
    """What an mbox holds, read and not run. The worker that applies it chooses version and order by the same rules."""

    subject: str
    """What the submission will be called: the cover letter's subject, else the first patch's."""
    version: int
    series_key: str
    """Groups versions: the change-id, else the folded subject."""
    change_id: str | None
    authors: list[str]
    """Each once, in order of their first patch."""
    cover: CoverLetter | None
    patches: list[SeriesPatch]
    base_commit: str | None
    files: int
    """Different files that the patches touch."""
    insertions: int
    deletions: int
    mails: int
    """Messages in the mbox, replies and older versions included."""
    problems: list[SeriesProblem]
    usable: bool
    """No problem is an error."""


class GitBranches(Message):
    """The branches of a repository, as a worker saw them; ask again while `state` is not `finished`."""

    url: str
    state: JobState
    outcome: Outcome | None
    failure: Failure | None
    branches: list[GitBranch] = Field(default_factory=list)
    """By name."""
    head: str | None = None
    """The branch that the repository's HEAD names."""
    truncated: bool = False
    """It has more branches than are listed; any can still be written by hand."""
    looked_at: datetime | None
    """When the worker asked; an answer is used again for a minute."""
