"""Sources of the toy kernel: its head, and a series on top of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from wqlab_contracts.messages import ApplyJob, MboxSeries, Series, Source
from wqlab_contracts.specs import Tree
from wqlab_worker.apply.apply_series import apply
from wqlab_worker.apply.mirror import source_at, update_mirror
from wqlab_worker.workspace import Workspace

if TYPE_CHECKING:
    from conftest import Repository


@pytest.fixture
def base(tree: Tree, workspace: Workspace) -> Source:
    mirror = update_mirror(tree, workspace)
    return source_at(tree, mirror.git, mirror.head)


@pytest.fixture
def candidate(repository: Repository, tree: Tree, workspace: Workspace) -> Callable[[], Source]:
    """Mail the repository's last commit, reset the repository and return the applied candidate."""

    def mailed() -> Source:
        text = repository.mbox("-1")
        repository.git("reset", "--hard", "--quiet", "HEAD~1")
        result = apply(ApplyJob(submission_id=1, tree=tree, series=Series(mbox=MboxSeries(text=text))), workspace)
        assert result.candidate, result.failure
        return result.candidate

    return mailed
