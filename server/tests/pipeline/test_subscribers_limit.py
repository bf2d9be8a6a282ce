"""Results above the daily limit, subscriptions that end while mails wait, and subscriptions to webhooks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy import func, select

from wqlab_contracts.api.webhooks import WebhookFilter
from wqlab_contracts.enums import DeliveryState, SubscriptionKind
from wqlab_server.models import Delivery, Submission, SubscribedResult, Subscription, Webhook
from wqlab_server.outbox import subscriptions
from wqlab_server.outbox.webhooks import new_secret
from wqlab_server.pipeline.subscribers import write_collected
from wqlab_server.storage.db import clock

from ..support.lab import LabUnderTest
from ..support.smtp import mail_server
from ..support.subscribers import configure, mails, measured, send, send_mail_from, subscribe, subscriber

pytestmark = pytest.mark.integration
TYPE, REGRESSIONS = SubscriptionKind.DEVICE_TYPE, SubscriptionKind.REGRESSIONS


@pytest.fixture(autouse=True)
def configured(lab: LabUnderTest) -> None:
    lab.mark_all_good()
    send_mail_from(lab)


def test_results_above_the_daily_limit_come_in_one_mail_the_next_day(lab: LabUnderTest) -> None:
    ann = subscriber(lab, "ann", "ann@example.org")
    subscribe(lab, ann, TYPE, device_type="single")
    configure(lab, personal_mails_a_day=2)
    numbers = [measured(lab, 60.0 if index % 2 else 5.0) for index in range(5)]
    lab.tick()
    assert [each.event for each in mails(lab)] == ["result", "result"]
    lab.sql("UPDATE subscribed_results SET at = at - interval '1 day'")
    lab.sql("UPDATE deliveries SET created_at = created_at - interval '1 day'")
    lab.tick()
    lab.tick()
    assert [each.event for each in mails(lab)] == ["result", "result", "collected"]
    with mail_server() as server:
        send(lab, server)
    mail = server.accepted[-1]
    assert mail["Subject"].startswith("[wqlab] 3 more results of 20")
    assert mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    lines = mail.get_content().splitlines()
    assert lines[2:5] == [
        f"{number:>6}  {verdict:<15}  workqueue: take fewer locks"
        for number, verdict in zip(numbers[2:], ("IMPROVEMENT", "REGRESSION", "IMPROVEMENT"), strict=True)
    ]
    assert "https://lab.test/r/N" in lines
    with lab.transaction() as session:
        assert session.scalar(select(func.count()).where(SubscribedResult.delivery_id.is_(None))) == 0
    measured(lab)
    assert mails(lab)[-1].event == "result"  # a new day


def test_two_servers_collect_once_and_nothing_is_lost(lab: LabUnderTest) -> None:
    ann = subscriber(lab, "ann", "ann@example.org")
    subscription = subscribe(lab, ann, TYPE, device_type="single")
    number = measured(lab)
    lab.sql("DELETE FROM subscribed_results")
    with lab.transaction() as session:
        yesterday = clock(session) - timedelta(days=1)
        first = session.get_one(Submission, number)
        for _ in range(700):
            copy = Submission(
                request=first.request, owner="dev", tree="t", priority=50, title="t" * 200, state=first.state
            )
            session.add(copy)
            session.flush()
            session.add(
                SubscribedResult(
                    user_id=ann, submission_id=copy.id, thread=f"{copy.id}", subscription_ids=[subscription],
                    says={"x": "equivalent"}, at=yesterday,
                )
            )  # fmt: skip

    def once(_: int) -> None:
        with lab.transaction() as session:
            write_collected(session, lab.settings, ann, clock(session))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(once, range(4)))
    collected = [each.mail for each in mails(lab) if each.event == "collected" and each.mail is not None]
    assert len(collected) == 4
    bodies = "".join(mail.body for mail in collected)
    with lab.transaction() as session:
        rows = session.scalars(select(SubscribedResult)).all()
        assert all(row.delivery_id is not None for row in rows)
        named = set(bodies.replace(",", " ").replace(".", " ").split())
        assert {str(row.submission_id) for row in rows} <= named
    for mail in collected:
        lines = mail.body.splitlines()
        assert len(lines) <= 60
        assert max(map(len, lines)) <= 78


@pytest.mark.nightly
def test_what_waits_is_dropped_with_its_subscription(lab: LabUnderTest) -> None:
    ann = subscriber(lab, "ann", "ann@example.org")
    first = subscribe(lab, ann, TYPE, device_type="single")
    both = subscribe(lab, ann, REGRESSIONS, plan="locks")
    configure(lab, personal_mails_a_day=2)
    measured(lab, 60.0)  # matches both
    measured(lab, 5.0)
    measured(lab, 5.0)  # above the limit
    with lab.transaction() as session:
        rows = [session.get_one(Subscription, first)]
        assert subscriptions.end(session, rows, "ann", clock(session)) == rows
        assert subscriptions.end(session, rows, "ann", clock(session)) == []
    assert [each.state for each in mails(lab)] == [DeliveryState.WAITING, DeliveryState.DROPPED]
    with lab.transaction() as session:
        assert session.scalar(select(func.count(SubscribedResult.id))) == 2
        session.get_one(Subscription, both).removed_at = clock(session)  # between claim and sending
    with mail_server() as server:
        send(lab, server)
    assert server.accepted == []
    assert mails(lab)[0].reason == "the subscriptions were removed"


def test_a_subscription_posts_to_a_webhook_once(lab: LabUnderTest) -> None:
    ann = subscriber(lab, "ann")
    with lab.transaction() as session:
        hooks = [
            Webhook(owner="ann", url=url, events=["submission.finished"], filter=found, secret=new_secret())
            for url, found in (
                ("https://narrow.example/", WebhookFilter(plans=["other"])),
                ("https://both.example/", WebhookFilter(plans=["locks"])),
            )
        ]
        session.add_all(hooks)
        session.flush()
        narrow, both = (hook.id for hook in hooks)
    for hook in (narrow, both):
        subscribe(lab, ann, TYPE, device_type="single", webhook_id=hook)
        subscribe(lab, ann, REGRESSIONS, plan="locks", webhook_id=hook)
    measured(lab, 60.0)
    with lab.transaction() as session:
        rows = session.execute(select(Delivery.destination, Delivery.event).order_by(Delivery.id)).all()
    assert sorted(map(tuple, rows)) == [
        ("https://both.example/", "regression.found"),
        ("https://both.example/", "submission.finished"),
        ("https://narrow.example/", "regression.found"),
        ("https://narrow.example/", "submission.finished"),
    ]
    lab.sql("UPDATE webhooks SET paused_at = now()")
    measured(lab, 60.0)
    with lab.transaction() as session:
        assert session.scalar(select(func.count(Delivery.id))) == 4
