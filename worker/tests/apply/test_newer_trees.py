"""Whether a newer tree of the lab has a series already, or has changed the functions that it changes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from wqlab_contracts.messages import ApplyJob
from wqlab_contracts.messages.apply import NewerTree
from wqlab_contracts.specs import Tree
from wqlab_worker.apply.apply_series import apply
from wqlab_worker.apply.mirror import update_mirror
from wqlab_worker.workspace import Workspace

from .submissions import mbox, passed

if TYPE_CHECKING:
    from conftest import Repository

FILE = "kernel/workqueue.c"


@pytest.fixture
def newer(repository: Repository, workspace: Workspace) -> Tree:
    """A tree whose branch is one release ahead, mirrored on this machine when a test says so."""
    repository.git("branch", "--quiet", "next")
    return Tree(name="newer", summary="a newer toy", url=str(repository.path), branch="next")


def commit_to_next(repository: Repository, *edits: tuple[str, str, str]) -> None:
    repository.git("switch", "--quiet", "next")
    for name, old, new in edits:
        repository.edit(name, old, new)
    repository.commit("next: all in one")
    repository.git("switch", "--quiet", "master")


def found(tree: Tree, workspace: Workspace, text: str, *others: Tree) -> list[NewerTree]:
    job = ApplyJob(submission_id=1, tree=tree, series=mbox(text), others=list(others))
    prior = passed(apply(job, workspace)).prior_art
    assert prior is not None
    return prior.newer


RELEASE = ("Makefile", "PATCHLEVEL = 12", "PATCHLEVEL = 13")
SERIES = ((FILE, "512", "1024"), (FILE, "return 2;", "return 3; // more"))


def test_a_tree_with_every_change_has_the_series(
    tree: Tree, newer: Tree, workspace: Workspace, repository: Repository, series_of_two: str
) -> None:
    commit_to_next(repository, RELEASE, *SERIES)
    update_mirror(newer, workspace)
    (one,) = found(tree, workspace, series_of_two, newer)
    assert (one.tree, one.has_series, one.differs) == ("newer", True, [])
    assert one.release.startswith("6.13.")


def test_a_function_that_was_changed_otherwise_is_named(
    tree: Tree, newer: Tree, workspace: Workspace, repository: Repository, series_of_two: str
) -> None:
    commit_to_next(repository, RELEASE, (FILE, "return 2;", "return 4;"))
    update_mirror(newer, workspace)
    (one,) = found(tree, workspace, series_of_two, newer)
    assert (one.has_series, one.differs) == (False, ["nr_idle"])


def test_what_the_tree_changes_elsewhere_is_not_named(
    tree: Tree, newer: Tree, workspace: Workspace, repository: Repository, series_of_two: str
) -> None:
    commit_to_next(repository, RELEASE)
    update_mirror(newer, workspace)
    (one,) = found(tree, workspace, series_of_two, newer)
    assert (one.has_series, one.differs) == (False, [])


def test_a_tree_of_the_same_release_is_not_newer(
    tree: Tree, newer: Tree, workspace: Workspace, repository: Repository, series_of_two: str
) -> None:
    commit_to_next(repository, *SERIES)
    update_mirror(newer, workspace)
    assert found(tree, workspace, series_of_two, newer) == []


def test_a_tree_without_a_mirror_is_not_downloaded(
    tree: Tree, newer: Tree, workspace: Workspace, repository: Repository, series_of_two: str
) -> None:
    commit_to_next(repository, RELEASE, *SERIES)
    package = Tree(name="linux-9.9", summary="x", debian_source="linux-source-9.9")
    assert found(tree, workspace, series_of_two, newer, package) == []
    assert not Path(workspace.mirrors / "newer.git").exists()
