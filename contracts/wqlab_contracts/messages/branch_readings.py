"""Messages of a branch reading: a worker fetches a git branch and shows what its patches change."""

from __future__ import annotations

from ..api.series import SeriesInspection
from ..enums import Outcome
from ..specs import Tree
from .base import Failure, GitObject, Message
from .submission import GitSeries


class BranchReadingJob(Message):
    """Job of a worker: fetch a branch and list what its patches change."""

    series: GitSeries
    tree: Tree
    """Tree with which the branch is compared."""


class BranchReadingResult(Message):
    """Patches that a submission of the branch would measure."""

    outcome: Outcome
    failure: Failure | None = None
    base: GitObject | None = None
    commit: GitObject | None = None
    """Id of the branch's last commit when the worker fetched it."""
    inspection: SeriesInspection | None = None


class BranchReadingClaim(Message):
    """Claim of a branch reading."""

    job: BranchReadingJob
    fence: int
    expires_in_s: float


class FinishBranchReading(Message):
    """Final message of a branch reading."""

    fence: int
    result: BranchReadingResult
