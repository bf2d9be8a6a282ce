"""Diffstat of a mailed patch, compared with git's own where git can compute it."""

from __future__ import annotations

import subprocess
import time
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


@pytest.mark.parametrize(
    ("old", "new", "path", "status"),
    [
        ("a/kernel/workqueue.c~workqueue-fix", "a/kernel/workqueue.c", "kernel/workqueue.c", "changed"),  # -mm
        ("linux.orig/kernel/wq.c\t2026-01-01", "linux/kernel/wq.c\t2026-01-02", "kernel/wq.c", "changed"),  # diff -urN
        ("linux-6.12/arch/x86/Makefile", "linux-6.12-new/arch/x86/Makefile", "arch/x86/Makefile", "changed"),
        ("kernel.orig/kernel/cpu.c", "kernel/kernel/cpu.c", "kernel/cpu.c", "changed"),
        ("a/Makefile", "b/Makefile", "Makefile", "changed"),
        ("c/kernel/cpu.c", "w/kernel/cpu.c", "kernel/cpu.c", "changed"),
        ("/dev/null", "b/fs/new.c", "fs/new.c", "added"),
        ("linux/fs/gone.c", "/dev/null", "fs/gone.c", "deleted"),
        ("kernel/workqueue.c", "kernel/workqueue.c", "kernel/workqueue.c", "changed"),  # --no-prefix
        ("/dev/null", "fs/new.c", "fs/new.c", "added"),
        ("fs/gone.c", "/dev/null", "fs/gone.c", "deleted"),
        ("Makefile", "Makefile", "Makefile", "changed"),
        ("a//kernel/cpu.c", "b//kernel/cpu.c", "kernel/cpu.c", "changed"),
        ('"a/\\303\\274.c"', '"b/\\303\\274.c"', "ü.c", "changed"),
    ],
)
def test_names_of_a_diff_without_git_headers(old: str, new: str, path: str, status: str) -> None:
    body = f"why\n\n--- {old}\n+++ {new}\n@@ -1,2 +1,3 @@\n a\n-b\n+c\n+d\n-- \n2.39\n"
    (change,) = changed_files(body)
    assert (change.path, change.status, change.old_path) == (path, status, None)
    assert (change.insertions, change.deletions) == (2, 1)


def test_files_of_an_mm_patch_are_told_apart() -> None:
    body = "".join(f"--- a/{name}~fix\n+++ a/{name}\n@@ -1 +1 @@ x\n-a\n+b\n" for name in ("mm/slub.c", "kernel/cpu.c"))
    assert [change.path for change in changed_files(body)] == ["mm/slub.c", "kernel/cpu.c"]


@pytest.mark.parametrize("options", [["--mnemonic"], ["--mnemonic", "--cached"], ["--mnemonic", "-R"], ["--no-prefix"]])
def test_prefixes_of_git_diff(repository: Path, options: list[str]) -> None:
    (repository / "kernel").mkdir()
    git(repository, "mv", "old name", "kernel/new name")
    git(repository, "commit", "-q", "-m", "move")
    git(repository, "mv", "kernel/new name", "kernel/third")
    (repository / "kernel/third").chmod(0o755)
    (repository / "kernel/x.c").write_text("int x;\n")
    git(repository, "add", "-A")
    mnemonic = ("-c", "diff.mnemonicPrefix=true") if "--mnemonic" in options else ()
    named = [option for option in options if option != "--mnemonic"]
    diff = git(repository, *mnemonic, "diff", "-M", *named, "HEAD")
    found = {change.path: change for change in changed_files(diff)}
    assert found["kernel/x.c"].status == ("deleted" if "-R" in options else "added")
    if "--no-prefix" not in options:  # `diff --git` has the only names of a file whose content stays
        new, old = ("new name", "third") if "-R" in options else ("third", "new name")
        assert (found[f"kernel/{new}"].status, found[f"kernel/{new}"].old_path) == ("renamed", f"kernel/{old}")


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
        'diff --git "\n',
        "--- a/\n+++ /\n@@ -0,0 +1 @@\n+of no file\n",
        "--- " + "/" * 2_000_000 + "\n+++ b" + "/" * 2_000_000 + "\n@@ -0,0 +1 @@\n+of no file\n",
    ],
)
def test_broken_diff_counts_only_announced_lines(body: str) -> None:
    for change in changed_files(body):
        assert change.insertions <= 1
        assert change.deletions == 0


@pytest.mark.parametrize("pump", [" b/a", '"a/x" "b/', '" ', " a/", ' "'])
def test_hostile_names_take_about_the_time_of_ordinary_ones(pump: str) -> None:
    """Before, a line of 10 000 characters took half a second."""

    def seconds(line: str) -> float:
        return min(timeit.repeat(lambda: changed_files(line), number=1, repeat=3, timer=time.process_time))

    hostile = ("diff --git a/" + pump * 5000)[:9_990] + "\n"
    assert seconds(hostile) < 500 * seconds("diff --git a/kernel/workqueue.c b/kernel/workqueue.c\n" * 10)
