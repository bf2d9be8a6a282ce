"""Messages of a lookup: a worker lists the branches of a repository for the submission form."""

from __future__ import annotations

from pydantic import Field

from ..enums import Outcome
from . import Failure, GitObject, Message

BRANCH_LIMIT = 2_000


class GitBranch(Message):
    """One branch of a repository."""

    name: str = Field(max_length=250)
    commit: GitObject


class LookupJob(Message):
    """Job that lists the branches of a repository."""

    url: str


class LookupResult(Message):
    """Branches of a repository."""

    outcome: Outcome
    failure: Failure | None = None
    branches: list[GitBranch] = Field(default_factory=list, max_length=BRANCH_LIMIT)
    head: str | None = None
    """Branch that HEAD of the repository points to."""
    truncated: bool = False
    """True if the repository has more branches than listed."""


class LookupClaim(Message):
    """Claim of a lookup."""

    job: LookupJob
    fence: int
    expires_in_s: float


class FinishLookup(Message):
    """Final message of a lookup."""

    fence: int
    result: LookupResult
