"""Apply job: resolve the base commit and apply the series."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from ..enums import BETWEEN, JobKind, Outcome
from ..specs import Name, Tree
from .base import Artifact, Failure, GitObject, Message
from .changed_lines import CHANGED_LIMIT, ChangedLines
from .submission import Series
from .threads import TakenThread, ThreadSource

TOUCHED_LIMIT = 1000
"""Maximum number of functions in a message that a series changes."""

DIFF_LIMIT = 200_000
"""Most characters of a series' patch that a report shows."""

WALK_LIMIT = len(BETWEEN) + 1
"""Most patches of a series that is walked: a block has one boot more."""


OTHERS_LIMIT = 16
"""Most other trees that a series is looked for in."""


class ApplyJob(Message):
    """Job that applies a series to a tree."""

    kind: Literal[JobKind.APPLY] = JobKind.APPLY
    submission_id: int
    tree: Tree
    series: Series | None
    """None for a settings study: only the head of the tree is resolved."""
    seen: list[GitObject] = Field(default_factory=list, max_length=4)
    """Commits that the lab has seen as heads of a watched tree, so that they may be fetched by their id: those of the
    pair, and the ends of the bisection that the pair is of."""
    thread: ThreadSource | None = None
    """Where to get the series from, if it is given by a Message-ID."""
    others: list[Tree] = Field(default_factory=list, max_length=OTHERS_LIMIT)
    """Other trees of the lab: a newer one may have the series already. None is downloaded for that."""
    walk: bool = False
    """True if the result needs the source of each patch, since the series is measured patch by patch."""
    toolchain: str = "gcc"
    """Compiler command of the recipe; the result identifies the worker's compiler exactly."""


class PatchSummary(Message):
    """One patch of a series."""

    subject: str
    author: str
    message_id: str | None = None
    insertions: int = 0
    deletions: int = 0
    files: list[str] = Field(default_factory=list)


class CheckpatchFinding(Message):
    """One finding of checkpatch.pl."""

    severity: Literal["error", "warning", "check"]
    text: str
    where: str = ""


class Source(Message):
    """One source tree: a base commit, or a series applied to it. `tree_oid` identifies its content."""

    tree: Tree
    base_commit: GitObject
    tree_oid: GitObject
    commit: GitObject
    """Commit whose tree is `tree_oid`; a candidate's commit is in `bundle`."""
    bundle: Artifact | None = None
    """git bundle with the objects that the tree's repository lacks; None if `commit` is in the tree."""
    release: str
    """Output of `make kernelversion`, for display."""


class CommitRange(Message):
    """How two commits of a tree are related."""

    ahead: int = Field(ge=0)
    """Number of commits that only the candidate has, merges included."""
    behind: int = Field(ge=0)
    """Number of commits that only the baseline has; 0 if the candidate descends from it."""


EARLIER_LIMIT = 32
"""Maximum number of commits of the tree that are listed as possible earlier versions of a series."""


class EarlierCommit(Message):
    """A commit of the tree that may be the same change as a patch of the series."""

    patch: int = Field(ge=1)
    """Number of the series' patch that the commit resembles; the first is 1."""
    commit: GitObject
    date: str = Field(max_length=10)
    """When it was committed, as `2024-11-18`."""
    subject: str = Field(max_length=500)
    same: Literal["patch-id", "subject"]
    """What the commit and the patch share: the patch-id, if they make the same change, or the subject."""
    in_base: bool = False
    """True if the commit is in the base, False if it is only in later commits of the tree's branch."""


DIFFERENT_LIMIT = 20
"""Maximum number of functions of a series that are named because a newer tree has changed them."""


class NewerTree(Message):
    """What another tree of the lab, newer than the base, has of a series."""

    tree: Name
    release: str = Field(max_length=100)
    has_series: bool
    """True if the whole series can be reverted from it, so that it has every change."""
    differs: list[Annotated[str, StringConstraints(max_length=160)]] = Field(
        default_factory=list, max_length=DIFFERENT_LIMIT
    )
    """Functions that the series changes and that are not as in the base; empty if it has the series."""


class PriorArt(Message):
    """Commits and trees of the lab that have a patch of the series, or all of it, already."""

    found: list[EarlierCommit] = Field(default_factory=list, max_length=EARLIER_LIMIT)
    skipped: str = Field(default="", max_length=300)
    """Why no history was searched; empty if it was, so that only then an empty `found` means that there is none."""
    newer: list[NewerTree] = Field(default_factory=list, max_length=OTHERS_LIMIT)
    """Trees newer than the base that the worker has; those that it does not have are absent."""


class ApplyResult(Message):
    """Result of an apply job."""

    kind: Literal[JobKind.APPLY] = JobKind.APPLY
    outcome: Outcome
    failure: Failure | None = None
    baseline: Source | None = None
    candidate: Source | None = None
    title: str = ""
    series_key: str = ""
    """Key common to all versions of a series: its change-id, else its normalised subject."""
    patches: list[PatchSummary] = Field(default_factory=list)
    patch_sources: list[Source] = Field(default_factory=list, max_length=WALK_LIMIT)
    """The source after each patch, in order, if the series is walked; the last is `candidate`."""
    checkpatch: list[CheckpatchFinding] = Field(default_factory=list)
    checkpatch_skipped: str = Field(default="", max_length=300)
    """Why checkpatch did not check every patch; empty if it did."""
    series_mbox: Artifact | None = None
    range: CommitRange | None = None
    """How candidate and baseline are related, if the series is a pair of commits."""
    thread: TakenThread | None = None
    """The mails that were taken, if the series is given by a Message-ID; also of a series that does not apply."""
    prior_art: PriorArt | None = None
    """Commits that may be the same change as a patch; None if an earlier version of the worker applied the series."""
    base_package: str = Field(default="", max_length=200)
    """Debian source package and version that the base was imported from; empty for a commit of a repository."""
    touched: list[Annotated[str, StringConstraints(max_length=160)]] = Field(
        default_factory=list, max_length=TOUCHED_LIMIT
    )
    """Names of the functions that the series changes."""
    changed: list[ChangedLines] = Field(default_factory=list, max_length=CHANGED_LIMIT)
    """Lines that the whole series adds and removes."""
    diff: str = Field(default="", max_length=DIFF_LIMIT)
    """Diff of the whole series; a long one is truncated and ends with a mark."""
    toolchain: str = ""
    """Exact identity of compiler and linker. It is part of each build key, so that compared kernels always have the
    same compiler."""
