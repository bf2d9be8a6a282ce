"""Branches that are read before they are submitted, from real repositories, also hostile ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from wqlab_contracts.api.touches import TouchedFile
from wqlab_contracts.enums import Outcome
from wqlab_contracts.messages import GitSeries
from wqlab_contracts.messages.branch_readings import BranchReadingJob, BranchReadingResult
from wqlab_contracts.specs import Tree
from wqlab_contracts.touches import touched_files
from wqlab_worker.apply import inspect_commits as module
from wqlab_worker.apply.read_branch import read_branch
from wqlab_worker.failures import UserError
from wqlab_worker.workspace import Workspace

if TYPE_CHECKING:
    from conftest import Repository


def read(tree: Tree, workspace: Workspace, url: str, ref: str, base: str | None = None) -> BranchReadingResult:
    return read_branch(BranchReadingJob(series=GitSeries(url=url, ref=ref, base=base), tree=tree), workspace)


def touched(result: BranchReadingResult) -> list[TouchedFile]:
    assert result.inspection is not None and result.inspection.usable, result.inspection
    return touched_files(result.inspection)


def test_patches_of_a_branch_are_those_of_a_submission(
    tree: Tree, workspace: Workspace, repository: Repository
) -> None:
    """The inspection is complete although subjects contain `v2` or `1/3` and the branch has an empty commit, a merge
    and a binary file."""
    base = repository.git("rev-parse", "master")
    repository.git("switch", "--quiet", "-c", "topic")
    repository.edit("kernel/workqueue.c", "512", "1024")
    repository.commit("[v3 2/7] workqueue: raise max_active\n\nFrom ada Mon Sep 17 00:00:00 2001\n\nText.")
    repository.git("commit", "--quiet", "--allow-empty", "-m", "Re: nothing")
    repository.git("switch", "--quiet", "-c", "side", base)
    (repository.path / "logo.bin").write_bytes(bytes(range(256)) * 8)
    repository.git("add", "logo.bin")
    repository.commit("logo: add")
    repository.git("switch", "--quiet", "topic")
    repository.git("merge", "--quiet", "--no-ff", "-m", "Merge side", "side")
    head = repository.git("rev-parse", "topic")
    repository.git("switch", "--quiet", "master")
    repository.edit("kernel/fork.c", "for (;;)", "while (1)")
    repository.commit("fork: master goes on")
    result = read(tree, workspace, str(repository.path), "topic")
    assert (result.outcome, result.base, result.commit) == (Outcome.PASSED, base, head)
    assert {file.path: file.symbols for file in touched(result)} == {
        "kernel/workqueue.c": ["max_active"],
        "logo.bin": [],
    }
    found = result.inspection
    assert found is not None and {patch.subject for patch in found.patches} == {
        "workqueue: raise max_active",
        "logo: add",
    }
    assert (found.base_commit, [problem.defect for problem in found.problems]) == (base, ["binary_patch"])


def test_branch_with_a_history_of_its_own_needs_a_base(
    tree: Tree, workspace: Workspace, repository: Repository
) -> None:
    repository.git("switch", "--quiet", "--orphan", "mine")
    repository.git("checkout", "master", "--", ".")
    start = repository.commit("my own import")
    repository.edit("kernel/workqueue.c", "512", "1024")
    head = repository.commit("workqueue: raise max_active")
    repository.git("switch", "--quiet", "master")
    with pytest.raises(UserError, match="no commit in common"):
        read(tree, workspace, str(repository.path), "mine")
    result = read(tree, workspace, str(repository.path), "mine", start)
    assert (result.base, result.commit) == (repository.git("rev-parse", "master"), head)
    assert [file.path for file in touched(result)] == ["kernel/workqueue.c"]


def test_branch_is_fetched_from_a_git_server(
    tree: Tree, lab: Workspace, repository: Repository, series_of_two: str, daemon: int
) -> None:
    listed = Workspace.from_environment(
        {
            "WQLAB_CACHE": str(lab.cache),
            "WQLAB_PRIVATE_GIT_HOSTS": f"127.0.0.1:{daemon}",
            "WQLAB_LOCAL_GIT_PATHS": str(repository.path),
        }
    )
    result = read(tree, listed, f"git://127.0.0.1:{daemon}/linux", "topic")
    assert [file.path for file in touched(result)] == ["kernel/workqueue.c"]


def test_branch_that_changes_nothing_is_refused(tree: Tree, workspace: Workspace, repository: Repository) -> None:
    repository.git("branch", "same")
    with pytest.raises(UserError, match="nothing on top of"):
        read(tree, workspace, str(repository.path), "same")
    repository.git("switch", "--quiet", "-c", "empty")
    repository.git("commit", "--quiet", "--allow-empty", "-m", "nothing")
    with pytest.raises(UserError, match="changes nothing"):
        read(tree, workspace, str(repository.path), "empty")


def test_hostile_branch_is_refused_by_the_name_of_the_limit(
    tree: Tree, workspace: Workspace, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One limit is for the size of all patches, another for the size of a file, which git may store in a few bytes."""
    repository.git("switch", "--quiet", "-c", "large")
    (repository.path / "kernel/large.c").write_text("int a;\n" * 1_500_000)
    repository.git("add", ".")
    repository.commit("add a table")
    monkeypatch.setattr(module, "INSPECTED_BYTES", 4 << 20)
    with pytest.raises(UserError, match="git format-patch printed more than 4 MiB"):
        read(tree, workspace, str(repository.path), "large")
    (repository.path / "kernel/large.c").write_bytes(b"\n" * (65 << 20))
    repository.git("add", ".")
    repository.commit("make the table larger")
    with pytest.raises(UserError, match="at most 64 MiB are allowed"):
        read(tree, workspace, str(repository.path), "large")
    with pytest.raises(UserError, match="is not a branch"):
        read(tree, workspace, str(repository.path), "--upload-pack=x")
