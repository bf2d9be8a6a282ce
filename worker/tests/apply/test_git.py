"""git commands with fixed settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from wqlab_worker.apply.git import Git, GitError, GitTimeout, create_bare, git_environment
from wqlab_worker.workspace import Workspace


@pytest.fixture
def git(repository, workspace: Workspace) -> Git:
    workspace.cache.mkdir(exist_ok=True)
    return Git(workspace, repository.path / ".git")


def test_commit_returns_id_or_none(git: Git, repository) -> None:
    assert git.commit("master") == repository.git("rev-parse", "master")
    assert git.commit("no-such-branch") is None
    assert git.commit("--all") is None


def test_failed_command_raises_its_error_output(git: Git) -> None:
    with pytest.raises(GitError) as caught:
        git.file("master", "no/such/file")
    assert "no/such/file" in caught.value.output


def test_slow_command_is_killed(git: Git, tmp_path: Path) -> None:
    with pytest.raises(GitTimeout, match=r"git -c took longer than 1 s"):
        git.run("-c", "alias.wait=!sleep 60", "wait", timeout_s=1.0)


def test_exception_in_on_tick_kills_the_command(git: Git) -> None:
    def cancel() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        git.run("-c", "alias.wait=!sleep 60", "wait", on_tick=cancel)


def test_user_configuration_is_ignored(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace.cache.mkdir(exist_ok=True)
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'user.name=Eve'")
    environment = git_environment(workspace)
    assert "GIT_CONFIG_PARAMETERS" not in environment
    assert environment["GIT_CONFIG_NOSYSTEM"] == "1"


def test_bare_repository_borrows_objects(git: Git, repository, workspace: Workspace, tmp_path: Path) -> None:
    head = repository.git("rev-parse", "master")
    bare = create_bare(workspace, tmp_path / "bare.git", [git.directory])
    assert bare.commit(head) == head
