"""Mirrors of kernel trees."""

from __future__ import annotations

from pathlib import Path

import pytest

from wqlab_contracts.enums import ErrorKind
from wqlab_contracts.specs import Tree
from wqlab_worker.apply.mirror import mirror_folder, update_mirror
from wqlab_worker.failures import InfrastructureError, UserError
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


def test_each_url_has_a_mirror_of_its_own(tree: Tree, workspace: Workspace, tmp_path: Path) -> None:
    """The tree of a user's URL shares nothing with the operator's tree whose name it has."""
    own = update_mirror(tree, workspace)
    assert own.git.directory == mirror_folder(tree, workspace) == workspace.mirrors / "toy.git"
    users = tree.model_copy(update={"origin": "user"})
    moved = tree.model_copy(update={"url": "https://git.example.org/other.git"})
    users_other = moved.model_copy(update={"origin": "user"})
    folders = {mirror_folder(each, workspace) for each in (tree, users, moved, users_other)}
    assert len(folders) == 4
    assert update_mirror(users, workspace).head == own.head
    assert len(list(workspace.mirrors.glob("*.git"))) == 2


def test_the_url_of_a_user_is_fetched_from_public_addresses_only(workspace: Workspace) -> None:
    with pytest.raises(UserError, match="is the private address"):
        update_mirror(Tree(name="toy", summary="", url="git://127.0.0.1:1/linux", origin="user"), workspace)
    with pytest.raises(InfrastructureError, match="cannot fetch"):
        update_mirror(Tree(name="toy", summary="", url="git://127.0.0.1:1/linux"), workspace)
