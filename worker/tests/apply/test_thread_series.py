"""Apply a series that is given by a Message-ID: from a real archive, and from mails that were taken before."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hostile_archive import HostileServer, html, mails
from publicinbox import PublicInbox, public_inbox

from wqlab_contracts.enums import ErrorKind, Outcome
from wqlab_contracts.messages import ApplyJob, ApplyResult, Series, ThreadSeries, ThreadSource
from wqlab_contracts.specs import Archive, Tree
from wqlab_worker.apply.apply_series import apply
from wqlab_worker.workspace import Workspace

from .submissions import branch, mbox, passed, refused, submit

if TYPE_CHECKING:
    from conftest import Repository


@pytest.fixture(scope="module")
def inbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PublicInbox]:
    with public_inbox(tmp_path_factory.mktemp("archive")) as inbox:
        yield inbox


@pytest.fixture
def server() -> Iterator[HostileServer]:
    with HostileServer().running() as server:
        yield server


def split(text: str) -> list[str]:
    """Return the mails that `git format-patch --stdout` prints, each with a first line `From ...`."""
    return [f"{part.rstrip()}\n\n" for part in re.split(r"(?m)^(?=From [0-9a-f]{40} )", text)[1:]]


def thread(message_id: str, tree: Tree, archive: Archive, revision: int | None = None) -> ApplyJob:
    return ApplyJob(
        submission_id=1,
        tree=tree,
        series=Series(thread=ThreadSeries(message_id=message_id, revision=revision)),
        thread=ThreadSource(archives=[archive]),
    )


def ids(text: str) -> list[str]:
    return re.findall(r"(?im)^message-id: <(.*)>$", text)


def reply(to: str, text: str) -> str:
    return (
        f"From x\nFrom: Bo <bo@example.org>\nSubject: Re: it\nDate: Tue, 6 Jan 2026 10:00:00 +0000\n"
        f"Message-ID: <reply-to-{to}>\nIn-Reply-To: <{to}>\n\n{text}\n"
    )


def applied_mbox(result: ApplyResult, workspace: Workspace) -> str:
    assert result.series_mbox
    return workspace.path_of(result.series_mbox).read_text()


def test_series_of_an_archive_is_applied_with_its_trailers(
    tree: Tree, workspace: Workspace, repository: Repository, inbox: PublicInbox
) -> None:
    repository.git("switch", "--quiet", "-c", "topic")
    repository.edit("kernel/workqueue.c", "512", "1024")
    repository.commit("workqueue: raise max_active\n\nFrom here on it is higher.")
    repository.edit("kernel/workqueue.c", "return 2;", "return 3; // more")
    repository.commit("workqueue: idle more")
    fork_point = repository.git("rev-parse", "master")
    arguments = ("--cover-letter", "--thread", "--base=master", "master..topic")
    first = repository.mbox(*arguments).replace("*** SUBJECT HERE ***", "workqueue: more")
    repository.edit("kernel/workqueue.c", "1024", "2048")
    repository.git("commit", "--quiet", "--amend", "--all", "--no-edit")
    second = repository.mbox("-v2", *arguments).replace("*** SUBJECT HERE ***", "workqueue: more")
    second = re.sub(r"(?m)(<\S+)\.git\.(ada@example.org>)", r"\1.v2.\2", second)  # format-patch repeats ids in a second
    repository.git("switch", "--quiet", "master")
    repository.edit("kernel/workqueue.c", "512", "4096")  # the series applies to its base-commit only
    repository.commit("workqueue: conflict")
    old, new = ids(first), ids(second)
    inbox.import_mails([*split(first), reply(old[2], "Acked-by: Bo <bo@example.org>")])
    inbox.import_mails([*split(second), reply(new[1], "Reviewed-by: Bo <bo@example.org>")])

    result = passed(apply(thread(old[0], tree, inbox.archive()), workspace))
    assert result.thread and result.baseline and result.candidate
    assert (result.thread.revision, result.thread.revisions) == (2, [1, 2])
    assert (result.title, result.series_key) == ("workqueue: more", "workqueue: more")
    assert [patch.message_id for patch in result.patches] == new[1:]
    assert result.baseline.commit == fork_point
    assert result.candidate.tree_oid == repository.git("rev-parse", "topic^{tree}")
    text = applied_mbox(result, workspace)
    assert "Reviewed-by: Bo <bo@example.org>" in text and "Acked-by" not in text
    assert "\nFrom here on it is higher.\n" in text.replace(">From here", "From here")

    # What was taken is used again, although the archive is gone, and an upload of the mails gives the same series.
    gone = thread(old[0], tree, inbox.archive(url="http://127.0.0.1:1/{message_id}/", search=None))
    again = gone.model_copy(update={"thread": ThreadSource(archives=[], taken=result.thread)})
    repeated = passed(apply(again, workspace))
    assert (repeated.candidate, repeated.thread) == (result.candidate, result.thread)
    uploaded = passed(submit(tree, workspace, mbox(second)))
    assert uploaded.series_key == result.series_key
    assert uploaded.candidate and uploaded.candidate.tree_oid == result.candidate.tree_oid

    one = passed(apply(thread(new[0], tree, inbox.archive(), revision=1), workspace))
    assert one.thread and one.thread.revision == 1
    assert [patch.message_id for patch in one.patches] == old[1:]
    assert "Acked-by: Bo <bo@example.org>" in applied_mbox(one, workspace)


def test_patch_that_was_sent_again_alone_is_applied(
    tree: Tree, workspace: Workspace, series_of_two: str, repository: Repository, server: HostileServer
) -> None:
    old = split(repository.mbox("--thread", "--base=master", "master..topic"))
    (first, second) = ids("".join(old))
    again = old[1].replace("[PATCH 2/2]", "[PATCH v2 2/2]").replace("return 3;", "return 4;")
    again = again.replace(f"Message-Id: <{second}>", "Message-Id: <again@x>")
    again = re.sub(r"(?m)^In-Reply-To: .*$", f"In-Reply-To: <{second}>", again)
    again = re.sub(r"(?m)^References: .*$", f"References: <{first}> <{second}>", again)
    server.answer = mails(
        "".join(f"From mboxrd@z Thu Jan  1 00:00:00 1970\n{each.partition(chr(10))[2]}" for each in (*old, again))
    )
    result = passed(apply(thread(first, tree, server.archive()), workspace))
    assert result.thread and result.thread.revision == 2
    assert [patch.message_id for patch in result.patches] == [first, "again@x"]
    assert "return 4;" in applied_mbox(result, workspace)


def test_series_that_does_not_apply_still_tells_what_was_taken(
    tree: Tree, workspace: Workspace, series_of_two: str, repository: Repository, server: HostileServer
) -> None:
    text = repository.mbox("--thread", "master..topic")
    repository.edit("kernel/workqueue.c", "512", "4096")
    repository.commit("workqueue: conflict")
    server.answer = mails(re.sub(r"(?m)^From [0-9a-f]{40} .*$", "From mboxrd@z Thu Jan  1 00:00:00 1970", text))
    result = apply(thread(ids(text)[1], tree, server.archive()), workspace)
    assert "patch 1/2 (workqueue: raise max_active) does not apply" in refused(result)
    assert result.thread and result.thread.subject == "workqueue: raise max_active"


def test_archive_that_fails_is_an_infrastructure_failure(
    tree: Tree, workspace: Workspace, server: HostileServer
) -> None:
    server.answer = html
    result = apply(thread("a@b", tree, server.archive()), workspace)
    assert result.outcome is Outcome.FAILED and result.failure
    assert result.failure.kind is ErrorKind.INFRASTRUCTURE
    assert "archive hostile answers with text/html" in result.failure.summary


# --- prerequisites ----------------------------------------------------------------------------------------------


@pytest.fixture
def needing(repository: Repository) -> str:
    """A patch on top of two prerequisites, which are not in the tree; branch `below` has the prerequisites."""
    repository.git("switch", "--quiet", "-c", "below")
    for old, new in (("512", "1024"), ("return 2;", "return 3;")):
        repository.edit("kernel/workqueue.c", old, new)
        repository.commit(f"workqueue: {new}")
    repository.git("switch", "--quiet", "-c", "above")
    repository.edit("kernel/workqueue.c", "1024", "2048")
    repository.commit("workqueue: 2048")
    text = repository.mbox("--base=master", "-1", "above")
    repository.git("switch", "--quiet", "master")
    return text


def test_prerequisite_patches_that_the_tree_lacks_are_named(
    tree: Tree, workspace: Workspace, repository: Repository, needing: str
) -> None:
    named = re.findall(r"(?m)^prerequisite-patch-id: (\w+)$", needing)
    assert len(named) == 2
    found = refused(submit(tree, workspace, mbox(needing)))
    assert found.startswith("the series needs patches that are not in the commits of toy after ")
    assert f"prerequisite-patch-id {named[0]}, {named[1]}" in found
    repository.git("cherry-pick", "below~")  # one of them
    assert refused(submit(tree, workspace, mbox(needing))).endswith(f"prerequisite-patch-id {named[1]}")


@pytest.mark.usefixtures("needing")
def test_branch_with_prerequisites_that_the_tree_lacks_has_them_in_the_series(
    tree: Tree, workspace: Workspace, repository: Repository
) -> None:
    """What the advice says. The base cannot be the commit above them: a baseline is built of the tree's own files."""
    result = passed(submit(tree, workspace, branch(repository, "above")))
    assert result.baseline and result.baseline.commit == repository.git("rev-parse", "master")
    assert [patch.subject for patch in result.patches][-1] == "workqueue: 2048" and len(result.patches) == 3
    below = repository.git("rev-parse", "below")
    assert "is not in tree toy, and its files are not those of" in refused(
        submit(tree, workspace, branch(repository, "above", base=below))
    )


def test_series_is_applied_to_the_first_commit_with_its_prerequisites(
    tree: Tree, workspace: Workspace, repository: Repository, needing: str
) -> None:
    repository.write({"README": "other\n"})
    repository.commit("toy: other")
    repository.git("cherry-pick", "below~2..below")
    base = repository.git("rev-parse", "HEAD")
    repository.edit("kernel/workqueue.c", "1024", "4096")
    repository.commit("workqueue: conflict")
    result = passed(submit(tree, workspace, mbox(needing)))
    assert result.baseline and result.baseline.commit == base
    unknown_base = re.sub(r"(?m)^base-commit: .*$", f"base-commit: {'0' * 40}", needing)
    result = passed(submit(tree, workspace, mbox(unknown_base)))
    assert result.baseline and result.baseline.commit == base


def test_prerequisites_on_merged_branches_are_applied_to_the_head(
    tree: Tree, workspace: Workspace, repository: Repository, needing: str
) -> None:
    fork_point = repository.git("rev-parse", "master")
    repository.git("cherry-pick", "below~")
    repository.git("switch", "--quiet", "-c", "side", fork_point)
    repository.git("cherry-pick", "below")
    repository.git("switch", "--quiet", "master")
    repository.git("merge", "--quiet", "--no-edit", "side")
    result = passed(submit(tree, workspace, mbox(needing)))
    assert result.baseline and result.baseline.commit == repository.git("rev-parse", "master")
    with pytest.raises(subprocess.CalledProcessError):
        repository.git("merge-base", "--is-ancestor", "master", "side")
