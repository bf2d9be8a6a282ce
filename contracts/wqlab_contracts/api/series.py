"""REST resources of a series before submission: inspect an mbox, list a repository's branches."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Literal

from pydantic import Field

from ..enums import JobState, Outcome
from ..messages import Failure, GitObject, Message
from ..messages.lookups import GitBranch


class SeriesDefect(StrEnum):
    """Defects of an mbox."""

    NOT_AN_MBOX = "not_an_mbox"
    NO_PATCH = "no_patch"
    """Mails, but none with a diff."""
    MISSING_PATCH = "missing_patch"
    SEVERAL_SERIES = "several_series"
    """More than one series of one version: the intended one is ambiguous."""
    TOO_LARGE = "too_large"
    UNREADABLE_MAIL = "unreadable_mail"
    NO_BASE_COMMIT = "no_base_commit"
    OLDER_VERSION = "older_version"
    """The mbox holds more than one version; the newest is taken."""
    MERGED_VERSIONS = "merged_versions"
    """Patches that the newest version lacks are taken from the one before."""
    BINARY_PATCH = "binary_patch"


class SeriesProblem(Message):
    """A problem of an mbox."""

    defect: SeriesDefect
    severity: Literal["error", "warning"]
    """`error`: a submission of this mbox would be rejected or would fail to apply."""
    detail: str
    """The problem and how to fix it."""


class FileChange(Message):
    """Change of one file."""

    path: str
    """Name after the patch; for a deletion the name before."""
    old_path: str | None = None
    """Previous name, if the patch renames or copies the file."""
    status: Literal["added", "changed", "deleted", "renamed", "copied"]
    insertions: int
    deletions: int
    binary: bool = False
    changes_code: bool = True
    """False if only comments, `#include`, `MODULE_*()`, messages, white space or unused arguments of C files change."""
    symbols: list[str] = Field(default_factory=list)
    """Functions, variables, types and macros whose definitions the patch changes, in a C file; at most 200."""


class SeriesPatch(Message):
    """One patch of a series."""

    position: int
    """Position from 1, in the order of application."""
    subject: str
    """Without `[PATCH v2 1/3]`."""
    author: str
    """`Name <address>`, from the `From:` line in the body if there is one."""
    date: datetime | None
    message_id: str | None
    message: str
    """The commit message; at most 10,000 characters."""
    files: list[FileChange]
    insertions: int
    deletions: int


class CoverLetter(Message):
    """Cover letter of a series."""

    subject: str
    text: str
    """At most 20,000 characters."""


class SeriesInspection(Message):
    """Content of an mbox, parsed and not applied.

    The worker that applies it chooses version and order by the same rules."""

    subject: str
    """Title of the submission: subject of the cover letter, else of the first patch."""
    version: int
    series_key: str
    """Key common to all versions: the change-id, else the normalised subject."""
    change_id: str | None
    authors: list[str]
    """Authors in order of their first patch, each once."""
    cover: CoverLetter | None
    patches: list[SeriesPatch]
    base_commit: str | None
    files: int
    """Number of files that the patches change."""
    insertions: int
    deletions: int
    mails: int
    """Number of messages in the mbox, including replies and older versions."""
    problems: list[SeriesProblem]
    usable: bool
    """True if no problem is an error."""


class GitBranches(Message):
    """Branches of a repository, listed by a worker; repeat the request until `state` is `finished`."""

    url: str
    state: JobState
    outcome: Outcome | None
    failure: Failure | None
    branches: list[GitBranch] = Field(default_factory=list)
    """Ordered by name."""
    head: str | None = None
    """Branch that HEAD of the repository points to."""
    truncated: bool = False
    """True if the repository has more branches than listed; others can still be entered by hand."""
    looked_at: datetime | None
    """Time of the worker's query; a result is reused for one minute."""


class BranchInspection(Message):
    """The patches that a submission of a git branch would measure.

    A worker reads them; until it is done, `state` is not `finished`: repeat the request then.
    """

    url: str
    ref: str
    base: str | None
    """Base that the request named. Null if it named none: then the base is the merge base of branch and tree."""
    tree: str
    state: JobState
    progress: str
    """What the worker does; empty before and after its work."""
    outcome: Outcome | None
    failure: Failure | None
    base_commit: GitObject | None
    commit: GitObject | None
    """Last commit of the branch when it was read."""
    inspection: SeriesInspection | None
    """Without merges, and with the commits as patches; `base_commit` is the base."""
    looked_at: datetime | None
    """Time of the worker's answer; it is reused for one minute."""
