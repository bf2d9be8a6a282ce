"""Messages of a branch reading: a worker fetches a git branch and shows what its patches change."""

from __future__ import annotations

from typing import Literal

from ..api.series import SeriesInspection
from ..enums import JobKind, Outcome
from ..specs import Tree
from .base import Failure, GitObject, Message
from .submission import GitSeries


class BranchReadingJob(Message):
    """Job of a worker: fetch a branch and list what its patches change."""

    kind: Literal[JobKind.READ_BRANCH] = JobKind.READ_BRANCH
    series: GitSeries
    tree: Tree
    """Tree with which the branch is compared."""


class BranchReadingResult(Message):
    """Patches that a submission of the branch would measure."""

    kind: Literal[JobKind.READ_BRANCH] = JobKind.READ_BRANCH
    outcome: Outcome
    failure: Failure | None = None
    base: GitObject | None = None
    commit: GitObject | None = None
    """Id of the branch's last commit when the worker fetched it."""
    inspection: SeriesInspection | None = None
