"""Resolve pairs of commits of a tree's own repository, on which no mirror has been before."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from wqlab_contracts.enums import Outcome
from wqlab_contracts.messages import ApplyJob, ApplyResult, CommitPair, CommitRange, Series
from wqlab_contracts.specs import Tree
from wqlab_worker.apply.apply_series import apply
from wqlab_worker.apply.checkout import checked_out
from wqlab_worker.workspace import Workspace

from .submissions import passed, refused

if TYPE_CHECKING:
    from conftest import Repository


def resolve(
    tree: Tree,
    workspace: Workspace,
    baseline: str,
    candidate: str,
    ref: str = "for-next",
    seen: tuple[str, ...] = (),
    reverted: str | None = None,
) -> ApplyResult:
    pair = CommitPair(baseline=baseline, candidate=candidate, ref=ref, reverted=reverted)
    job = ApplyJob(submission_id=1, tree=tree, series=Series(commits=pair), seen=list(seen))
    return apply(job, workspace)


@pytest.fixture
def heads(repository: Repository) -> list[str]:
    """Three heads of branch for-next, which master does not have, the oldest first."""
    repository.git("switch", "--quiet", "-c", "for-next")
    found = []
    for old, new in (("512", "600"), ("600", "700"), ("700", "800")):
        repository.edit("kernel/workqueue.c", old, new)
        found.append(repository.commit(f"workqueue: raise max_active to {new}"))
    repository.git("switch", "--quiet", "master")
    return found


def test_two_heads_of_a_branch_become_two_sources(tree: Tree, workspace: Workspace, heads: list[str]) -> None:
    result = passed(resolve(tree, workspace, heads[0], heads[2]))
    assert result.baseline and result.candidate
    assert (result.baseline.commit, result.candidate.commit) == (heads[0], heads[2])
    assert result.baseline.bundle is result.candidate.bundle is None
    assert result.range == CommitRange(ahead=2, behind=0)
    assert [patch.subject for patch in result.patches] == [
        "workqueue: raise max_active to 700",
        "workqueue: raise max_active to 800",
    ]
    assert result.checkpatch == [] and "only series" in result.checkpatch_skipped
    for source, value in ((result.baseline, "600"), (result.candidate, "800")):
        with checked_out(source, workspace) as checked:
            assert f"max_active = {value}" in (checked.files / "kernel/workqueue.c").read_text()


def test_tag_is_found_and_its_base_is_on_the_trees_branch(
    tree: Tree, workspace: Workspace, repository: Repository, heads: list[str]
) -> None:
    repository.git("tag", "-a", "-m", "release", "v6.12.100", heads[1])
    base = repository.git("rev-parse", "master")
    result = passed(resolve(tree, workspace, base, heads[1], "v6.12.100"))
    assert result.range == CommitRange(ahead=2, behind=0)


def test_rewritten_branch_is_compared_with_a_head_that_it_no_longer_has(
    tree: Tree, workspace: Workspace, repository: Repository, heads: list[str]
) -> None:
    repository.git("switch", "--quiet", "for-next")
    repository.git("reset", "--hard", "--quiet", heads[0])
    repository.edit("kernel/workqueue.c", "600", "900")
    new = repository.commit("workqueue: raise max_active to 900")
    assert "neither on for-next nor on master" in refused(resolve(tree, workspace, heads[2], new))
    result = passed(resolve(tree, workspace, heads[2], new, seen=(heads[2], new)))
    assert result.range == CommitRange(ahead=1, behind=2)


def test_commit_that_only_another_branch_has_is_refused(
    tree: Tree, workspace: Workspace, repository: Repository, heads: list[str]
) -> None:
    """A forge would send it by its id, from any fork."""
    base = repository.git("rev-parse", "master")
    passed(resolve(tree, workspace, base, heads[0]))  # the mirror has for-next from now on
    repository.git("branch", "other", base)
    assert f"commit {heads[0][:12]} is neither on other" in refused(resolve(tree, workspace, base, heads[0], "other"))
    assert "is neither on nowhere" in refused(resolve(tree, workspace, base, "0" * 39 + "1", "nowhere"))
    assert "not a branch" in refused(resolve(tree, workspace, base, heads[0], "--upload-pack=x"))


def test_equal_files_are_one_source(tree: Tree, workspace: Workspace, repository: Repository, heads: list[str]) -> None:
    repository.git("switch", "--quiet", "for-next")
    repository.git("commit", "--quiet", "--allow-empty", "-m", "workqueue: nothing")
    empty = repository.git("rev-parse", "HEAD")
    result = passed(resolve(tree, workspace, heads[2], empty))
    assert result.baseline and result.candidate
    assert result.baseline.tree_oid == result.candidate.tree_oid


def test_build_host_fetches_a_commit_that_the_branch_no_longer_has(
    tree: Tree, workspace: Workspace, repository: Repository, heads: list[str], tmp_path: Path
) -> None:
    result = passed(resolve(tree, workspace, heads[0], heads[2]))
    repository.git("branch", "-D", "for-next")
    other = Workspace(cache=tmp_path / "other", local_git_paths=workspace.local_git_paths)
    assert result.outcome is Outcome.PASSED and result.candidate
    with checked_out(result.candidate, other) as checked:
        assert "max_active = 800" in (checked.files / "kernel/workqueue.c").read_text()


def test_commit_is_reverted_on_top_of_a_later_one(
    tree: Tree, workspace: Workspace, repository: Repository, heads: list[str], tmp_path: Path
) -> None:
    repository.git("switch", "--quiet", "for-next")
    (repository.path / "lib.c").write_text("int other;\n")
    top = repository.commit("lib: add a file")
    result = passed(resolve(tree, workspace, top, top, reverted=heads[2]))
    assert result.baseline and result.candidate and result.candidate.bundle
    assert (result.baseline.commit, result.candidate.base_commit) == (top, top)
    assert [patch.subject for patch in result.patches] == ['Revert "workqueue: raise max_active to 800"']
    assert passed(resolve(tree, workspace, top, top, reverted=heads[2])).candidate == result.candidate, (
        "the same commit"
    )
    with checked_out(result.candidate, workspace) as checked:
        assert "max_active = 700" in (checked.files / "kernel/workqueue.c").read_text()
        assert (checked.files / "lib.c").exists()


def test_revert_that_conflicts_or_does_not_make_sense_is_refused(
    tree: Tree, workspace: Workspace, repository: Repository, heads: list[str]
) -> None:
    text = refused(resolve(tree, workspace, heads[2], heads[2], reverted=heads[1]))
    assert f"commit {heads[1][:12]} cannot be reverted on top of {heads[2][:12]}: the files conflict" in text
    assert "is not before" in refused(resolve(tree, workspace, heads[0], heads[0], reverted=heads[2]))
    root = repository.git("rev-list", "--max-parents=0", heads[2])
    assert "is a merge or has no parent" in refused(resolve(tree, workspace, heads[2], heads[2], reverted=root))
