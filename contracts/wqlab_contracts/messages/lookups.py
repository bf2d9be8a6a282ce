"""What server and workers say of a lookup: the branches of a repository, asked for by somebody who fills in a form."""

from __future__ import annotations

from pydantic import Field

from ..enums import Outcome
from . import Failure, GitObject, Message

BRANCH_LIMIT = 2_000


class GitBranch(Message):
    name: str = Field(max_length=250)
    commit: GitObject


class LookupJob(Message):
    url: str


class LookupResult(Message):
    outcome: Outcome
    failure: Failure | None = None
    branches: list[GitBranch] = Field(default_factory=list, max_length=BRANCH_LIMIT)
    head: str | None = None
    """The branch that the repository's HEAD names."""
    truncated: bool = False
    """It has more branches than these."""


class LookupClaim(Message):
    job: LookupJob
    fence: int
    expires_in_s: float


class FinishLookup(Message):
    fence: int
    result: LookupResult
