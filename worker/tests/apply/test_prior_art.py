"""Commits of the tree that a series may be already: in the base, after it, or nowhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from wqlab_contracts.specs import Tree
from wqlab_worker.apply import prior_art
from wqlab_worker.failures import UserError
from wqlab_worker.workspace import Workspace

from .submissions import mbox, passed, submit

if TYPE_CHECKING:
    from conftest import Repository

RAISE = "workqueue: raise max_active"


def found(tree: Tree, workspace: Workspace, text: str) -> list[tuple[int, str, str, bool]]:
    result = passed(submit(tree, workspace, mbox(text)))
    assert result.prior_art is not None
    assert result.prior_art.skipped == ""
    return [(each.patch, each.commit, each.same, each.in_base) for each in result.prior_art.found]


def test_a_new_series_has_no_prior_art(tree: Tree, workspace: Workspace, series_of_two: str) -> None:
    assert found(tree, workspace, series_of_two) == []


def test_a_change_after_the_base_is_found_by_its_patch_id(
    tree: Tree, workspace: Workspace, repository: Repository, series_of_two: str
) -> None:
    """The series names its base, and the tree's branch has the first patch since, under another subject."""
    repository.edit("kernel/workqueue.c", "512", "1024")
    repository.commit("workqueue: more of them")
    taken = repository.git("rev-parse", "HEAD")
    assert found(tree, workspace, series_of_two) == [(1, taken, "patch-id", False)]


def test_a_change_with_the_same_subject_is_told_once(
    tree: Tree, workspace: Workspace, repository: Repository, series_of_two: str
) -> None:
    repository.edit("kernel/workqueue.c", "512", "1024")
    repository.commit(RAISE)
    assert found(tree, workspace, series_of_two) == [(1, repository.git("rev-parse", "HEAD"), "patch-id", False)]


@pytest.mark.parametrize("in_base", [True, False])
def test_another_change_with_the_same_subject_is_found(
    tree: Tree, workspace: Workspace, repository: Repository, in_base: bool, request: pytest.FixtureRequest
) -> None:
    text = "" if in_base else request.getfixturevalue("series_of_two")
    repository.edit("kernel/workqueue.c", "return 2;", "return 4;")
    repository.commit(f"{RAISE}\n\nAnother one.")
    earlier = repository.git("rev-parse", "HEAD")
    if in_base:
        repository.edit("kernel/workqueue.c", "512", "1024")
        repository.commit(RAISE)
        text = repository.mbox("-1")
        repository.git("reset", "--hard", "--quiet", "HEAD~1")
    assert found(tree, workspace, text) == [(1, earlier, "subject", in_base)]


def test_a_search_that_takes_too_long_is_no_failure_of_the_series(
    tree: Tree, workspace: Workspace, series_of_two: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exceed(*_: object) -> None:
        raise UserError("git log exceeded the limit of 120 s on the series")

    monkeypatch.setattr(prior_art, "_same_subjects", exceed)
    result = passed(submit(tree, workspace, mbox(series_of_two)))
    assert result.prior_art is not None
    assert result.prior_art.found == []
    assert result.prior_art.skipped == (
        "the history could not be searched: git log exceeded the limit of 120 s on the series"
    )


def test_a_debian_tree_has_no_history_to_search(tmp_path: Path) -> None:
    tree = Tree(name="linux-6.12", summary="x", debian_source="linux-source-6.12")
    skipped = prior_art.prior_art(
        None,
        tree,
        [],
        head="",
        base="",
        commit="",
        on_tick=lambda: None,  # type: ignore[arg-type]
    ).skipped
    assert "imported from a Debian package" in skipped
