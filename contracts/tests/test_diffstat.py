"""Diffstat of a mailed patch, compared with git's own where git can compute it."""

from __future__ import annotations

import subprocess
import timeit
from pathlib import Path

import pytest

from wqlab_contracts.diffstat import changed_files


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=master")
    return subprocess.run(
        ["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True, errors="replace"
    ).stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    for name, text in (
        ("same", "a\nb\nc\n" * 9),
        ("gone", "x\n"),
        ("old name", "1\n2\n3\n4\n5\n6\n7\n8\n"),
        ("ünï", "u\n"),
    ):
        (tmp_path / name).write_text(text)
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "base")
    return tmp_path


def test_diffstat_equals_gits(repository: Path) -> None:
    (repository / "same").write_text(
        ("a\nb\nc\n" * 9).replace("a", "-- not a signature", 1) + "--- a/minus\n+++ b/plus\n"
    )
    (repository / "gone").unlink()
    (repository / "old name").rename(repository / "new name")
    (repository / "ünï").write_text("u\nv")
    (repository / "fresh").write_text("f\n" * 3)
    (repository / "blob").write_bytes(bytes(range(256)))
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "change")
    mail = git(repository, "format-patch", "--stdout", "-M", "--binary", "HEAD~1")
    stat = {}
    for row in git(repository, "diff", "--numstat", "-z", "--no-renames", "HEAD~1").split("\0"):
        if row:
            added, removed, name = row.split("\t")
            stat[name] = (0 if added == "-" else int(added), 0 if removed == "-" else int(removed))
    found = {change.path: change for change in changed_files(mail)}
    assert set(found) == {"same", "gone", "new name", "ünï", "fresh", "blob"}
    for name in ("same", "gone", "ünï", "fresh", "blob"):
        assert (found[name].insertions, found[name].deletions) == stat[name], name
    assert {name: change.status for name, change in found.items()} == {
        "same": "changed", "gone": "deleted", "new name": "renamed", "ünï": "changed", "fresh": "added",
        "blob": "added",
    }  # fmt: skip
    assert found["new name"].old_path == "old name"
    assert found["blob"].binary
    assert not found["fresh"].binary


def test_diff_without_git_headers() -> None:
    names = "--- linux.orig/kernel/wq.c\t2026-01-01\n+++ linux/kernel/wq.c\t2026-01-02\n"
    body = f"why\n\n{names}@@ -1,2 +1,3 @@\n a\n-b\n+c\n+d\n-- \n2.39\n"
    (change,) = changed_files(body)
    assert (change.path, change.insertions, change.deletions) == ("linux/kernel/wq.c", 2, 1)


def test_mail_signature_is_not_a_change() -> None:
    body = "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n-- \n2.39.5\n\n--- \n+ plus in a footer\n"
    (change,) = changed_files(body)
    assert (change.insertions, change.deletions) == (1, 1)


@pytest.mark.parametrize(
    "body",
    [
        "",
        "diff --git \n",
        "diff --git a/" + "x" * 2_000_000 + ' "b/' * 100_000,
        "@@ -1,999999999 +1,999999999 @@\n+never begun\n",
        "diff --git a/f b/f\n@@ -1,999999999 +1,999999999 @@\n+one\nno hunk line\n+two\n",
        "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n",
        'diff --git "a/\\377\\"" "b/\\1x"\nnew file mode 100644\n',
    ],
)
def test_broken_diff_counts_only_announced_lines(body: str) -> None:
    for change in changed_files(body):
        assert change.insertions <= 1
        assert change.deletions == 0


@pytest.mark.parametrize("pump", [" b/a", '"a/x" "b/', '" ', " a/"])
def test_hostile_names_take_about_the_time_of_ordinary_ones(pump: str) -> None:
    """Before, a line of 10 000 characters took half a second."""

    def seconds(line: str) -> float:
        return min(timeit.repeat(lambda: changed_files(line), number=1, repeat=3))

    hostile = ("diff --git a/" + pump * 5000)[:9_990] + "\n"
    assert seconds(hostile) < 500 * seconds("diff --git a/kernel/workqueue.c b/kernel/workqueue.c\n" * 10)
