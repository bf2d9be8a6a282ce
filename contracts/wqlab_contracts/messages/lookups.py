"""Messages of a lookup: a worker lists branches and tags of a repository, for the submission form or to watch them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from ..enums import JobKind, Outcome
from .base import Failure, GitObject, Message

BRANCH_LIMIT = 2_000

RefPattern = Annotated[
    str, StringConstraints(pattern=r"^refs/(heads|tags)/[A-Za-z0-9_*?][A-Za-z0-9_./+*?-]*$", max_length=250)
]
"""Full name of a branch or tag; `*` and `?` of a tag match any characters."""


class GitBranch(Message):
    """One branch or tag of a repository."""

    name: str = Field(max_length=250)
    commit: GitObject


class LookupJob(Message):
    """Job that lists branches and tags of a repository."""

    kind: Literal[JobKind.LIST_BRANCHES] = JobKind.LIST_BRANCHES
    url: str
    refs: list[RefPattern] = Field(default_factory=list, max_length=40)
    """What to list: `refs/heads/NAME` and `refs/tags/PATTERN`; empty: all branches and no tags."""
    private_network: bool = False
    """True for a repository that the operator names, which may be in the lab's own network."""


class LookupResult(Message):
    """Branches and tags of a repository."""

    kind: Literal[JobKind.LIST_BRANCHES] = JobKind.LIST_BRANCHES
    outcome: Outcome
    failure: Failure | None = None
    branches: list[GitBranch] = Field(default_factory=list, max_length=BRANCH_LIMIT)
    tags: list[GitBranch] = Field(default_factory=list, max_length=BRANCH_LIMIT)
    """Tags that were asked for, each with the commit that it names."""
    head: str | None = None
    """Branch that HEAD of the repository points to."""
    truncated: bool = False
    """True if the repository has more branches or tags than listed."""
