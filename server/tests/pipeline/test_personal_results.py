"""Results mailed to accounts, from the submission to the SMTP server: who gets which mail, once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select, update

from wqlab_contracts.enums import DeliveryState, OutboxEvent
from wqlab_server.models import MailAddress, PendingEvent, Submission
from wqlab_server.outbox.send import deliver
from wqlab_server.pipeline.announcements import handle
from wqlab_server.storage.db import clock

from ..support.lab import LabUnderTest, infrastructure_result, results
from ..support.personal_mail import account, configure, mails, measured, send, send_mail_from
from ..support.smtp import mail_server
from .test_answers import SERIES

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def configured(lab: LabUnderTest) -> None:
    lab.mark_all_good()
    send_mail_from(lab)


def test_owner_gets_one_mail(lab: LabUnderTest) -> None:
    ann = account(lab, "ann", "ann@example.org")
    number = measured(lab, 60.0, owner="ann")
    with mail_server() as server:
        send(lab, server)
        lab.tick()
        send(lab, server)
    (mail,) = server.accepted
    assert server.recipients == [["ann@example.org"]]
    assert mail["To"] == "ann@example.org"
    assert mail["Subject"] == "[wqlab] workqueue: take fewer locks"
    assert mail["In-Reply-To"] is None
    assert mail["Auto-Submitted"] == "auto-generated"
    assert mail["List-Unsubscribe"].startswith(f"<https://lab.test/api/v1/unsubscribe/{ann}-")
    assert mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    lines = mail.get_content().splitlines()
    assert lines[0] == "33 to 60 lock acquisitions per flush, on an emulated 4-CPU guest"
    assert f"Report:    https://lab.test/r/{number}" in lines
    assert len(lines) <= 60
    assert lines[-4:] == [
        "-- ",
        "wqlab measures kernels automatically; it does not review patches.",
        "You own this submission, or wrote its series. Switch these mails off:",
        "https://lab.test/account#mail",
    ]
    (row,) = mails(lab)
    assert (row.state, row.event, row.submission_id, row.user_id) == (DeliveryState.DELIVERED, "result", number, ann)
    assert mail["Message-ID"] == f"<{row.message_id}>"
    assert row.mail is not None
    assert "unsubscribe/" not in row.mail.model_dump_json()


def test_owner_and_author_are_told_in_the_thread_of_the_series(lab: LabUnderTest) -> None:
    account(lab, "owner", "owner@example.org")
    account(lab, "author", "ADA@example.org")
    account(lab, "stranger", "stranger@example.org")
    measured(lab, owner="owner", series=SERIES)  # by Ada Lovelace <ada@example.org>
    first, second = mails(lab)
    assert [first.destination, second.destination] == ["owner@example.org", "ADA@example.org"]
    assert first.mail is not None
    assert first.mail.in_reply_to == "patch@example.org"
    assert first.mail.subject == "Re: [PATCH v2] wq: take fewer locks"
    measured(lab, owner="owner")
    assert len(mails(lab)) == 3, "each submission is told, to its owner"


def repeat(lab: LabUnderTest, number: int, session: object) -> None:
    """Let the event of a finished submission be handled again."""
    session.execute(  # type: ignore[attr-defined]
        update(PendingEvent)
        .where(PendingEvent.submission_id == number, PendingEvent.event == OutboxEvent.SUBMISSION_FINISHED)
        .values(handled_at=None)
    )


def test_an_event_that_is_handled_again_sends_nothing_again(lab: LabUnderTest) -> None:
    account(lab, "ann", "ann@example.org")
    number = measured(lab, owner="ann")
    with lab.transaction() as session:
        repeat(lab, number, session)
    lab.tick()
    assert len(mails(lab)) == 1
    assert lab.tick_errors() == {}


def test_failure_of_the_lab_is_told_and_a_cancellation_is_not(lab: LabUnderTest) -> None:
    account(lab, "ann", "ann@example.org")
    lab.worker.on_run = results(infrastructure_result())
    configure(lab, run_attempts=1)
    lab.finished(lab.submit("locks@single", owner="ann"))
    (mail,) = mails(lab)
    assert mail.mail is not None
    assert mail.mail.body.startswith("FAILED (infrastructure)")
    canceled = lab.submit("locks@device", owner="ann")
    lab.post(f"submissions/{canceled}/cancel")
    lab.finished(canceled)
    assert len(mails(lab)) == 1


def test_who_may_not_read_the_lab_or_has_no_confirmed_address_gets_nothing(lab: LabUnderTest) -> None:
    for name in ("gone", "roleless", "off", "ok"):
        account(lab, name, "ada@example.org")
    account(lab, "silent")
    asked = account(lab, "asked")
    with lab.transaction() as session:
        session.add(MailAddress(user_id=asked, secret="s", asked_address="ada@example.org", asked_at=clock(session)))
    lab.sql("UPDATE users SET disabled_at = now() WHERE name = 'gone'")
    lab.sql("UPDATE users SET without_role_since = now() WHERE name = 'roleless'")
    lab.sql("UPDATE mail_addresses SET mail_results = false FROM users WHERE id = user_id AND name = 'off'")
    measured(lab, series=SERIES, owner="silent")
    (row,) = mails(lab)
    assert row.user_id == account(lab, "ok")
    lab.sql("UPDATE users SET disabled_at = now() WHERE name = 'ok'")
    with mail_server() as server:
        send(lab, server)
    assert server.accepted == []
    (row,) = mails(lab)
    assert (row.state, row.reason) == (DeliveryState.GIVEN_UP, "the account ok is disabled or has no role")


def test_a_waiting_mail_goes_to_the_address_that_is_confirmed_now(lab: LabUnderTest) -> None:
    account(lab, "ann", "ann@example.org")
    measured(lab, owner="ann")
    lab.sql("UPDATE mail_addresses SET address = 'ann@new.example'")
    with mail_server() as server:
        send(lab, server)
        assert server.recipients == [["ann@new.example"]]
        assert server.accepted[0]["To"] == "ann@new.example"
        measured(lab, 60.0, owner="ann")
        lab.sql("UPDATE mail_addresses SET mail_results = false")
        send(lab, server)
        lab.sql("UPDATE mail_addresses SET mail_results = true")
        measured(lab, 60.0, owner="ann")
        lab.sql("UPDATE mail_addresses SET address = NULL")
        send(lab, server)
    assert len(server.accepted) == 1
    assert [each.reason for each in mails(lab)[1:]] == [
        "the account ann has switched its mails with results off",
        "the account ann has no confirmed mail address",
    ]


def test_headers_cannot_be_injected_by_titles_and_names(lab: LabUnderTest) -> None:
    account(lab, "ann", "ann@example.org")
    number = measured(lab, owner="ann")
    with lab.transaction() as session:
        row = session.get_one(Submission, number)
        row.title = "evil\r\nBcc: eve@example.org\r\n\r\nTested-by: eve\u202e"
        row.author = '"Eve\r\nBcc: eve@example.org" <eve@example.org>'
        session.execute(update(PendingEvent).values(handled_at=None))
    lab.sql("DELETE FROM deliveries; DELETE FROM kept_reports")
    lab.tick()
    with mail_server() as server:
        send(lab, server)
    (mail,) = server.accepted
    assert server.recipients == [["ann@example.org"]]
    assert mail["Bcc"] is None
    assert mail["Subject"].startswith("[wqlab] evil")
    assert not [line for line in mail.get_content().splitlines() if line.lower().startswith("tested-by")]


def test_two_servers_write_and_send_one_mail(lab: LabUnderTest) -> None:
    for name in ("ann", "bob", "eve"):
        account(lab, name, "ada@example.org")
    number = measured(lab, 60.0, owner="ann", series=SERIES)
    lab.sql("DELETE FROM deliveries")
    with lab.transaction() as session:
        repeat(lab, number, session)
        event = session.scalars(
            select(PendingEvent.id).where(PendingEvent.event == OutboxEvent.SUBMISSION_FINISHED)
        ).one()

    def once(_: int) -> None:
        with lab.transaction() as session:
            handle(session, lab.settings, event)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(once, range(4)))
    assert len(mails(lab)) == 3
    with mail_server() as server, ThreadPoolExecutor(4) as pool:
        configure(lab, smtp_port=server.port)
        numbers = [each.id for each in mails(lab)] * 4
        list(pool.map(lambda each: deliver(lab.sessions, lab.settings, each), numbers))
    assert server.recipients == [["ada@example.org"]] * 3
