"""Commands in replies that the archive of a watched list has: followed once, by whom the watch names."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update

from wqlab_contracts.celery_names import LIST_REPLY
from wqlab_contracts.enums import CommandState, DecisionState, Outcome
from wqlab_contracts.messages.list_mails import ArchivedReply, ListMails, ListPosition
from wqlab_contracts.messages.list_reads import ListReadResult
from wqlab_server.intake.mailbox.check_signature import check_signature
from wqlab_server.models import Delivery, ListReply, WatchDecisionRow
from wqlab_server.pipeline.list_replies import handle, nudge_due
from wqlab_server.storage.db import clock

from ..support.datafolder import ARCHIVES, write_data_folder
from ..support.lab import LabUnderTest
from ..support.watched_list import EPOCHS, List
from .test_received_mail import commands, lab, lookup, mail, received, reply

__all__ = ["lab", "mail"]

pytestmark = pytest.mark.integration
BO = "Bo Boole <bo@example.org>"


@pytest.fixture(params=[False, True], ids=["checked-by-lab", "checked-by-archive"])
def trusted(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def data_dir(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    folder = tmp_path / "data"
    write_data_folder(folder)
    trusted = "trusted" in request.fixturenames and request.getfixturevalue("trusted")
    (folder / "intake/archives.yaml").write_text(ARCHIVES + EPOCHS + ("    dkim_checked: true\n" if trusted else ""))
    return folder


class Archive(List):
    """A watched list whose archive has replies."""

    def __init__(self, lab: LabUnderTest, **watch: Any) -> None:
        super().__init__(lab)
        self.watch(**watch)

    def take(self, submission_id: int) -> None:
        """Record that the watch took the series of a submission."""
        with self.lab.transaction() as session:
            texts = dict.fromkeys(("root", "message_id", "subject", "author", "author_address", "subject_key"), "x")
            session.add(
                WatchDecisionRow(
                    watch="wq", archive="lore", revision=1, targets=[], state=DecisionState.TAKEN,
                    submission_id=submission_id, **texts,
                )
            )  # fmt: skip

    def has(self, *raw: bytes) -> list[str]:
        """Let the worker read these replies, act on them, and return what was done."""
        read_id, claim = self.claim()
        self.commits += 1
        found = ListMails(
            position=ListPosition(epoch=0, commit=f"{self.commits:040x}"),
            replies=[ArchivedReply.of(f"r{number}@x", data) for number, data in enumerate(raw)],
        )
        self.lab.sent.clear()
        self.finish(read_id, claim.fence, ListReadResult(outcome=Outcome.PASSED, found=found))
        return self.act()

    def act(self) -> list[str]:
        due = [message.id for message in self.lab.sent if message.task == LIST_REPLY and message.id]
        self.lab.sent.clear()
        check = partial(check_signature, lookup=lookup)
        return [handle(self.lab.sessions, self.lab.settings, self.lab.data, number, check) for number in due]

    def waiting(self) -> list[ListReply]:
        with self.lab.transaction() as session:
            return list(session.scalars(select(ListReply)))


def through_list(data: bytes) -> bytes:
    """Return a mail as a mailing list sends it on: marked as bulk, with a footer that no signature covers."""
    return b"Precedence: bulk\r\n" + data + b"-- \nlkml mailing list\n"


def test_author_commands_through_the_archive_once(lab: LabUnderTest, mail: Delivery) -> None:
    archive = Archive(lab)
    data = b"Precedence: bulk\nList-Id: <lkml.lists.example>\n" + reply(mail.message_id, "wqlab: stop\n")
    assert archive.has(data) == ["done: no more mails about this revision"]
    # The archive is read again from an earlier position, and the lab's own mail server gives the lab the same mail.
    assert archive.has(data, data) == ["ignored: this mail was received before"] * 2
    assert received(lab, data.partition(b"\n")[2]) == "ignored: this mail was received before"
    assert (len(commands(lab)), archive.waiting()) == (1, [])


def test_copy_of_a_list_with_a_footer_adds_nothing_to_a_followed_mail(lab: LabUnderTest, mail: Delivery) -> None:
    archive = Archive(lab)
    data = b"Message-ID: <c@example.org>\n" + reply(mail.message_id, "wqlab: stop\n")
    assert received(lab, data).startswith("done: ")
    assert archive.has(through_list(data)) == ["ignored: this mail was received before"]
    assert [each.state for each in commands(lab)] == [CommandState.DONE]


def test_forged_copy_in_the_archive_does_not_block_the_real_mail(lab: LabUnderTest, mail: Delivery) -> None:
    archive = Archive(lab)
    data = b"Message-ID: <c@example.org>\n" + reply(mail.message_id, "wqlab: stop\n")
    (said,) = archive.has(through_list(data))
    assert said.startswith("refused: ") and "body hash mismatch" in said
    assert received(lab, data).startswith("done: ")


def test_archive_that_checks_senders_needs_no_signature(lab: LabUnderTest, mail: Delivery, trusted: bool) -> None:
    archive = Archive(lab)
    unsigned = reply(mail.message_id, "wqlab: stop\n")
    unsigned = unsigned[unsigned.index(b"From: ") :]
    (said,) = archive.has(through_list(unsigned))
    assert said == ("done: no more mails about this revision" if trusted else "refused: the mail has no DKIM signature")
    twice = unsigned.replace(b"From: ", b"From: Eve <eve@evil.example>\nFrom: ", 1)
    (said,) = archive.has(twice)
    assert said.startswith("refused: ")


def test_commanders_of_the_watch_that_took_the_series(lab: LabUnderTest, mail: Delivery) -> None:
    archive = Archive(lab, commanders=["Bo@example.org"])
    (said,) = archive.has(reply(mail.message_id, "wqlab: stop\n", sender=BO))
    assert said == (
        "refused: bo@example.org is neither the author of the series nor named by its watch or WQLAB_MAIL_COMMANDERS"
    )
    archive.take(1)
    (said,) = archive.has(reply(mail.message_id, "wqlab: stop\n", sender=BO, age=timedelta(minutes=1)))
    assert said == "done: no more mails about this revision"
    # Repetitions of the submission are under the same watch, also by the lab's own mail server.
    lab.post("submissions/1/retry")
    said = received(lab, reply(mail.message_id, "wqlab: stop\n", sender=BO, age=timedelta(minutes=2)))
    assert said == "done: submission 2 is canceled; no more mails about this revision"
    (said,) = archive.has(reply(mail.message_id, "wqlab: stop\n", sender="Eve <eve@example.org>"))
    assert said.startswith("refused: eve@example.org is neither")


def test_only_replies_to_mails_of_the_lab_are_kept(lab: LabUnderTest, mail: Delivery) -> None:
    archive = Archive(lab)
    assert archive.has(reply("other@example.org", "wqlab: stop\n"), b"\xff no mail", b"") == []
    automatic = b"Auto-Submitted: auto-replied\n" + reply(mail.message_id, "wqlab: stop\n")
    assert archive.has(automatic, reply(mail.message_id, "> wqlab: stop\n")) == []
    assert (commands(lab), archive.waiting()) == ([], [])


def test_a_key_that_cannot_be_looked_up_is_asked_for_later(lab: LabUnderTest, mail: Delivery) -> None:
    archive = Archive(lab)
    slow = reply(mail.message_id, "wqlab: stop\n", sender="Ada <ada@slow.example>", signer="slow.example")
    (said,) = archive.has(slow)
    assert said.startswith("later: DNS does not answer")
    (row,) = archive.waiting()
    assert row.attempts == 1
    with lab.transaction() as session:
        nudge_due(session, clock(session))
    assert archive.act() == []
    for _ in range(9):
        with lab.transaction() as session:
            session.execute(update(ListReply).values(due_at=clock(session)))
            session.flush()
            nudge_due(session, clock(session))
        (said,) = archive.act()
    assert said.startswith("given up: ")
    assert archive.waiting() == []
