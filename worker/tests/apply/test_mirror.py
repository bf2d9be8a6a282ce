"""Mirrors of kernel trees."""

from __future__ import annotations

from pathlib import Path

import pytest

from wqlab_contracts.enums import ErrorKind
from wqlab_contracts.specs import Tree
from wqlab_worker.apply.mirror import update_mirror
from wqlab_worker.failures import InfrastructureError
from wqlab_worker.workspace import Workspace


def test_failed_fetch_of_tree_is_an_infrastructure_error(workspace: Workspace, tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError) as caught:
        update_mirror(Tree(name="gone", summary="", url=str(tmp_path / "gone")), workspace)
    assert caught.value.failure.kind is ErrorKind.INFRASTRUCTURE


def test_mirror_follows_its_tree(tree: Tree, workspace: Workspace, repository) -> None:
    first = update_mirror(tree, workspace).head
    repository.edit("kernel/fork.c", "for (;;)", "while (1)")
    second = repository.commit("fork: go on")
    assert update_mirror(tree, workspace).head == second != first
