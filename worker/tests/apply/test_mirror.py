"""Mirrors of kernel trees."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from wqlab_contracts.enums import ErrorKind, Outcome
from wqlab_contracts.messages import ApplyJob, CommitPair, Series, Source
from wqlab_contracts.messages.commit_lists import CommitListJob
from wqlab_contracts.specs import Tree
from wqlab_worker.apply import series_size
from wqlab_worker.apply.apply_series import apply
from wqlab_worker.apply.checkout import checked_out
from wqlab_worker.apply.git import Git
from wqlab_worker.apply.list_commits import list_commits
from wqlab_worker.apply.mirror import mirror_folder, source_at, update_mirror
from wqlab_worker.failures import InfrastructureError, UserError
from wqlab_worker.workspace import Workspace

from .submissions import passed

if TYPE_CHECKING:
    from conftest import Repository


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


def users(tree: Tree) -> Tree:
    """Return the tree with the same URL, which a user gave: a local path that the operator lists, as in all tests."""
    return tree.model_copy(update={"origin": "user"})


def source_of(tree: Tree, workspace: Workspace) -> Source:
    mirror = update_mirror(tree, workspace)
    return source_at(tree, mirror.git, mirror.head)


@pytest.mark.parametrize("size", [65, 1], ids=["one large file", "many copies"])
def test_files_of_a_users_repository_are_counted_before_they_are_written(
    size: int, tree: Tree, workspace: Workspace, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some kilobytes of objects can expand to any number of files of any size."""
    monkeypatch.setattr(series_size, "TREE_BYTES", 8 << 20)
    zeros = "\0" * (size << 20)
    repository.write({f"copy-{number}": zeros for number in range(1 if size > 1 else 20)})
    repository.commit("toy: expand")
    source = source_of(users(tree), workspace)
    with pytest.raises(UserError, match=r"has a file of|have more than 8 MiB"), checked_out(source, workspace):
        pass
    assert not list(workspace.sources.iterdir())
    with checked_out(source_of(tree, workspace), workspace) as checked:
        assert len(list(checked.files.glob("copy-*"))) == (1 if size > 1 else 20)


def test_attributes_of_a_users_repository_convert_no_files(
    tree: Tree, workspace: Workspace, repository: Repository
) -> None:
    repository.write({".gitattributes": "kernel/*.c eol=crlf text\n"})
    repository.commit("toy: convert")
    with checked_out(source_of(users(tree), workspace), workspace) as checked:
        assert b"\r" not in (checked.files / "kernel/workqueue.c").read_bytes()


def test_a_users_repository_is_read_in_the_sandbox(
    tree: Tree, workspace: Workspace, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outside it, git runs only what makes and fetches the mirror."""
    read: list[tuple[str, ...]] = []
    run = Git.run

    def record(self: Git, *arguments: str, **options: Any) -> str:
        if not {"init", "fetch"} & set(arguments):
            read.append(arguments)
        return run(self, *arguments, **options)

    monkeypatch.setattr(Git, "run", record)
    job = ApplyJob(submission_id=1, tree=users(tree), series=Series(commits=pair_of(repository)))
    result = passed(apply(job, workspace))
    assert result.candidate is not None
    with checked_out(result.candidate, workspace) as checked:
        assert "600" in (checked.files / "kernel/workqueue.c").read_text()
    listed = CommitListJob(tree=users(tree), good=result.baseline.commit, bad=result.candidate.commit)
    assert list_commits(listed, workspace).outcome is Outcome.PASSED
    assert read == []


def pair_of(repository: Repository) -> CommitPair:
    baseline = repository.git("rev-parse", "HEAD")
    repository.edit("kernel/workqueue.c", "512", "600")
    return CommitPair(baseline=baseline, candidate=repository.commit("workqueue: more"), ref="master")


def test_a_users_slow_server_stops_no_update_of_the_operators_tree(tree: Tree, workspace: Workspace) -> None:
    """Both trees have the same name, as those of the lab and of a watched tree have."""
    waited: list[str] = []

    def progress(text: str, *_: int) -> None:
        waited.append(text)
        if text.startswith("fetching"):
            update_mirror(tree, workspace, lambda text, *_: pytest.fail(text) if "waiting" in text else None)

    update_mirror(users(tree), workspace, progress)
    assert any(text.startswith("fetching") for text in waited)
