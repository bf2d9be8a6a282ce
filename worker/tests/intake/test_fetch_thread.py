"""Find a series by Message-ID in a real public-inbox, read it in the sandbox, and keep its mails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import hostile_archive as hostile
import pytest
from hostile_archive import HostileServer
from publicinbox import PublicInbox
from thread_mails import mail, series

from wqlab_contracts.enums import ArtifactKind
from wqlab_contracts.mails import mbox
from wqlab_contracts.messages import TakenThread, ThreadSeries
from wqlab_contracts.specs import Archive
from wqlab_worker.failures import InfrastructureError, UserError
from wqlab_worker.intake.archive import MIB, ArchiveClient, Limits
from wqlab_worker.intake.fetch_thread import Fetched, fetch_thread
from wqlab_worker.workspace import Workspace

from .conftest import CHATTER

QUICK = Limits(pauses_s=(0.01,))


@pytest.fixture
def lab(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "cache")


@pytest.fixture
def server() -> Iterator[HostileServer]:
    with HostileServer().running() as server:
        yield server


def fetch(
    lab: Workspace,
    archives: Sequence[Archive],
    message_id: str,
    revision: int | None = None,
    *,
    limits: Limits = QUICK,
    inspected: bool = False,
) -> Fetched:
    wanted = ThreadSeries(message_id=message_id, revision=revision)
    return fetch_thread(wanted, archives, lab, ArchiveClient(lab, limits=limits), inspected=inspected)


def ids(taken: TakenThread, role: str = "patch") -> list[str]:
    return [each.message_id for each in taken.mails if each.role == role]


def test_latest_revision_is_found_in_another_thread(lab: Workspace, inbox: PublicInbox) -> None:
    found = fetch(lab, [inbox.archive()], f"{inbox.url}/less-v1-1@x/#t", inspected=True)
    taken = found.taken
    assert (taken.revision, taken.revisions, taken.notes) == (2, [1, 2], [])
    assert (taken.message_id, taken.archive) == ("less-v1-1@x", "loopback")
    assert taken.url == f"{inbox.url}/less-v2-0@x/"
    assert taken.source is not None
    assert (taken.source.message_id, taken.source.sender) == ("less-v2-0@x", "Ada <ada@example.org>")
    assert not taken.source.verified, "the sandbox cannot vouch for a mail"
    assert [(each.role, each.message_id) for each in taken.mails] == [
        ("cover", "less-v2-0@x"), ("patch", "less-v2-1@x"), ("patch", "less-v2-2@x"),
    ]  # fmt: skip
    assert [each.url for each in taken.mails] == [f"{inbox.url}/less-v2-{number}@x/" for number in range(3)]
    assert (taken.mbox.kind, taken.mbox.name) == (ArtifactKind.SERIES, "thread.mbox")
    mails = mbox.parse_mails(lab.path_of(taken.mbox).read_text(), escaped=True)
    assert [each.message_id for each in mails] == [each.message_id for each in taken.mails]
    assert found.inspection is not None and found.inspection.usable
    assert [patch.files[0].path for patch in found.inspection.patches] == ["kernel/workqueue.c"] * 2


def test_named_revision_is_taken_with_the_trailers_of_its_replies(lab: Workspace, inbox: PublicInbox) -> None:
    taken = fetch(lab, [inbox.archive()], "less-v2-0@x", 1).taken
    assert (taken.revision, ids(taken)) == (1, ["less-v1-1@x", "less-v1-2@x"])
    assert [(each.message_id, each.trailers) for each in taken.mails if each.role == "reply"] == [
        ("less-tag@x", ["Reviewed-by: Bo <bo@example.org>"])
    ]
    assert taken.replies == 1


def test_renamed_revision_is_found_by_its_change_id(lab: Workspace, inbox: PublicInbox) -> None:
    taken = fetch(lab, [inbox.archive()], "renamed-v1-2@x").taken
    assert (taken.revision, taken.subject) == (2, "sched: rename more")
    assert taken.series_key == "20260105-renamed-0123456789ab"


def test_third_revision_without_the_second_is_taken(lab: Workspace, inbox: PublicInbox) -> None:
    assert fetch(lab, [inbox.archive()], "early-v1-0@x").taken.revisions == [1, 3]
    with pytest.raises(UserError, match="has no revision 2; the archive has v1 and v3"):
        fetch(lab, [inbox.archive()], "early-v1-0@x", 2)


def test_incomplete_series_names_its_missing_patches(lab: Workspace, inbox: PublicInbox) -> None:
    with pytest.raises(UserError, match="v1 of the series is incomplete: patch 2/3 is missing"):
        fetch(lab, [inbox.archive()], "half-v1-1@x")


def test_series_in_several_threads_is_found_by_any_of_its_mails(lab: Workspace, inbox: PublicInbox) -> None:
    for message_id in ("parts-0@x", "parts-2@x"):
        taken = fetch(lab, [inbox.archive()], message_id).taken
        assert (ids(taken, "cover"), ids(taken)) == (["parts-0@x"], ["parts-1@x", "parts-2@x"])
        assert taken.series_key == "20260105-parts-0123456789ab"


def test_thread_of_two_thousand_mails_is_read(lab: Workspace, inbox: PublicInbox) -> None:
    taken = fetch(lab, [inbox.archive()], f"busy-r{CHATTER // 2}@x").taken
    assert ids(taken) == ["busy-v1-1@x"]
    assert taken.replies == 2  # the trailer, and the reply that it answers
    assert [each.message_id for each in taken.mails if each.role == "reply"] == ["busy-tag@x"]


def test_odd_id_and_lines_that_look_like_a_mail(lab: Workspace, inbox: PublicInbox) -> None:
    taken = fetch(lab, [inbox.archive()], f"{inbox.url}/a%2Fb%2520c+d=e@x/").taken
    assert taken.mails[0].message_id == "a/b%20c+d=e@x"
    assert taken.author == "Zoë <zoe@example.org>"
    (patch,) = mbox.parse_mails(lab.path_of(taken.mbox).read_text(), escaped=True)
    assert "\nFrom here\n" in patch.body


def test_unknown_message_names_the_archives(lab: Workspace, inbox: PublicInbox, server: HostileServer) -> None:
    with pytest.raises(UserError, match=r"no archive has a message none@x \(asked: hostile, loopback\)"):
        fetch(lab, [server.archive(), inbox.archive()], "none@x")
    with pytest.raises(UserError, match="none is configured"):
        fetch(lab, [], "none@x")


def test_second_archive_is_asked(lab: Workspace, inbox: PublicInbox, server: HostileServer) -> None:
    assert fetch(lab, [server.archive(), inbox.archive()], "less-v1-0@x").taken.archive == "loopback"
    server.answer = hostile.html
    assert fetch(lab, [server.archive(), inbox.archive()], "less-v1-0@x").taken.archive == "loopback"
    with pytest.raises(InfrastructureError, match="archive hostile answers with text/html"):
        fetch(lab, [server.archive(), inbox.archive()], "none@x")  # the first archive may have it


def test_archive_without_search_says_so(lab: Workspace, inbox: PublicInbox) -> None:
    taken = fetch(lab, [inbox.archive(search=None)], "less-v1-0@x").taken
    assert taken.revision == 1
    assert taken.notes == ["archive loopback has no search, so later revisions in other threads are not known"]
    with pytest.raises(UserError, match="has no revision 2; the archive has v1"):
        fetch(lab, [inbox.archive(search=None)], "less-v1-0@x", 2)


def test_named_revision_of_the_thread_needs_no_search(lab: Workspace, server: HostileServer) -> None:
    server.answer = lambda handler: (
        hostile.mails("".join(series("wq: less")))(handler) if handler.command == "GET" else hostile.html(handler)
    )
    assert fetch(lab, [server.archive()], "less-v1-0@x", 1).taken.revision == 1
    with pytest.raises(InfrastructureError, match="instead of mails"):
        fetch(lab, [server.archive()], "less-v1-0@x")


def test_two_series_under_one_cover_letter_are_a_user_error(lab: Workspace, server: HostileServer) -> None:
    other = mail("[PATCH 1/2] another start", "other-1@x", to="less-v1-0@x")
    server.answer = hostile.mails("".join([*series("wq: less"), other]))
    with pytest.raises(UserError, match="more than one series under one cover letter") as error:
        fetch(lab, [server.archive()], "less-v1-0@x")
    assert "submit them as an mbox" in error.value.failure.advice


def test_thread_that_is_too_large_is_a_user_error(lab: Workspace, inbox: PublicInbox, server: HostileServer) -> None:
    server.answer = hostile.bomb
    limits = Limits(expanded_bytes=4 * MIB)
    with pytest.raises(UserError, match="the thread of a@b has more than 4 MiB of mails"):
        fetch(lab, [server.archive()], "a@b", limits=limits)
    server.answer = lambda handler: (
        hostile.mails("".join(series("wq: less")))(handler) if handler.command == "GET" else hostile.bomb(handler)
    )
    with pytest.raises(UserError, match="the search for other revisions gives more than 4 MiB of mails"):
        fetch(lab, [server.archive()], "less-v1-0@x", limits=limits)


def test_thread_of_too_many_mails_is_a_user_error(lab: Workspace, server: HostileServer) -> None:
    many = mail("x", "a@b", body="\n") * 10_002
    server.answer = hostile.mails(many)
    with pytest.raises(UserError, match="the thread has more than 10000 mails"):
        fetch(lab, [server.archive()], "a@b")


@pytest.mark.parametrize("content", ["", "no mail at all\n", "From x\n\n\0\n", mail("[PATCH] x", "other@x")])
def test_answer_without_the_message_is_a_user_error(lab: Workspace, server: HostileServer, content: str) -> None:
    server.answer = hostile.mails(content)
    with pytest.raises(UserError, match="the archive's answer does not contain a@b"):
        fetch(lab, [server.archive()], "a@b")


def test_control_character_in_a_patch_is_a_user_error(lab: Workspace, server: HostileServer) -> None:
    server.answer = hostile.mails(mail("[PATCH] x \x1b[31m", "a@b"))
    with pytest.raises(UserError, match="a@b cannot be applied: the Subject of message 1 has the control character"):
        fetch(lab, [server.archive()], "a@b")


def test_bytes_that_are_no_text_do_not_stop_a_thread(lab: Workspace, server: HostileServer) -> None:
    raw = mail("[PATCH] x", "a@b", author="Zo\xeb <z@x>").encode("latin-1")
    server.answer = hostile.raw_mails(raw)
    found = fetch(lab, [server.archive()], "a@b", inspected=True)
    assert found.taken.author == "Zo\N{REPLACEMENT CHARACTER} <z@x>"
    assert found.inspection is not None and found.inspection.usable
    assert "Signed-off-by: Zo\xeb <z@x>" in lab.path_of(found.taken.mbox).read_text()
