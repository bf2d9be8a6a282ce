"""Resolve mailed submissions to base and candidate, including user errors and hostile series."""

from __future__ import annotations

import re

import pytest

from wqlab_contracts.mails.mbox import Mail
from wqlab_contracts.specs import Tree
from wqlab_worker.apply.checkout import checked_out
from wqlab_worker.apply.mailed_series import find_hunk
from wqlab_worker.workspace import Workspace

from .submissions import mbox, passed, refused, submit


def test_job_without_series_has_only_a_baseline(tree: Tree, workspace: Workspace, repository) -> None:
    result = passed(submit(tree, workspace, None))
    assert result.candidate is None
    assert result.baseline
    assert result.baseline.commit == repository.git("rev-parse", "master")
    assert result.baseline.tree_oid == repository.git("rev-parse", "master^{tree}")
    assert result.baseline.release == "6.12.99-toy"
    assert result.toolchain.startswith("gcc ")


def test_mailed_series_is_applied(tree: Tree, workspace: Workspace, repository, series_of_two: str) -> None:
    result = passed(submit(tree, workspace, mbox(series_of_two)))
    assert result.title == "workqueue: more"
    assert result.series_key == "20260102-more-0123456789ab"
    assert [patch.subject for patch in result.patches] == ["workqueue: raise max_active", "workqueue: idle more"]
    assert [(patch.insertions, patch.deletions, patch.files) for patch in result.patches] == [
        (1, 1, ["kernel/workqueue.c"])
    ] * 2
    assert result.patches[0].author == "Ada Tester <ada@example.org>"
    assert result.touched == ["nr_idle"]
    assert result.baseline and result.candidate
    assert result.baseline.commit == repository.git("rev-parse", "master")
    assert result.candidate.tree_oid == repository.git("rev-parse", "topic^{tree}")
    assert [(finding.severity, finding.where) for finding in result.checkpatch] == [
        ("warning", "kernel/workqueue.c:10")
    ]
    assert result.series_mbox
    assert "workqueue: idle more" in workspace.path_of(result.series_mbox).read_text()


def test_same_series_gives_same_commit(tree: Tree, workspace: Workspace, series_of_two: str) -> None:
    one, two = (passed(submit(tree, workspace, mbox(series_of_two))) for _ in range(2))
    assert one.candidate == two.candidate


def test_base_commit_of_mailed_series_is_used(tree: Tree, workspace: Workspace, repository, series_of_two: str) -> None:
    fork_point = repository.git("rev-parse", "master")
    repository.edit("kernel/workqueue.c", "512", "2048")  # the series no longer applies to master
    repository.commit("workqueue: conflict")
    result = passed(submit(tree, workspace, mbox(series_of_two)))
    assert result.baseline and result.baseline.commit == fork_point


def test_replies_and_older_versions_are_separated(tree: Tree, workspace: Workspace, repository) -> None:
    repository.edit("kernel/workqueue.c", "512", "1024")
    repository.commit("workqueue: raise max_active")
    old = repository.mbox("-1", "--thread").replace("+int max_active = 1024;", "+int max_active = 1000;")
    new = repository.mbox("-1", "--thread", "-v2")
    repository.git("reset", "--hard", "--quiet", "HEAD~1")
    identity = next(line for line in new.splitlines() if line.lower().startswith("message-id: ")).split()[1]
    reply = (
        "From reviewer Fri Jan  2 03:04:05 2026\nFrom: Bo Reviewer <bo@example.org>\n"
        f"Message-ID: <reply@example.org>\nIn-Reply-To: {identity}\nDate: Fri, 2 Jan 2026 03:04:05 +0000\n"
        "Subject: Re: [PATCH v2] workqueue: raise max_active\n\nReviewed-by: Bo Reviewer <bo@example.org>\n\n"
    )
    old = old.replace(identity, "<older@example.org>")
    new = new.replace(f"Message-Id: {identity}", f"Message-Id: {identity}\nIn-Reply-To: <older@example.org>")
    result = passed(submit(tree, workspace, mbox(old + "\n" + new + "\n" + reply)))
    assert result.candidate and result.series_mbox
    with checked_out(result.candidate, workspace) as checked:
        files = checked.files
        assert "= 1024" in (files / "kernel/workqueue.c").read_text()
    assert "Reviewed-by: Bo Reviewer" in workspace.path_of(result.series_mbox).read_text()


@pytest.mark.parametrize("newest_first", [False, True])
def test_only_latest_version_of_a_thread_is_applied(
    tree: Tree, workspace: Workspace, repository, newest_first: bool
) -> None:
    """v1 and v2 name different base commits, cover letters and change-ids; v2 applies to both bases."""

    def version(number: int, bound: str, date: str, *options: str) -> str:
        repository.git("switch", "--quiet", "-c", f"v{number}")
        repository.edit("kernel/workqueue.c", "512", bound)
        repository.commit("workqueue: raise max_active")
        form = ("--cover-letter", "--thread", f"-v{number}", "--base=master", *options)
        text = repository.mbox(*form, "master..HEAD")
        repository.git("switch", "--quiet", "master")
        text = text.replace("*** SUBJECT HERE ***", f"workqueue: version {number}")
        text = text.replace("*** BLURB HERE ***", f"change-id: 20260102-more-{number}")
        return re.sub("^Date: .*", f"Date: {date}", text, flags=re.MULTILINE)

    first_base = repository.git("rev-parse", "master")
    thread = [version(1, "1000", "Fri, 2 Jan 2026 03:04:05 +0000").replace("<cover.", "<older.")]
    repository.edit("kernel/fork.c", "for (;;)", "while (1)")
    second_base = repository.commit("fork: go on")
    cover = re.findall(r"^Message-ID: <(.*)>", thread[0], re.MULTILINE | re.IGNORECASE)[0]
    thread.append(version(2, "1024", "Mon, 5 Jan 2026 03:04:05 +0000", f"--in-reply-to={cover}"))
    repository.edit("kernel/fork.c", "while (1)", "for (;;)")
    repository.commit("fork: go back")
    assert f"base-commit: {first_base}" in thread[0]
    result = passed(submit(tree, workspace, mbox("\n".join(reversed(thread) if newest_first else thread))))
    assert result.baseline and result.candidate
    assert result.baseline.commit == second_base
    assert result.candidate.tree_oid == repository.git("rev-parse", "v2^{tree}")
    assert (result.title, result.series_key) == ("workqueue: version 2", "20260102-more-2")


def test_conflict_names_patch_file_and_hunk(tree: Tree, workspace: Workspace, repository, series_of_two: str) -> None:
    broken = series_of_two.replace(" int nr_idle(void)", " int nr_idle_elsewhere(void)")
    result = submit(tree, workspace, mbox(broken))
    assert refused(result) == (
        "patch 2/2 (workqueue: idle more) does not apply: kernel/workqueue.c, the hunk at line 7"
    )
    assert result.failure
    assert " int nr_idle_elsewhere(void)" in result.failure.excerpt
    assert "git am" not in result.failure.excerpt, "the user has no such work folder"
    assert "to its base-commit" in result.failure.advice


def test_patch_of_missing_file_is_a_user_error(tree: Tree, workspace: Workspace, series_of_two: str) -> None:
    message = refused(submit(tree, workspace, mbox(series_of_two.replace("kernel/workqueue.c", "kernel/nowhere.c"))))
    assert "kernel/nowhere.c: does not exist in index" in message


@pytest.mark.parametrize("text", ["", "\n\n", "garbage without a patch", "\x01\xff binary", "From a b\n\nhello"])
def test_text_without_patch_is_a_user_error(tree: Tree, workspace: Workspace, text: str) -> None:
    assert refused(submit(tree, workspace, mbox(text))) == "the mbox holds no patch"


def test_incomplete_series_is_a_user_error(tree: Tree, workspace: Workspace, series_of_two: str) -> None:
    first = series_of_two.index("Subject: [PATCH v3 1/2]")
    start, end = series_of_two.rindex("\nFrom ", 0, first), series_of_two.index("\nFrom ", first)
    assert "1/2 is missing" in refused(submit(tree, workspace, mbox(series_of_two[:start] + series_of_two[end:])))


@pytest.mark.parametrize(
    "path", ["../escaped", ".git/hooks/post-applypatch", "kernel/../../escaped", "/escaped", ".git/config"]
)
def test_patch_cannot_write_outside_its_tree(tree: Tree, workspace: Workspace, path: str) -> None:
    text = (
        "From: Eve <eve@example.org>\nSubject: [PATCH] escape\nDate: Fri, 2 Jan 2026 03:04:05 +0000\n\nx\n---\n"
        f"diff --git a/{path} b/{path}\nnew file mode 100755\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+#!/bin/sh\n"
    )
    refused(submit(tree, workspace, mbox(text)))
    assert not list(workspace.cache.rglob("escaped"))


@pytest.mark.parametrize(
    ("subject", "version"),
    [
        ("[PATCH v2 1/3] x", 2),
        ("[PATCHv12 1/3] x", 12),
        ("[RFC] [PATCH V3] x", 3),
        ("[PATCH 1/2] riscv: drop v7 support", 1),
        ("v4", 1),
    ],
)
def test_version_is_parsed_from_subject(subject: str, version: int) -> None:
    assert Mail(subject=subject, author="", text="", body="").version == version


def test_find_hunk_returns_hunk_at_line() -> None:
    diff = "--- a/one\n+++ b/one\n@@ -3 +3 @@\n-a\n+b\n"
    diff += "--- a/two\n+++ b/two\n@@ -3,2 +3 @@ f()\n c\n-d\n@@ -30 +29 @@\n-e\n"
    assert find_hunk(diff, "two", 3) == "@@ -3,2 +3 @@ f()\n c\n-d"
    assert find_hunk(diff, "one", 3) == "@@ -3 +3 @@\n-a\n+b"
    assert find_hunk(diff, "two", 4) == ""
    assert find_hunk(diff.replace("--- a/", "--- linux-7.0.orig/"), "two", 3) == "@@ -3,2 +3 @@ f()\n c\n-d"


def encoded(text: str) -> str:
    """Return a header value (RFC 2047) that decodes to `text`."""
    return "=?utf-8?q?" + "".join(f"={byte:02X}" for byte in text.encode()) + "?="


@pytest.mark.parametrize("character", ["\x01", "\x02", "\x1b", "\x7f", "\x85", "\u202e"])
@pytest.mark.parametrize("header", ["Subject", "From"])
def test_control_character_in_header_is_a_user_error(
    tree: Tree, workspace: Workspace, series_of_two: str, header: str, character: str
) -> None:
    value = encoded(f"Eve{character}Mallory") + (" <eve@example.org>" if header == "From" else "")
    text = re.sub(rf"^{header}: (\[PATCH v3 2/2\] )?.*$", rf"{header}: \g<1>{value}", series_of_two, flags=re.MULTILINE)
    text = text.replace(f"{header}: {value}", f"{header}: [PATCH v3 1/2] x") if header == "Subject" else text
    message = refused(submit(tree, workspace, mbox(text)))
    assert f"U+{ord(character):04X}" in message and header in message


def test_author_in_body_cannot_be_forged(tree: Tree, workspace: Workspace, repository) -> None:
    """git takes the author from a From line of the body too."""
    repository.edit("kernel/workqueue.c", "512", "1024")
    repository.commit("workqueue: raise max_active")
    text = repository.mbox("-1").replace("\n\n---", "\n\nFrom: Eve\x02Linus <l@example.org>\n\n---", 1)
    text = text.replace("\n\n\nFrom: Eve", "\n\nFrom: Eve", 1)
    repository.git("reset", "--hard", "--quiet", "HEAD~1")
    head, _, body = text.partition("\n\n")
    text = f"{head}\n\nFrom: Eve\x02Linus <l@example.org>\n\n{body}"
    assert "U+0002" in refused(submit(tree, workspace, mbox(text)))
