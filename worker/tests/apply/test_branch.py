"""Series submitted as git branches."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from wqlab_contracts.mails import mbox
from wqlab_contracts.specs import Tree
from wqlab_worker.apply.checkout import checked_out
from wqlab_worker.apply.confined_git import ConfinedGit
from wqlab_worker.workspace import Workspace

from .submissions import branch, passed, refused, submit


def test_branch_is_compared_with_its_merge_base(
    tree: Tree, workspace: Workspace, repository, series_of_two: str
) -> None:
    fork_point = repository.git("rev-parse", "master")
    repository.edit("kernel/fork.c", "for (;;)", "while (1)")
    repository.commit("fork: go on")  # master has a new commit, the branch has not
    result = passed(submit(tree, workspace, branch(repository, "topic")))
    assert result.baseline and result.candidate
    assert result.baseline.commit == fork_point
    assert result.candidate.commit == repository.git("rev-parse", "topic")
    assert result.title == "topic (2 patches)"


def test_named_base_of_branch_is_used(tree: Tree, workspace: Workspace, repository, series_of_two: str) -> None:
    first = repository.git("rev-parse", "topic~1")
    repository.git("merge", "--quiet", "--ff-only", first)
    result = passed(submit(tree, workspace, branch(repository, "topic", base="topic~1".replace("~1", "") and first)))
    assert result.baseline and result.baseline.commit == first
    assert [patch.subject for patch in result.patches] == ["workqueue: idle more"]
    assert result.title == "workqueue: idle more"
    assert result.series_key == "workqueue: idle more"


def test_base_with_same_files_as_tree_is_accepted(tree: Tree, workspace: Workspace, repository, tmp_path: Path) -> None:
    other = type(repository)(tmp_path / "other")
    subprocess.run(["cp", "-a", repository.path, other.path], check=True)
    subprocess.run(["rm", "-rf", other.path / ".git"], check=True)
    other.git("init", "--quiet", "--initial-branch=mine")
    start = other.commit("my own import")
    other.edit("kernel/workqueue.c", "512", "1024")
    other.commit("workqueue: raise max_active")
    listed = Workspace(workspace.cache, (repository.path, other.path), 2)
    assert "no commit in common" in refused(submit(tree, listed, branch(other, "mine")))
    result = passed(submit(tree, listed, branch(other, "mine", base=start)))
    assert result.baseline and result.candidate
    assert result.baseline.commit == repository.git("rev-parse", "master")
    assert result.candidate.tree_oid == other.git("rev-parse", "mine^{tree}")
    assert result.patches[0].author == "Ada Tester <ada@example.org>"
    with checked_out(result.candidate, listed) as checked:
        files = checked.files
        assert "= 1024" in (files / "kernel/workqueue.c").read_text()


def test_series_without_changes_is_a_user_error(tree: Tree, workspace: Workspace, repository) -> None:
    repository.git("switch", "--quiet", "-c", "nothing")
    repository.commit("empty")
    repository.git("switch", "--quiet", "master")
    assert "changes nothing" in refused(submit(tree, workspace, branch(repository, "nothing")))
    assert "nothing on top of" in refused(submit(tree, workspace, branch(repository, "master")))


@pytest.mark.parametrize(
    ("ref", "base", "expected"),
    [
        ("no-such-branch", None, "cannot fetch"),
        ("topic", "no-such-base", "base 'no-such-base' is neither in tree toy nor in"),
        ("topic", "0" * 40, f"base '{'0' * 40}' is neither"),
        ("--upload-pack=touch /tmp/x", None, "is not a branch"),
        ("topic", "--exec=x", "is not a branch"),
        ("topic:refs/heads/evil", None, "is not a branch"),
        ("a..b", None, "is not a branch"),
    ],
)
def test_missing_branch_or_base_is_named(
    tree: Tree, workspace: Workspace, repository, series_of_two: str, ref: str, base: str | None, expected: str
) -> None:
    assert expected in refused(submit(tree, workspace, branch(repository, ref, base)))


def test_base_that_is_not_an_ancestor_is_a_user_error(
    tree: Tree, workspace: Workspace, repository, series_of_two: str
) -> None:
    repository.edit("kernel/fork.c", "for (;;)", "while (1)")
    repository.commit("fork: go on")
    assert "is not an ancestor of topic" in refused(submit(tree, workspace, branch(repository, "topic", base="master")))


def test_unlisted_local_path_is_not_fetched(tree: Tree, workspace: Workspace, repository, tmp_path: Path) -> None:
    secret = type(repository)(tmp_path / "secret")
    secret.path.mkdir()
    secret.git("init", "--quiet", "--initial-branch=topic")
    secret.commit("secret")
    for url in (str(secret.path), f"file://{secret.path}", f"{repository.path}/../secret"):
        assert "this lab may not fetch from the local path" in refused(
            submit(tree, workspace, branch(secret, "topic", url=url))
        )


def test_hooks_and_configuration_of_fetched_repository_are_ignored(
    tree: Tree, workspace: Workspace, repository, series_of_two: str, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    for hook in ("post-checkout", "pre-commit", "reference-transaction", "post-update"):
        path = repository.path / ".git" / "hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch {mark}\n")
        path.chmod(0o755)
    repository.git("config", "uploadpack.packObjectsHook", f"touch {mark}")
    passed(submit(tree, workspace, branch(repository, "topic")))
    assert not mark.exists()


@pytest.mark.parametrize("character", ["\x01", "\x02", "\x1b"])
def test_control_character_in_subject_is_a_user_error(
    tree: Tree, workspace: Workspace, repository, character: str
) -> None:
    repository.git("switch", "--quiet", "-c", "strange")
    repository.edit("kernel/workqueue.c", "512", "1024")
    repository.commit(f"workqueue:{character}Eve <eve@example.org>{character} raise")
    repository.git("switch", "--quiet", "master")
    message = refused(submit(tree, workspace, branch(repository, "strange")))
    assert f"U+{ord(character):04X}" in message


@pytest.mark.parametrize("author", ["Ada Tester <ada@example.org>", "Ada\u2028Tester <ada@example.org>"])
def test_unusual_author_and_long_message_are_rebased(
    tree: Tree, workspace: Workspace, repository, tmp_path: Path, author: str
) -> None:
    """Python splits lines at U+2028 too, and an argument of a program has at most 128 KiB."""
    other = type(repository)(tmp_path / "other")
    subprocess.run(["cp", "-a", repository.path, other.path], check=True)
    subprocess.run(["rm", "-rf", other.path / ".git"], check=True)
    other.git("init", "--quiet", "--initial-branch=mine")
    start = other.commit("my own import")
    other.edit("kernel/workqueue.c", "512", "1024")
    other.git("add", "--all")
    (tmp_path / "message").write_text("workqueue: raise max_active\n\n" + "reason\n" * 30_000)
    other.git("commit", "--quiet", f"--author={author}", "-F", str(tmp_path / "message"))
    listed = Workspace(workspace.cache, (repository.path, other.path), 2)
    result = submit(tree, listed, branch(other, "mine", base=start))
    if not author.isprintable():
        assert "author of patch 1" in refused(result) and "U+2028" in refused(result)
        return
    assert passed(result).patches[0].author == author
    assert result.title == "workqueue: raise max_active"


def own_import(repository, folder: Path) -> tuple:
    """Return a repository with the tree's files and a history of its own, and its first commit."""
    other = type(repository)(folder)
    subprocess.run(["cp", "-a", repository.path, other.path], check=True)
    subprocess.run(["rm", "-rf", other.path / ".git"], check=True)
    other.git("init", "--quiet", "--initial-branch=mine")
    return other, other.commit("my own import")


def test_chain_of_merges_is_limited(
    tree: Tree, workspace: Workspace, repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Merges are no patches, but each commit that is moved onto the tree takes two sandboxes."""
    monkeypatch.setattr(mbox, "PATCH_LIMIT", 3)
    commands: list[str] = []
    run = ConfinedGit.run

    def recorded(self: ConfinedGit, *arguments: str, **options: Any) -> str:
        commands.append(arguments[0])
        return run(self, *arguments, **options)

    monkeypatch.setattr(ConfinedGit, "run", recorded)
    other, start = own_import(repository, tmp_path / "other")
    other.edit("kernel/workqueue.c", "512", "1024")
    tip = other.commit("workqueue: raise max_active")
    for number in range(5):
        tip = other.git("commit-tree", f"{tip}^{{tree}}", "-p", tip, "-p", start, "-m", f"merge {number}")
    other.git("update-ref", "refs/heads/mine", tip)
    listed = Workspace(workspace.cache, (repository.path, other.path), 2)
    assert "at most 3 are allowed" in refused(submit(tree, listed, branch(other, "mine", base=start)))
    assert "commit-tree" not in commands


def test_author_that_is_too_long_for_a_command_is_a_user_error(
    tree: Tree, workspace: Workspace, repository, tmp_path: Path
) -> None:
    other, start = own_import(repository, tmp_path / "other")
    other.edit("kernel/workqueue.c", "512", "1024")
    tip = other.commit("workqueue: raise max_active")
    raw = subprocess.run(["git", "cat-file", "commit", tip], cwd=other.path, capture_output=True, check=True).stdout
    raw = raw.replace(b"author Ada", b"author " + b"A" * 200_000)
    hashed = ["git", "hash-object", "-t", "commit", "-w", "--stdin"]
    made = subprocess.run(hashed, cwd=other.path, input=raw, capture_output=True, check=True).stdout.decode().strip()
    other.git("update-ref", "refs/heads/mine", made)
    listed = Workspace(workspace.cache, (repository.path, other.path), 2)
    assert "more than 1000 characters" in refused(submit(tree, listed, branch(other, "mine", base=start)))


def test_objects_that_fsck_refuses_are_a_user_error(tree: Tree, workspace: Workspace, repository) -> None:
    blob = repository.git("rev-parse", "master:Makefile")
    listing = subprocess.run(["git", "ls-tree", "master"], cwd=repository.path, capture_output=True, check=True).stdout
    evil = (
        subprocess.run(
            ["git", "mktree"],
            cwd=repository.path,
            input=f"100644 blob {blob}\tconfig\n".encode(),
            capture_output=True,
            check=True,
        )
        .stdout.decode()
        .strip()
    )
    raw = b""
    for line in listing.decode().splitlines():
        mode, _, oid, name = line.split(None, 3)
        raw += f"{mode.lstrip('0')} {name}\0".encode() + bytes.fromhex(oid)
    raw = b"40000 .git\0" + bytes.fromhex(evil) + raw
    tree_oid = subprocess.run(
        ["git", "hash-object", "-t", "tree", "-w", "--stdin", "--literally"],
        cwd=repository.path, input=raw, capture_output=True, check=True,
    ).stdout.decode().strip()  # fmt: skip
    repository.git("branch", "evil", repository.git("commit-tree", tree_oid, "-p", "master", "-m", "evil"))
    assert "refuses an object" in refused(submit(tree, workspace, branch(repository, "evil")))
