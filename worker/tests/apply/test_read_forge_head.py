"""Heads of pull requests and branches, read from real repositories, also hostile ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest

from wqlab_contracts.api.touches import TouchedFile
from wqlab_contracts.messages.forge_readings import PATH_LIMIT, ForgeReadingJob, ForgeReadingResult
from wqlab_contracts.specs import Tree
from wqlab_worker.apply import inspect_commits
from wqlab_worker.apply import read_forge_head as module
from wqlab_worker.apply.read_forge_head import read_forge_head
from wqlab_worker.failures import UserError
from wqlab_worker.workspace import Workspace

if TYPE_CHECKING:
    from conftest import Repository

CONFIG = "targets: [locks@single]\n"


@pytest.fixture
def workspace(lab: Workspace, repository: Repository) -> Workspace:
    environment = {"WQLAB_CACHE": str(lab.cache), "WQLAB_LOCAL_GIT_PATHS": str(repository.path)}
    return Workspace.from_environment(environment)


def read(
    workspace: Workspace,
    repository: Repository,
    head: str,
    base_branch: str = "master",
    config_from: Literal["head", "base"] = "head",
) -> ForgeReadingResult:
    tree = Tree(name="mainline", summary="", url=str(repository.path))
    job = ForgeReadingJob(
        url=str(repository.path), head=head, base_branch=base_branch, config_from=config_from, tree=tree
    )
    return read_forge_head(job, workspace)


def commit_config(repository: Repository, text: str, message: str = "wqlab: measure") -> str:
    (repository.path / ".wqlab.yaml").write_text(text)
    repository.git("add", ".wqlab.yaml")
    repository.commit(message)
    return repository.git("rev-parse", "HEAD")


def test_merge_base_changed_files_and_config_of_a_pull_request(workspace: Workspace, repository: Repository) -> None:
    base = repository.git("rev-parse", "master")
    repository.git("switch", "--quiet", "-c", "topic")
    repository.edit("kernel/workqueue.c", "512", "1024")
    repository.commit("workqueue: more")
    head = commit_config(repository, CONFIG)
    repository.git("switch", "--quiet", "master")
    repository.edit("kernel/workqueue.c", "return 2;", "return 3;")
    repository.commit("workqueue: another change, which is not of the pull request")
    result = read(workspace, repository, head)
    assert (result.merge_base, result.config) == (base, CONFIG)
    assert (result.paths, result.paths_complete) == ([".wqlab.yaml", "kernel/workqueue.c"], True)


def test_the_config_of_a_fork_is_that_of_the_base_branch(workspace: Workspace, repository: Repository) -> None:
    commit_config(repository, CONFIG)
    repository.git("switch", "--quiet", "-c", "fork")
    head = commit_config(repository, "targets: [everything@expensive]\n", "wqlab: spend more")
    assert read(workspace, repository, head, config_from="base").config == CONFIG
    assert read(workspace, repository, head).config == "targets: [everything@expensive]\n"


def test_what_the_commits_touch_is_read_if_the_config_asks_for_it(
    workspace: Workspace, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.git("switch", "--quiet", "-c", "topic")
    repository.edit("kernel/workqueue.c", "512", "1024")
    repository.commit("workqueue: more")
    head = commit_config(repository, CONFIG)
    assert read(workspace, repository, head).touched is None
    head = commit_config(repository, "what_it_touches: true\n", "wqlab: measure what is touched")
    assert read(workspace, repository, head).touched == [
        TouchedFile(path="kernel/workqueue.c", symbols=["max_active"]),
        TouchedFile(path=".wqlab.yaml"),
    ]
    monkeypatch.setattr(inspect_commits, "INSPECTED_BYTES", 100)
    with pytest.raises(UserError, match="git format-patch printed more than"):
        read(workspace, repository, head)


def test_a_push_is_compared_with_the_tree(workspace: Workspace, repository: Repository) -> None:
    base = repository.git("rev-parse", "master")
    repository.git("switch", "--quiet", "-c", "wq/next")
    repository.edit("kernel/workqueue.c", "512", "1024")
    repository.commit("workqueue: more")
    head = repository.git("rev-parse", "HEAD")
    repository.git("switch", "--quiet", "master")
    result = read(workspace, repository, head, base_branch="")
    assert (result.merge_base, result.config, result.paths) == (base, None, ["kernel/workqueue.c"])


@pytest.mark.parametrize(
    ("text", "summary"),
    [("#" * (64 << 10) + "\n", ".wqlab.yaml has 65537 bytes"), ("a: \0\n", ".wqlab.yaml contains a NUL byte")],
)
def test_a_config_that_cannot_be_read_is_refused(
    workspace: Workspace, repository: Repository, text: str, summary: str
) -> None:
    head = commit_config(repository, text)
    with pytest.raises(UserError, match=summary):
        read(workspace, repository, head)


def test_a_link_is_no_config(workspace: Workspace, repository: Repository) -> None:
    (repository.path / ".wqlab.yaml").symlink_to("/etc/passwd")
    repository.git("add", ".wqlab.yaml")
    repository.commit("wqlab: link")
    with pytest.raises(UserError, match="not a regular file"):
        read(workspace, repository, repository.git("rev-parse", "HEAD"))


def test_a_long_list_of_changes_is_cut_and_says_so(
    workspace: Workspace, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.git("switch", "--quiet", "-c", "large")
    for number in range(PATH_LIMIT + 5):
        (repository.path / f"file-{number:05}").touch()
    repository.git("add", ".")
    repository.commit("add files")
    head = repository.git("rev-parse", "HEAD")
    result = read(workspace, repository, head)
    assert (len(result.paths), result.paths_complete) == (PATH_LIMIT, False)
    monkeypatch.setattr(module, "PATHS_BYTES", 1000)
    result = read(workspace, repository, head)
    assert (len(result.paths), result.paths_complete) == (1000 // len("file-00000\0"), False)


def test_names_that_git_would_take_for_options_are_refused(workspace: Workspace, repository: Repository) -> None:
    head = repository.git("rev-parse", "master")
    with pytest.raises(UserError, match="not a branch"):
        read(workspace, repository, head, base_branch="--upload-pack=x")
    with pytest.raises(UserError, match="cannot fetch"):
        read(workspace, repository, "0" * 39 + "1")
