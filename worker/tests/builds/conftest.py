"""The toy kernel's head, and what a series on top of it becomes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from wqlab_contracts.messages import ApplyJob, MboxSeries, Series, Source
from wqlab_contracts.specs import Tree
from wqlab_worker.apply.apply_series import apply
from wqlab_worker.apply.mirror import source_at, update_mirror
from wqlab_worker.workspace import Workspace


@pytest.fixture
def base(tree: Tree, workspace: Workspace) -> Source:
    mirror = update_mirror(tree, workspace)
    return source_at(tree, mirror.git, mirror.head)


@pytest.fixture
def candidate(repository, tree: Tree, workspace: Workspace) -> Callable[[], Source]:
    """What the repository's last commit becomes when it is mailed; the repository goes back to where it was."""

    def mailed() -> Source:
        text = repository.mbox("-1")
        repository.git("reset", "--hard", "--quiet", "HEAD~1")
        result = apply(ApplyJob(submission_id=1, tree=tree, series=Series(mbox=MboxSeries(text=text))), workspace)
        assert result.candidate, result.failure
        return result.candidate

    return mailed
