"""List the commits between a good and a bad one of a real repository, on which no mirror has been before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from wqlab_contracts.messages.commit_lists import CommitListJob, CommitListResult
from wqlab_contracts.specs import Tree
from wqlab_worker.apply import list_commits as module
from wqlab_worker.apply.list_commits import list_commits
from wqlab_worker.failures import UserError
from wqlab_worker.workspace import Workspace

if TYPE_CHECKING:
    from conftest import Repository


def listed(tree: Tree, workspace: Workspace, good: str, bad: str, **more: object) -> CommitListResult:
    return list_commits(CommitListJob.model_validate({"tree": tree, "good": good, "bad": bad, **more}), workspace)


def refused(tree: Tree, workspace: Workspace, good: str, bad: str, **more: object) -> tuple[str, str]:
    with pytest.raises(UserError) as caught:
        listed(tree, workspace, good, bad, **more)
    return caught.value.failure.summary, caught.value.failure.advice


@pytest.fixture
def commits(repository: Repository) -> dict[str, str]:
    """`start` - `a` - `merge` - `b` on for-next; the merge has the side branch `x` - `y` that begins at `start`."""
    found = {"start": repository.git("rev-parse", "HEAD").strip()}

    def commit(name: str, old: str, new: str, file: str = "kernel/workqueue.c") -> None:
        repository.edit(file, old, new)
        found[name] = repository.commit(f"workqueue: {name}")

    repository.git("switch", "--quiet", "-c", "for-next")
    commit("a", "512", "600")
    repository.git("switch", "--quiet", "-c", "side", found["start"])
    commit("x", "EXTRAVERSION = -toy", "EXTRAVERSION = -toyx", "Makefile")
    commit("y", "EXTRAVERSION = -toyx", "EXTRAVERSION = -toyy", "Makefile")
    repository.git("switch", "--quiet", "for-next")
    repository.git("merge", "--quiet", "--no-ff", "-m", "Merge side", "side")
    found["merge"] = repository.git("rev-parse", "HEAD").strip()
    commit("b", "600", "700")
    repository.git("tag", "bad-tag", found["b"])
    repository.git("switch", "--quiet", "master")
    return found


def test_first_parents_are_listed_oldest_first(tree: Tree, workspace: Workspace, commits: dict[str, str]) -> None:
    result = listed(tree, workspace, commits["start"][:12], "for-next")
    assert (result.good, result.bad, result.ref) == (commits["start"], commits["b"], "for-next")
    assert [each.commit for each in result.commits] == [commits[name] for name in ("a", "merge", "b")]
    merge = result.commits[1]
    assert merge.is_merge and merge.parents == [commits["a"], commits["y"]]
    assert (merge.subject, result.commits[0].subject) == ("Merge side", "workqueue: a")


def test_ends_are_branches_tags_or_commits(tree: Tree, workspace: Workspace, commits: dict[str, str]) -> None:
    by_tag = listed(tree, workspace, commits["a"], "bad-tag")
    assert (by_tag.ref, len(by_tag.commits)) == ("bad-tag", 2)
    by_ref = listed(tree, workspace, commits["a"], commits["merge"], ref="for-next")
    assert (by_ref.ref, [each.commit for each in by_ref.commits]) == ("for-next", [commits["merge"]])
    seen = listed(tree, workspace, commits["a"], commits["b"], ref="for-next", seen=[commits["b"]])
    assert len(seen.commits) == 2


def test_side_of_a_merge_begins_at_the_merge_base(tree: Tree, workspace: Workspace, commits: dict[str, str]) -> None:
    result = listed(tree, workspace, commits["a"], commits["y"], ref="for-next", side_of_merge=True)
    assert (result.good, result.bad) == (commits["start"], commits["y"])
    assert [each.commit for each in result.commits] == [commits["x"], commits["y"]]


def test_ends_that_cannot_be_bisected_are_refused_with_the_fix(
    tree: Tree, workspace: Workspace, commits: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    summary, advice = refused(tree, workspace, "for-next", "side")
    assert summary.startswith(f"good for-next ({commits['b'][:12]}) descends from bad side")
    assert "Exchange them" in advice
    summary, advice = refused(tree, workspace, commits["a"], "side", ref="for-next")
    assert "is not an ancestor of bad side" in summary and f"merge base is {commits['start'][:12]}" in summary
    assert advice == f"Bisect from the merge base: --good {commits['start'][:12]}."
    assert refused(tree, workspace, "side", commits["y"])[0].startswith("good and bad are the same commit")
    assert refused(tree, workspace, "master", "no-such")[0] == "tree toy has no branch or tag no-such"
    assert refused(tree, workspace, "master", "0123456789ab")[0] == "tree toy has no commit 0123456789ab"
    assert refused(tree, workspace, "master", "side", ref="gone")[0] == "tree toy has no branch or tag gone"
    monkeypatch.setattr(module, "COMMIT_LIMIT", 2)
    summary, advice = refused(tree, workspace, "master", "for-next")
    assert "there are 3 commits" in summary and "nearer" in advice


def test_commit_that_no_branch_has_is_refused(
    repository: Repository, tree: Tree, workspace: Workspace, commits: dict[str, str]
) -> None:
    listed(tree, workspace, commits["start"], "side")  # the mirror has x and y now
    summary, advice = refused(tree, workspace, commits["start"], commits["y"])
    assert summary == f"commit {commits['y']} is on none of these branches and tags: master" and "--ref" in advice
