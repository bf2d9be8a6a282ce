"""Results to subscribers, from the submission to the SMTP server: who gets which mail, once, and corrected."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select, update

from wqlab_contracts.enums import DeliveryState, OutboxEvent, SubscriptionKind
from wqlab_server.models import MailAddress, PendingEvent, Submission
from wqlab_server.outbox.send import deliver
from wqlab_server.pipeline.announcements import handle
from wqlab_server.storage import source_mails
from wqlab_server.storage.db import clock

from ..support.lab import LabUnderTest, infrastructure_result, results
from ..support.smtp import mail_server
from ..support.subscribers import configure, mails, measured, send, send_mail_from, subscribe, subscriber
from .test_answers import SERIES

pytestmark = pytest.mark.integration
MINE, TYPE, REGRESSIONS = SubscriptionKind


@pytest.fixture(autouse=True)
def configured(lab: LabUnderTest) -> None:
    lab.mark_all_good()
    send_mail_from(lab)


def test_one_mail_although_several_subscriptions_match(lab: LabUnderTest) -> None:
    ann = subscriber(lab, "ann", "ann@example.org")
    subscribe(lab, ann, MINE)
    subscribe(lab, ann, TYPE, device_type="single")
    subscribe(lab, ann, REGRESSIONS, plan="locks")
    number = measured(lab, 60.0, owner="ann")
    with mail_server() as server:
        send(lab, server)
        lab.tick()
        send(lab, server)
    (mail,) = server.accepted
    assert server.recipients == [["ann@example.org"]]
    assert mail["To"] == "ann@example.org"
    assert mail["Subject"] == "[wqlab] workqueue: take fewer locks"
    assert mail["Auto-Submitted"] == "auto-generated"
    assert mail["List-Unsubscribe"].startswith("<https://lab.test/api/v1/unsubscribe/1-")
    assert mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    lines = mail.get_content().splitlines()
    assert lines[0] == "locks on single (emulated): REGRESSION"
    assert len(lines) <= 60
    assert lines[-4:] == [
        "-- ",
        "wqlab, a machine: it measures and does not review.",
        "You subscribed to: my series; results on single; regressions of locks.",
        "https://lab.test/account#subscriptions",
    ]
    (row,) = mails(lab)
    assert (row.state, row.event, row.submission_id, row.user_id) == (DeliveryState.DELIVERED, "result", number, ann)
    assert mail["Message-ID"] == f"<{row.message_id}>"
    assert row.mail is not None
    assert "unsubscribe/" not in row.mail.model_dump_json()


def test_each_kind_matches_what_it_names(lab: LabUnderTest) -> None:
    wanted = {
        "owner": (MINE, {}),
        "author": (MINE, {}),
        "stranger": (MINE, {}),
        "single": (TYPE, {"device_type": "single"}),
        "device": (TYPE, {"device_type": "device"}),
        "locks": (REGRESSIONS, {"plan": "locks"}),
        "elsewhere": (REGRESSIONS, {"plan": "locks", "device_type": "device"}),
        "affinity": (REGRESSIONS, {"plan": "affinity"}),
    }
    for name, (kind, fields) in wanted.items():
        address = "ADA@example.org" if name == "author" else f"{name}@example.org"
        subscribe(lab, subscriber(lab, name, address), kind, **fields)
    measured(lab, owner="owner", series=SERIES)  # by Ada Lovelace <ada@example.org>
    improved = {"owner@example.org", "ADA@example.org", "single@example.org"}
    assert {each.destination for each in mails(lab)} == improved
    lab.sql("DELETE FROM subscribed_results; DELETE FROM deliveries WHERE kind = 'personal_mail'")
    measured(lab, 60.0, owner="owner", series=SERIES)
    assert {each.destination for each in mails(lab)} == improved | {"locks@example.org"}


def repeat(lab: LabUnderTest, number: int, session: object) -> None:
    """Let the event of a finished submission be handled again."""
    session.execute(  # type: ignore[attr-defined]
        update(PendingEvent)
        .where(PendingEvent.submission_id == number, PendingEvent.event == OutboxEvent.SUBMISSION_FINISHED)
        .values(handled_at=None)
    )


def test_an_event_that_is_handled_again_sends_nothing_again(lab: LabUnderTest) -> None:
    subscribe(lab, subscriber(lab, "ann", "ann@example.org"), TYPE, device_type="single")
    number = measured(lab)
    with lab.transaction() as session:
        repeat(lab, number, session)
    lab.tick()
    assert len(mails(lab)) == 1
    assert lab.tick_errors() == {}


def test_a_changed_verdict_is_corrected_in_the_thread_also_without_a_match(lab: LabUnderTest) -> None:
    ann = subscriber(lab, "ann", "ann@example.org")
    subscribe(lab, ann, REGRESSIONS, plan="locks")
    first = measured(lab, 60.0)
    lab.post(f"submissions/{first}/retry")
    lab.finished(first + 1)
    assert len(mails(lab)) == 1  # the same verdict
    lab.worker.value = lambda arm, *_: 33.0 if arm == "baseline" else 5.0
    lab.post(f"submissions/{first + 1}/retry")
    lab.finished(first + 2)
    with mail_server() as server:
        send(lab, server)
    told, corrected = server.accepted
    assert [each.event for each in mails(lab)] == ["result", "correction"]
    assert corrected["In-Reply-To"] == told["Message-ID"]
    assert corrected["References"] == told["Message-ID"]
    lines = corrected.get_content().splitlines()
    assert lines[:2] == [
        "CORRECTION of the lab's earlier mail; the verdict has changed:",
        "  locks on single (emulated): REGRESSION -> improvement",
    ]
    assert len(lines) <= 60
    lab.sql("UPDATE subscriptions SET removed_at = now()")
    lab.worker.value = lambda arm, *_: 33.0 if arm == "baseline" else 60.0
    lab.post(f"submissions/{first + 2}/retry")
    lab.finished(first + 3)
    assert len(mails(lab)) == 2


def test_a_target_that_was_not_told_is_a_second_mail_of_the_thread(lab: LabUnderTest) -> None:
    ann = subscriber(lab, "ann", "ann@example.org")
    subscribe(lab, ann, MINE)
    measured(lab, owner="ann", series=SERIES)
    measured(lab, owner="ann", series=SERIES, target="locks@device")
    first, second = mails(lab)
    assert (first.event, second.event) == ("result", "result")
    assert first.mail is not None and second.mail is not None
    assert first.mail.in_reply_to == "patch@example.org"
    assert first.mail.subject == "Re: [PATCH v2] wq: take fewer locks"
    assert second.mail.in_reply_to == first.message_id
    assert "CORRECTION" not in second.mail.body


def test_a_message_id_that_somebody_else_uploads_corrects_nothing(lab: LabUnderTest) -> None:
    """Whoever uploads an mbox chooses its Message-ID."""
    subscribe(lab, subscriber(lab, "ann", "ann@example.org"), TYPE, device_type="single")
    subscriber(lab, "eve")
    number = measured(lab, series=SERIES)
    with lab.transaction() as session:
        source = source_mails.find(session, number)
        assert source is not None and not source.verified
    measured(lab, 60.0, series=SERIES, owner="eve")
    assert [each.event for each in mails(lab)] == ["result", "result"]
    assert all("CORRECTION" not in each.mail.body for each in mails(lab) if each.mail is not None)


def test_only_the_owner_is_told_that_the_lab_has_failed_and_nobody_of_a_cancellation(lab: LabUnderTest) -> None:
    subscribe(lab, subscriber(lab, "ann", "ann@example.org"), MINE)
    subscribe(lab, subscriber(lab, "bob", "bob@example.org"), TYPE, device_type="single")
    lab.worker.on_run = results(infrastructure_result())
    configure(lab, run_attempts=1)
    lab.finished(lab.submit("locks@single", owner="ann"))
    (mail,) = mails(lab)
    assert mail.destination == "ann@example.org"
    assert mail.mail is not None
    assert mail.mail.body.startswith("FAILED (infrastructure)")
    canceled = lab.submit("locks@device", owner="ann")
    lab.post(f"submissions/{canceled}/cancel")
    lab.finished(canceled)
    assert len(mails(lab)) == 1


def test_who_may_not_read_the_lab_or_has_no_confirmed_address_gets_nothing(lab: LabUnderTest) -> None:
    for name in ("gone", "roleless", "ok"):
        subscribe(lab, subscriber(lab, name, f"{name}@example.org"), TYPE, device_type="single")
    subscribe(lab, subscriber(lab, "silent"), TYPE, device_type="single")
    asked = subscriber(lab, "asked")
    with lab.transaction() as session:
        session.add(MailAddress(user_id=asked, secret="s", asked_address="asked@example.org", asked_at=clock(session)))
    subscribe(lab, asked, TYPE, device_type="single")
    lab.sql("UPDATE users SET disabled_at = now() WHERE name = 'gone'")
    lab.sql("UPDATE users SET without_role_since = now() WHERE name = 'roleless'")
    measured(lab)
    assert [each.destination for each in mails(lab)] == ["ok@example.org"]
    lab.sql("UPDATE users SET disabled_at = now() WHERE name = 'ok'")
    with mail_server() as server:
        send(lab, server)
    assert server.accepted == []
    (row,) = mails(lab)
    assert (row.state, row.reason) == (DeliveryState.GIVEN_UP, "the account ok is disabled or has no role")


def test_only_what_finishes_after_the_subscription(lab: LabUnderTest) -> None:
    ann = subscriber(lab, "ann", "ann@example.org")
    number = measured(lab)
    subscribe(lab, ann, TYPE, device_type="single")
    with lab.transaction() as session:
        repeat(lab, number, session)
    lab.tick()
    assert mails(lab) == []


def test_a_waiting_mail_goes_to_the_address_that_is_confirmed_now(lab: LabUnderTest) -> None:
    subscribe(lab, subscriber(lab, "ann", "ann@example.org"), TYPE, device_type="single")
    measured(lab)
    lab.sql("UPDATE mail_addresses SET address = 'ann@new.example'")
    with mail_server() as server:
        send(lab, server)
        assert server.recipients == [["ann@new.example"]]
        assert server.accepted[0]["To"] == "ann@new.example"
        measured(lab, 60.0)
        lab.sql("UPDATE mail_addresses SET address = NULL")
        send(lab, server)
    assert len(server.accepted) == 1
    assert mails(lab)[1].reason == "the account ann has no confirmed mail address"


def test_headers_cannot_be_injected_by_titles_and_names(lab: LabUnderTest) -> None:
    ann = subscriber(lab, "ann", "ann@example.org")
    subscribe(lab, ann, MINE)
    number = measured(lab, owner="ann")
    with lab.transaction() as session:
        row = session.get_one(Submission, number)
        row.title = "evil\r\nBcc: eve@example.org\r\n\r\nTested-by: eve\u202e"
        row.author = '"Eve\r\nBcc: eve@example.org" <eve@example.org>'
        session.execute(update(PendingEvent).values(handled_at=None))
    lab.sql("DELETE FROM subscribed_results; DELETE FROM deliveries; DELETE FROM kept_reports")
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
        user = subscriber(lab, name, f"{name}@example.org")
        subscribe(lab, user, TYPE, device_type="single")
        subscribe(lab, user, REGRESSIONS, plan="locks")
    number = measured(lab, 60.0)
    lab.sql("DELETE FROM subscribed_results; DELETE FROM deliveries")
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
    assert sorted(map(tuple, server.recipients)) == [
        ("ann@example.org",), ("bob@example.org",), ("eve@example.org",),
    ]  # fmt: skip
