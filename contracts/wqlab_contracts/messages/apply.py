"""From what was submitted to a base commit and a source tree."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ..enums import Outcome
from ..specs import Tree
from .base import Artifact, Failure, GitObject, Message
from .submission import Series


class ApplyJob(Message):
    submission_id: int
    tree: Tree
    series: Series | None
    """None for a settings study: only the tree's head is resolved."""
    toolchain: str = "gcc"
    """The recipe's compiler command; the answer says which exact one the worker has."""


class PatchSummary(Message):
    subject: str
    author: str
    message_id: str | None = None
    insertions: int = 0
    deletions: int = 0
    files: list[str] = Field(default_factory=list)


class CheckpatchFinding(Message):
    severity: Literal["error", "warning", "check"]
    text: str
    where: str = ""


class Source(Message):
    """One exact source tree: a commit, or a series on top of it. `tree_oid` is its content."""

    tree: Tree
    base_commit: GitObject
    tree_oid: GitObject
    commit: GitObject
    """The commit whose tree is `tree_oid`; for a candidate it lives in `bundle`."""
    bundle: Artifact | None = None
    """git bundle with everything that the tree's own history lacks; None when `commit` is in the tree."""
    release: str
    """`make kernelversion` of the tree, for people."""


class ApplyResult(Message):
    outcome: Outcome
    failure: Failure | None = None
    baseline: Source | None = None
    candidate: Source | None = None
    title: str = ""
    series_key: str = ""
    """Groups versions of one series: its change-id, else its normalised subject."""
    patches: list[PatchSummary] = Field(default_factory=list)
    checkpatch: list[CheckpatchFinding] = Field(default_factory=list)
    series_mbox: Artifact | None = None
    toolchain: str = ""
    """Exact identity of compiler and linker; part of every build key, so that two kernels that are compared were
    never built by different compilers."""
