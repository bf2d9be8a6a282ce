"""The source after each patch of a series that is walked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wqlab_contracts.messages import ApplyJob, ApplyResult, Series
from wqlab_contracts.messages.apply import WALK_LIMIT
from wqlab_contracts.specs import Tree
from wqlab_worker.apply.apply_series import apply
from wqlab_worker.apply.checkout import checked_out
from wqlab_worker.workspace import Workspace

from .submissions import branch, mbox, passed, refused

if TYPE_CHECKING:
    from conftest import Repository


def walk(tree: Tree, workspace: Workspace, series: Series) -> ApplyResult:
    return apply(ApplyJob(submission_id=1, tree=tree, series=series, walk=True), workspace)


def test_each_patch_has_a_source_that_can_be_checked_out(
    tree: Tree, workspace: Workspace, repository: Repository, series_of_two: str
) -> None:
    result = passed(walk(tree, workspace, mbox(series_of_two)))
    first, last = result.patch_sources
    assert last == result.candidate
    assert first.bundle == last.bundle, "one bundle has every commit"
    assert first.tree_oid == repository.git("rev-parse", "topic~1^{tree}")
    with checked_out(first, workspace) as checked:
        text = (checked.files / "kernel/workqueue.c").read_text()
        assert "1024" in text and "return 3;" not in text
    with checked_out(last, workspace) as checked:
        assert "return 3;" in (checked.files / "kernel/workqueue.c").read_text()


def test_branch_has_a_source_for_each_commit(
    tree: Tree, workspace: Workspace, repository: Repository, series_of_two: str
) -> None:
    result = passed(walk(tree, workspace, branch(repository, "topic")))
    assert [source.commit for source in result.patch_sources] == [
        repository.git("rev-parse", "topic~1"),
        repository.git("rev-parse", "topic"),
    ]


def test_series_that_is_not_walked_has_no_sources_of_patches(
    tree: Tree, workspace: Workspace, repository: Repository, series_of_two: str
) -> None:
    job = ApplyJob(submission_id=1, tree=tree, series=branch(repository, "topic"))
    assert passed(apply(job, workspace)).patch_sources == []


def test_series_of_one_patch_is_refused(tree: Tree, workspace: Workspace, repository: Repository) -> None:
    repository.git("switch", "--quiet", "-c", "one")
    repository.edit("kernel/workqueue.c", "512", "1024")
    repository.commit("workqueue: raise max_active")
    repository.git("switch", "--quiet", "master")
    assert "has one patch" in refused(walk(tree, workspace, branch(repository, "one")))


def test_too_many_patches_are_refused(tree: Tree, workspace: Workspace, repository: Repository) -> None:
    repository.git("switch", "--quiet", "-c", "many")
    for number in range(WALK_LIMIT + 1):
        repository.edit("kernel/workqueue.c", "= 512" if number == 0 else f"= {512 + number}", f"= {513 + number}")
        repository.commit(f"workqueue: change {number}")
    repository.git("switch", "--quiet", "master")
    assert "17 patches; a walk has at most 16" in refused(walk(tree, workspace, branch(repository, "many")))


def test_merge_in_the_branch_is_refused(
    tree: Tree, workspace: Workspace, repository: Repository, series_of_two: str
) -> None:
    repository.git("switch", "--quiet", "-c", "side", "topic~1")
    repository.edit("kernel/fork.c", "for (;;)", "while (1)")
    repository.commit("fork: go on")
    repository.git("switch", "--quiet", "-c", "merged", "topic")
    repository.git("merge", "--quiet", "--no-edit", "side")
    repository.git("switch", "--quiet", "master")
    assert "the branch has the merge" in refused(walk(tree, workspace, branch(repository, "merged")))
