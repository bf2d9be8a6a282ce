"""From what was submitted to base and candidate: the honest ways, and each way it can go wrong."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from wqlab_contracts.enums import ErrorKind, Outcome
from wqlab_contracts.mbox import Mail
from wqlab_contracts.messages import ApplyJob, ApplyResult, GitSeries, MboxSeries, Series
from wqlab_contracts.specs import Tree
from wqlab_worker.apply.apply_series import apply, find_hunk
from wqlab_worker.apply.checkout import checked_out
from wqlab_worker.workspace import Workspace


def submit(tree: Tree, workspace: Workspace, series: Series | None) -> ApplyResult:
    return apply(ApplyJob(submission_id=1, tree=tree, series=series), workspace)


def mbox(text: str) -> Series:
    return Series(mbox=MboxSeries(text=text))


def branch(repository, ref: str, base: str | None = None, url: str | None = None) -> Series:
    return Series(git=GitSeries(url=url or str(repository.path), ref=ref, base=base))


def passed(result: ApplyResult) -> ApplyResult:
    assert result.outcome is Outcome.PASSED, result.failure
    return result


def refused(result: ApplyResult) -> str:
    assert result.failure and result.failure.kind is ErrorKind.USER, result
    assert result.candidate is None and result.baseline is None
    return result.failure.summary


@pytest.fixture
def series_of_two(repository) -> str:
    """A branch `topic` with two patches, mailed with a cover letter; master stays where it is."""
    repository.git("switch", "--quiet", "-c", "topic")
    repository.edit("kernel/workqueue.c", "512", "1024")
    repository.commit("workqueue: raise max_active\n\nSigned-off-by: Ada Tester <ada@example.org>")
    repository.edit("kernel/workqueue.c", "return 2;", "return 3; // more")
    repository.commit("workqueue: idle more")
    text = repository.mbox("--cover-letter", "--base=master", "-v3", "master..topic")
    repository.git("switch", "--quiet", "master")
    return text.replace("*** SUBJECT HERE ***", "workqueue: more").replace(
        "*** BLURB HERE ***", "Why.\n\nchange-id: 20260102-more-0123456789ab"
    )


# --- what works ---------------------------------------------------------------------------------------------------


def test_a_settings_study_has_a_baseline_only(tree: Tree, workspace: Workspace, repository) -> None:
    result = passed(submit(tree, workspace, None))
    assert result.candidate is None
    assert result.baseline
    assert result.baseline.commit == repository.git("rev-parse", "master")
    assert result.baseline.tree_oid == repository.git("rev-parse", "master^{tree}")
    assert result.baseline.release == "6.12.99-toy"
    assert result.toolchain.startswith("gcc ")


def test_a_mailed_series(tree: Tree, workspace: Workspace, repository, series_of_two: str) -> None:
    result = passed(submit(tree, workspace, mbox(series_of_two)))
    assert result.title == "workqueue: more"
    assert result.series_key == "20260102-more-0123456789ab"
    assert [patch.subject for patch in result.patches] == ["workqueue: raise max_active", "workqueue: idle more"]
    assert [(patch.insertions, patch.deletions, patch.files) for patch in result.patches] == [
        (1, 1, ["kernel/workqueue.c"])
    ] * 2
    assert result.patches[0].author == "Ada Tester <ada@example.org>"
    assert result.baseline and result.candidate
    assert result.baseline.commit == repository.git("rev-parse", "master")
    assert result.candidate.tree_oid == repository.git("rev-parse", "topic^{tree}")
    assert [(finding.severity, finding.where) for finding in result.checkpatch] == [
        ("warning", "kernel/workqueue.c:10")
    ]
    assert result.series_mbox
    assert "workqueue: idle more" in workspace.path_of(result.series_mbox).read_text()


def test_the_candidate_can_be_checked_out_from_its_bundle_alone(
    tree: Tree, workspace: Workspace, repository, series_of_two: str
) -> None:
    result = passed(submit(tree, workspace, mbox(series_of_two)))
    assert result.candidate and result.baseline
    with checked_out(result.baseline, workspace) as of_base, checked_out(result.candidate, workspace) as checked:
        base, files = of_base.files, checked.files
        assert "return 3;" in (files / "kernel/workqueue.c").read_text()
        assert "return 2;" in (base / "kernel/workqueue.c").read_text()  # hard links were not written through
        assert (files / "kernel/fork.c").stat().st_ino == (base / "kernel/fork.c").stat().st_ino
    assert not files.exists()
    assert base.exists()


def test_the_same_series_is_the_same_commit(tree: Tree, workspace: Workspace, series_of_two: str) -> None:
    one, two = (passed(submit(tree, workspace, mbox(series_of_two))) for _ in range(2))
    assert one.candidate == two.candidate


def test_a_branch_is_compared_with_its_merge_base(
    tree: Tree, workspace: Workspace, repository, series_of_two: str
) -> None:
    fork_point = repository.git("rev-parse", "master")
    repository.edit("kernel/fork.c", "for (;;)", "while (1)")
    repository.commit("fork: go on")  # master moves on; the branch does not
    result = passed(submit(tree, workspace, branch(repository, "topic")))
    assert result.baseline and result.candidate
    assert result.baseline.commit == fork_point
    assert result.candidate.commit == repository.git("rev-parse", "topic")
    assert result.title == "topic (2 patches)"


def test_a_named_base_is_honoured(tree: Tree, workspace: Workspace, repository, series_of_two: str) -> None:
    first = repository.git("rev-parse", "topic~1")
    repository.git("merge", "--quiet", "--ff-only", first)
    result = passed(submit(tree, workspace, branch(repository, "topic", base="topic~1".replace("~1", "") and first)))
    assert result.baseline and result.baseline.commit == first
    assert [patch.subject for patch in result.patches] == ["workqueue: idle more"]
    assert result.title == "workqueue: idle more"
    assert result.series_key == "workqueue: idle more"


def test_base_commit_of_a_mailed_series_is_honoured(
    tree: Tree, workspace: Workspace, repository, series_of_two: str
) -> None:
    fork_point = repository.git("rev-parse", "master")
    repository.edit("kernel/workqueue.c", "512", "2048")  # the series no longer applies to master
    repository.commit("workqueue: conflict")
    result = passed(submit(tree, workspace, mbox(series_of_two)))
    assert result.baseline and result.baseline.commit == fork_point


def test_replies_and_older_versions_are_sorted_out(tree: Tree, workspace: Workspace, repository) -> None:
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
def test_a_thread_of_two_versions_is_read_as_its_latest_only(
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


def test_another_import_of_the_same_files_counts_as_the_same_base(
    tree: Tree, workspace: Workspace, repository, tmp_path: Path
) -> None:
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


# --- what is the submitter's ----------------------------------------------------------------------------------------


def test_a_conflict_names_patch_file_and_hunk(tree: Tree, workspace: Workspace, repository, series_of_two: str) -> None:
    broken = series_of_two.replace(" int nr_idle(void)", " int nr_idle_elsewhere(void)")
    result = submit(tree, workspace, mbox(broken))
    assert refused(result) == (
        "patch 2/2 (workqueue: idle more) does not apply: kernel/workqueue.c, the hunk at line 7"
    )
    assert result.failure
    assert " int nr_idle_elsewhere(void)" in result.failure.excerpt
    assert "hint:" not in result.failure.excerpt
    assert "base-commit it names" in result.failure.advice


def test_a_patch_to_a_file_that_is_not_there(tree: Tree, workspace: Workspace, series_of_two: str) -> None:
    message = refused(submit(tree, workspace, mbox(series_of_two.replace("kernel/workqueue.c", "kernel/nowhere.c"))))
    assert "kernel/nowhere.c: does not exist in index" in message


@pytest.mark.parametrize("text", ["", "\n\n", "garbage without a patch", "\x01\xff binary", "From a b\n\nhello"])
def test_what_is_no_patch(tree: Tree, workspace: Workspace, text: str) -> None:
    assert refused(submit(tree, workspace, mbox(text))) == "the mbox holds no patch"


def test_an_incomplete_series(tree: Tree, workspace: Workspace, series_of_two: str) -> None:
    first = series_of_two.index("Subject: [PATCH v3 1/2]")
    start, end = series_of_two.rindex("\nFrom ", 0, first), series_of_two.index("\nFrom ", first)
    assert "1/2 is missing" in refused(submit(tree, workspace, mbox(series_of_two[:start] + series_of_two[end:])))


def test_a_series_that_changes_nothing(tree: Tree, workspace: Workspace, repository) -> None:
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
def test_what_cannot_be_found_is_named(
    tree: Tree, workspace: Workspace, repository, series_of_two: str, ref: str, base: str | None, expected: str
) -> None:
    assert expected in refused(submit(tree, workspace, branch(repository, ref, base)))


def test_a_base_that_is_no_ancestor(tree: Tree, workspace: Workspace, repository, series_of_two: str) -> None:
    repository.edit("kernel/fork.c", "for (;;)", "while (1)")
    repository.commit("fork: go on")
    assert "is not an ancestor of topic" in refused(submit(tree, workspace, branch(repository, "topic", base="master")))


# --- what is hostile ----------------------------------------------------------------------------------------------


def test_only_listed_local_paths_are_fetched(tree: Tree, workspace: Workspace, repository, tmp_path: Path) -> None:
    secret = type(repository)(tmp_path / "secret")
    secret.path.mkdir()
    secret.git("init", "--quiet", "--initial-branch=topic")
    secret.commit("secret")
    for url in (str(secret.path), f"file://{secret.path}", f"{repository.path}/../secret"):
        assert "is not one that this lab may fetch from" in refused(
            submit(tree, workspace, branch(secret, "topic", url=url))
        )


@pytest.mark.parametrize(
    "path", ["../escaped", ".git/hooks/post-applypatch", "kernel/../../escaped", "/escaped", ".git/config"]
)
def test_a_patch_cannot_write_outside_its_tree(tree: Tree, workspace: Workspace, path: str) -> None:
    text = (
        "From: Eve <eve@example.org>\nSubject: [PATCH] escape\nDate: Fri, 2 Jan 2026 03:04:05 +0000\n\nx\n---\n"
        f"diff --git a/{path} b/{path}\nnew file mode 100755\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+#!/bin/sh\n"
    )
    refused(submit(tree, workspace, mbox(text)))
    assert not list(workspace.cache.rglob("escaped"))


def test_a_link_in_the_series_is_not_followed(tree: Tree, workspace: Workspace, repository, tmp_path: Path) -> None:
    target = tmp_path / "outside"
    target.mkdir()
    repository.git("switch", "--quiet", "-c", "links")
    (repository.path / "way").symlink_to(target)
    (repository.path / "kernel" / "workqueue.c").unlink()
    (repository.path / "kernel" / "workqueue.c").symlink_to("/etc/passwd")
    repository.commit("links")
    repository.git("switch", "--quiet", "master")
    result = passed(submit(tree, workspace, branch(repository, "links")))
    assert result.candidate
    with checked_out(result.candidate, workspace) as checked:
        files = checked.files
        assert (files / "way").is_symlink()
        assert (files / "kernel" / "workqueue.c").is_symlink()
    assert list(target.iterdir()) == []


def test_hooks_and_configuration_of_a_fetched_repository_are_not_used(
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


# --- pure parts ---------------------------------------------------------------------------------------------------


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
def test_version_of_a_subject(subject: str, version: int) -> None:
    assert Mail(subject=subject, author="", text="", body="").version == version


def test_find_hunk() -> None:
    diff = "--- a/one\n+++ b/one\n@@ -3 +3 @@\n-a\n+b\n"
    diff += "--- a/two\n+++ b/two\n@@ -3,2 +3 @@ f()\n c\n-d\n@@ -30 +29 @@\n-e\n"
    assert find_hunk(diff, "two", 3) == "@@ -3,2 +3 @@ f()\n c\n-d"
    assert find_hunk(diff, "one", 3) == "@@ -3 +3 @@\n-a\n+b"
    assert find_hunk(diff, "two", 4) == ""
