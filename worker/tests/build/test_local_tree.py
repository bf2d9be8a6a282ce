"""Kernels of the repository that a developer works in."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import JobMaker, Repository
from wqlab_contracts.enums import Outcome
from wqlab_worker.apply.checkout import checked_out
from wqlab_worker.build.build_kernel import build
from wqlab_worker.build.local_tree import local_source
from wqlab_worker.failures import UserError
from wqlab_worker.workspace import Workspace


@pytest.fixture
def elsewhere(tmp_path: Path) -> Workspace:
    """Return a workspace whose settings allow no fetch from a local path."""
    return Workspace(tmp_path / "elsewhere", jobs=2)


def test_commits_are_read_without_copying_objects(repository: Repository, elsewhere: Workspace) -> None:
    before = repository.git("rev-parse", "HEAD")
    repository.write({"new.c": "int new;\n"})
    after = repository.commit("toy: add a file")
    assert local_source(repository.path, "HEAD~1", elsewhere).commit == before
    source = local_source(repository.path / ".", "HEAD", elsewhere).source
    assert (source.commit, source.base_commit) == (after, after)
    assert source.tree_oid == repository.git("rev-parse", "HEAD^{tree}")
    assert not list(elsewhere.mirrors.glob("*/objects/pack/*.pack"))
    with checked_out(source, elsewhere) as files:
        assert (files.files / "new.c").read_text() == "int new;\n"


def test_a_worktree_has_the_commits_of_its_repository(
    repository: Repository, elsewhere: Workspace, tmp_path: Path
) -> None:
    repository.git("worktree", "add", "--quiet", str(tmp_path / "beside"), "-b", "beside")
    assert local_source(tmp_path / "beside", "beside", elsewhere).commit == repository.git("rev-parse", "HEAD")


def test_two_repositories_are_not_taken_for_each_other(
    repository: Repository, elsewhere: Workspace, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    repository.git("clone", "--quiet", str(repository.path), str(other))
    first = local_source(repository.path, "HEAD", elsewhere)
    second = local_source(other, "HEAD", elsewhere)
    assert first.source.tree.url != second.source.tree.url
    assert len(list(elsewhere.mirrors.iterdir())) == 2


def test_a_kernel_is_built_from_a_commit(repository: Repository, elsewhere: Workspace, build_job: JobMaker) -> None:
    source = local_source(repository.path, "HEAD", elsewhere).source
    result = build(build_job(source), elsewhere)
    assert result.outcome is Outcome.PASSED, result.failure
    assert build(build_job(source), elsewhere).reused


def test_near_commit_is_a_change_of_the_earlier_one(repository: Repository, elsewhere: Workspace) -> None:
    before = repository.git("rev-parse", "HEAD")
    repository.edit("kernel/workqueue.c", "512", "1024")
    repository.commit("workqueue: raise max_active")
    source = local_source(repository.path, "HEAD", elsewhere, before).source
    assert (source.base_commit, source.tree_oid) == (before, repository.git("rev-parse", "HEAD^{tree}"))
    with checked_out(source, elsewhere) as files:
        assert [each.path for each in files.changes] == ["kernel/workqueue.c"]
    assert local_source(repository.path, "HEAD~1", elsewhere, source.commit).source.bundle is None


def test_working_tree_is_taken_as_it_is_and_not_written(repository: Repository, elsewhere: Workspace) -> None:
    head, objects = repository.git("rev-parse", "HEAD"), repository.git("count-objects")
    assert local_source(repository.path, ".", elsewhere).source.bundle is None, "nothing is changed"
    repository.edit("kernel/workqueue.c", "512", "1024")
    repository.write({"new.c": "int new;\n", "wqlab-ab-x/ab.json": "{}"})
    before = repository.git("status", "--porcelain")
    found = local_source(repository.path / "kernel", ".", elsewhere)
    assert found == local_source(repository.path, ".", elsewhere)
    assert (found.commit, found.source.base_commit) == (head, head)
    with checked_out(found.source, elsewhere) as files:
        assert [each.path for each in files.changes] == ["kernel/workqueue.c", "new.c"]
    assert b"+int new;" in found.changes and b"ab.json" not in found.changes
    assert (repository.git("status", "--porcelain"), repository.git("count-objects")) == (before, objects)


def test_mails_are_applied_to_the_commit_that_is_named(repository: Repository, elsewhere: Workspace) -> None:
    named = repository.git("rev-parse", "HEAD")
    repository.edit("kernel/workqueue.c", "512", "1024")
    repository.commit("workqueue: raise max_active")
    (repository.path / "a.mbox").write_text(repository.mbox("--base=HEAD~1", "-1"))
    tree = repository.git("rev-parse", "HEAD^{tree}")
    found = local_source(repository.path, "HEAD~1+a.mbox", elsewhere)
    assert (found.source.base_commit, found.source.tree_oid) == (named, tree)
    with pytest.raises(UserError, match="does not apply"):
        local_source(repository.path, "HEAD+a.mbox", elsewhere)
    with pytest.raises(UserError, match=r"b\.mbox: No such file"):
        local_source(repository.path, "HEAD+b.mbox", elsewhere)


@pytest.mark.parametrize(("revision", "folder"), [("v9.9", "linux"), ("HEAD", ".")])
def test_what_is_no_commit_is_refused(
    repository: Repository, elsewhere: Workspace, tmp_path: Path, revision: str, folder: str
) -> None:
    with pytest.raises(UserError) as caught:
        local_source(tmp_path / folder, revision, elsewhere)
    assert caught.value.failure.advice
