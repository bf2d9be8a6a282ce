"""Messages of a commit list: a worker lists the commits of a tree between a good and a bad one."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from ..enums import JobKind, Outcome
from ..specs import Tree
from .base import Failure, GitObject, Message, cut

COMMIT_LIMIT = 4096
"""Most commits of a list."""
SUBJECT_LIMIT = 200
Revision = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._/@+-]*$", min_length=1, max_length=250)]
"""Branch, tag or commit."""


class ListedCommit(Message):
    """One commit of a list."""

    commit: GitObject
    parents: list[GitObject] = Field(max_length=64)
    subject: Annotated[str, Field(max_length=SUBJECT_LIMIT)]
    author: Annotated[str, Field(max_length=SUBJECT_LIMIT)]

    @property
    def is_merge(self) -> bool:
        return len(self.parents) > 1


class CommitListJob(Message):
    """Job that lists the commits of `good..bad` along first parents."""

    kind: Literal[JobKind.LIST_COMMITS] = JobKind.LIST_COMMITS
    tree: Tree
    good: Revision
    bad: Revision
    ref: Revision | None = None
    """Branch or tag of the tree's repository that has both; null: `bad` if it is one, else the tree's branch."""
    side_of_merge: bool = False
    """True if `good` and `bad` are the parents of a merge: the list then begins at their merge base."""
    seen: list[GitObject] = Field(default_factory=list, max_length=2)
    """Commits that the lab has seen as heads of a watched tree, so that they may be fetched by their id."""


class CommitListResult(Message):
    """The commits, oldest first."""

    kind: Literal[JobKind.LIST_COMMITS] = JobKind.LIST_COMMITS
    outcome: Outcome
    failure: Failure | None = None
    good: GitObject | None = None
    """The good commit; of the side of a merge, the merge base."""
    bad: GitObject | None = None
    ref: str = ""
    """Branch or tag that has the commits."""
    commits: list[ListedCommit] = Field(default_factory=list, max_length=COMMIT_LIMIT)


def short(text: str) -> str:
    """Return a subject or an author as a list has it."""
    return cut(text, SUBJECT_LIMIT)
