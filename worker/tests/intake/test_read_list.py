"""New mails of a list are read from a real archive's repositories."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest
from publicinbox import PublicInbox, public_inbox
from thread_mails import mail, series

from wqlab_contracts.messages.list_mails import ListMails, ListPosition, ListSource
from wqlab_worker.failures import InfrastructureError
from wqlab_worker.intake.read_list import read_for_preview, read_list
from wqlab_worker.workspace import Workspace

pytestmark = pytest.mark.integration

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
Read = Callable[..., ListMails]


@pytest.fixture
def inbox(tmp_path: Path) -> Iterator[PublicInbox]:
    with public_inbox(tmp_path / "archive") as started:
        yield started


@pytest.fixture
def read(inbox: PublicInbox, workspace: Workspace) -> Read:
    def read(position: ListPosition | None = None, *, since: datetime = LONG_AGO, limit: int = 1000) -> ListMails:
        archive = inbox.archive(epochs=f"{inbox.url}/{{epoch}}")
        return read_list(ListSource(archive=archive, position=position, since=since), workspace, limit=limit)

    return read


def ids(found: ListMails) -> list[str]:
    return [each.message_id for each in found.mails]


def git(inbox: PublicInbox, epoch: int, *arguments: str) -> str:
    command = ["git", f"--git-dir={inbox.folder}/wq/git/{epoch}.git", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_mails_have_what_rules_look_at(inbox: PublicInbox, read: Read) -> None:
    asking = "Why.\n\nwqlab: test\n"
    inbox.import_mails(
        [
            mail("[PATCH v2 0/1] workqueue: less", "cover@x", body=asking),
            mail("[PATCH v2 1/1] workqueue: less", "patch@x", to="cover@x", file="fs/xfs/xfs_log.c"),
            mail("Re: [PATCH v2 1/1] workqueue: less", "reply@x", to="patch@x", body="> wqlab: test\nwqlab: tests\n"),
        ]
    )
    cover, patch, reply = read().mails
    assert [each.asks for each in (cover, patch, reply)] == [True, False, False]
    assert (cover.version, cover.number, cover.total, cover.has_patch) == (2, 0, 1, False)
    assert (patch.paths, patch.in_reply_to, patch.has_patch) == (["fs/xfs/xfs_log.c"], "cover@x", True)
    assert reply.is_reply and reply.subject.startswith("Re:")
    assert cover.archived_at.year == 2026


def test_each_mail_is_read_once_and_in_order(inbox: PublicInbox, read: Read) -> None:
    inbox.import_mails(series("workqueue: less", patches=3))
    first = read(limit=3)
    assert ids(first) == ["less-v1-0@x", "less-v1-1@x", "less-v1-2@x"] and not first.is_complete
    second = read(first.position)
    assert ids(second) == ["less-v1-3@x"] and second.is_complete
    assert ids(read(second.position)) == []
    inbox.receive(mail("[PATCH] irq: later", "later@x"))
    assert ids(read(second.position)) == ["later@x"]


def test_first_read_begins_at_the_time_of_interest(inbox: PublicInbox, read: Read) -> None:
    inbox.import_mails(series("workqueue: old"))
    now = datetime.now(UTC)
    assert read(since=now).mails == []
    # An archive's time of a mail is that of its last Received header.
    received = f"Received: from a.example.org by b.example.org; {format_datetime(now + timedelta(seconds=5))}\nFrom: "
    inbox.receive(mail("[PATCH] irq: new", "new@x").replace("From: ", received, 1))
    assert ids(read(since=now)) == ["new@x"]


def test_lost_clone_repeats_nothing(inbox: PublicInbox, read: Read, workspace: Workspace) -> None:
    inbox.import_mails(series("workqueue: less"))
    found = read()
    for clone in workspace.mirrors.glob("list-*"):
        subprocess.run(["rm", "-r", str(clone)], check=True)
    inbox.receive(mail("[PATCH] irq: later", "later@x"))
    assert ids(read(found.position)) == ["later@x"]


def test_removed_mails_are_named(inbox: PublicInbox, read: Read) -> None:
    text = mail("[PATCH] irq: spam", "spam@x")
    inbox.receive(text)
    found = read()
    inbox.remove(text)
    later = read(found.position)
    assert later.removed == ["spam@x"] and later.mails == []


def test_mails_go_on_in_the_next_epoch(inbox: PublicInbox, read: Read) -> None:
    inbox.import_mails(series("workqueue: less"))
    found = read()
    subprocess.run(
        ["git", "clone", "--quiet", "--mirror", f"{inbox.folder}/wq/git/0.git", f"{inbox.folder}/wq/git/1.git"],
        check=True,
    )
    git(inbox, 1, "update-ref", "-d", "refs/heads/master")
    inbox.import_mails([mail("[PATCH] irq: next", "next@x")], epoch=1)
    moved = read(found.position)
    assert moved.position == ListPosition(epoch=1) and not moved.is_complete
    assert ids(read(moved.position)) == ["next@x"]
    assert ids(read()) == ["next@x"], "a list that was never read begins with its last epoch"


def test_rewritten_history_leaves_nothing_out(inbox: PublicInbox, read: Read) -> None:
    inbox.import_mails(series("workqueue: less"))
    found = read()
    git(inbox, 0, "update-ref", "-d", "refs/heads/master")
    inbox.import_mails([*series("workqueue: less")[1:], mail("[PATCH] irq: later", "later@x")])
    assert ids(read(found.position))[-1] == "later@x"


def test_archive_that_is_gone_is_a_failure_of_the_archive(inbox: PublicInbox, read: Read) -> None:
    (inbox.folder / "wq" / "git" / "0.git").rename(inbox.folder / "moved")
    with pytest.raises(InfrastructureError, match="has no repository"):
        read()


@pytest.mark.nightly
def test_thousand_mails_are_read_at_once(inbox: PublicInbox, read: Read) -> None:
    inbox.import_mails([mail(f"[PATCH] irq: number {number}", f"n{number}@x") for number in range(1_000)])
    found = read()
    assert len(found.mails) == 1_000 and found.is_complete


def test_preview_reads_what_the_clone_lacks_and_loses_nothing_of_the_list(
    inbox: PublicInbox, read: Read, workspace: Workspace
) -> None:
    inbox.import_mails([*series("workqueue: old"), mail("Re: [PATCH] irq: fine", "reply@x")])
    now = datetime.now(UTC)
    received = f"Received: from a.example.org by b.example.org; {format_datetime(now)}\nFrom: "
    inbox.receive(mail("[PATCH] irq: new", "new@x").replace("From: ", received, 1))
    watched = read(since=now - timedelta(hours=1))
    assert ids(watched) == ["new@x"]
    source = ListSource(archive=inbox.archive(epochs=f"{inbox.url}/{{epoch}}"), since=LONG_AGO)
    heads = [f"old-v1-{number}@x" for number in range(len(series("workqueue: old")))]
    found = read_for_preview(source, workspace, limit=100)
    assert ids(found) == [*heads, "new@x"] and found.is_complete
    few = read_for_preview(source, workspace, limit=2)
    assert ids(few) == heads[:2] and not few.is_complete
    inbox.receive(mail("[PATCH] irq: later", "later@x"))
    read_for_preview(source.model_copy(update={"since": now}), workspace, limit=100)
    assert ids(read(watched.position)) == ["later@x"]


def test_read_ends_before_it_is_too_large_and_goes_on(inbox: PublicInbox, read: Read) -> None:
    diff = "".join(f"diff --git a/{'d' * 250}/{number} b/{'d' * 250}/{number}\n" for number in range(300))
    inbox.import_mails(
        [mail(f"[PATCH] irq: {number}", f"n{number}@x", body=f"Why.\n---\n{diff}") for number in range(150)]
    )
    found = read()
    assert 50 < len(found.mails) < 150 and not found.is_complete
    rest = read(found.position)
    assert len(found.mails) + len(rest.mails) == 150 and rest.is_complete


def test_replies_that_may_be_commands_are_returned_as_they_came(inbox: PublicInbox, read: Read) -> None:
    command = mail("Re: result", "command@x", to="result@lab", body="Ok.\n\n  WQLAB: stop\n")
    huge = mail("Re: result", "huge@x", to="result@lab", body="wqlab: stop\n" + "x" * 70_000 + "\n")
    inbox.import_mails(
        [
            mail("Re: result", "talk@x", to="result@lab", body="> wqlab: stop\nwhy?\n"),
            command,
            huge,
            mail("[PATCH] x", "patch@x", body="wqlab: test\n"),
        ]
    )
    found = read()
    assert ids(found) == ["talk@x", "command@x", "huge@x", "patch@x"]
    (reply,) = found.replies
    assert reply.message_id == "command@x"
    assert reply.data.decode() == command.partition("\n")[2]
    assert read(limit=2).replies == [reply]
