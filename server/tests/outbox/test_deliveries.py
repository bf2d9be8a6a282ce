"""Deliveries on a real database and to a real receiver: once, again, and when a process dies."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session
from standardwebhooks import Webhook as Verifier

from wqlab_contracts.api.webhooks import WebhookFilter
from wqlab_contracts.celery_names import DELIVER, OUTBOX_QUEUE
from wqlab_contracts.enums import AttemptOutcome, DeliveryKind, DeliveryState
from wqlab_server.http.problems import ApiProblem
from wqlab_server.models import Delivery, DeliveryAttempt, Webhook
from wqlab_server.outbox import deliveries, schedule
from wqlab_server.outbox.post_webhook import Result
from wqlab_server.outbox.send import deliver
from wqlab_server.outbox.webhooks import new_secret
from wqlab_server.settings import Settings
from wqlab_server.storage.db import Message, SessionFactory, make_factory, transaction

from ..support.receiver import Answer, Receiver, receiver

pytestmark = pytest.mark.integration
BODY = json.dumps({"type": "submission.finished"})


@dataclass
class Times:
    """A clock that a test sets."""

    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    def __call__(self, _: Session) -> datetime:
        return self.now

    def pass_by(self, time: timedelta) -> None:
        self.now += time


@pytest.fixture
def times() -> Times:
    return Times()


def write(sessions: SessionFactory, url: str, times: Times, key: str = "webhook/1/x") -> int:
    """Write a delivery to a new webhook."""
    with transaction(sessions) as session:
        webhook = Webhook(
            owner="dev", url=url, events=["submission.finished"], filter=WebhookFilter(), secret=new_secret()
        )
        session.add(webhook)
        session.flush()
        number = deliveries.write(
            session, DeliveryKind.WEBHOOK, key, event="submission.finished", destination=url, message_id=f"msg_{key}",
            webhook_id=webhook.id, body=BODY, state=DeliveryState.WAITING, next_at=times.now,
        )  # fmt: skip
    assert number is not None
    return number


def load(sessions: SessionFactory, number: int) -> tuple[Delivery, list[DeliveryAttempt]]:
    with transaction(sessions) as session:
        attempts = session.scalars(
            select(DeliveryAttempt).where(DeliveryAttempt.delivery_id == number).order_by(DeliveryAttempt.number)
        ).all()
        return session.get_one(Delivery, number), list(attempts)


Listed = Callable[[Receiver], Settings]


@pytest.fixture
def listed(settings: Settings) -> Listed:
    """Return settings that list a receiver."""
    return lambda target: settings.model_copy(update={"private_webhook_hosts": target.host})


def test_a_receiver_that_fails_twice_gets_it_once_more_and_no_more(
    sessions: SessionFactory, listed: Listed, times: Times
) -> None:
    with receiver(Answer(503), Answer(500, b"oops"), Answer(204)) as target:
        number = write(sessions, target.url, times)
        for wait in (timedelta(), timedelta(seconds=5), timedelta(minutes=5)):
            times.pass_by(wait - timedelta(seconds=1) if wait else wait)
            if wait:
                assert deliver(sessions, listed(target), number, now=times) is None  # not due yet
                times.pass_by(timedelta(seconds=1))
            assert deliver(sessions, listed(target), number, now=times) is not None
        assert deliver(sessions, listed(target), number, now=times) is None
    row, attempts = load(sessions, number)
    assert (row.state, row.tries, row.next_at, row.reason) == (DeliveryState.DELIVERED, 3, None, "")
    assert [(each.number, each.outcome, each.status, each.answer) for each in attempts] == [
        (1, AttemptOutcome.FAILED, 503, "thanks"),
        (2, AttemptOutcome.FAILED, 500, "oops"),
        (3, AttemptOutcome.ACCEPTED, 204, ""),
    ]
    assert {request.headers["webhook-id"] for request in target.requests} == {"msg_webhook/1/x"}
    assert len(target.requests) == 3


def test_a_receiver_that_is_gone_for_a_day_gets_it_when_it_is_back(
    sessions: SessionFactory, listed: Listed, times: Times, unused_port: int
) -> None:
    away = Receiver(unused_port)
    number = write(sessions, away.url, times)
    began = times.now
    while times.now - began < timedelta(hours=17):
        assert deliver(sessions, listed(away), number, now=times) is not None
        row, _ = load(sessions, number)
        assert row.state is DeliveryState.WAITING
        assert row.next_at is not None
        times.now = row.next_at
    with receiver() as target, transaction(sessions) as session:
        session.get_one(Webhook, row.webhook_id).url = target.url
        session.commit()
        deliver(sessions, listed(target), number, now=times)
    row, attempts = load(sessions, number)
    assert (row.state, len(attempts), len(target.requests)) == (DeliveryState.DELIVERED, 7, 1)
    assert times.now - began > timedelta(hours=17)


def test_after_27_hours_it_is_given_up_in_the_open_and_can_be_replayed(
    sessions: SessionFactory, listed: Listed, times: Times
) -> None:
    with receiver(*[Answer(500)] * 8, Answer(200)) as target:
        number = write(sessions, target.url, times)
        began = times.now
        for _ in schedule.DELAYS:
            assert deliver(sessions, listed(target), number, now=times) is not None
            row, _ = load(sessions, number)
            times.now = row.next_at or times.now
        assert (row.state, row.next_at) == (DeliveryState.GIVEN_UP, None)
        assert row.reason == "8 attempts have failed, the last one: the receiver answered 500"
        assert times.now - began == schedule.total()
        with transaction(sessions) as session:
            deliveries.replay(session, number, "dev", times.now)
        deliver(sessions, listed(target), number, now=times)
    row, attempts = load(sessions, number)
    assert (row.state, row.tries, row.decided_by) == (DeliveryState.DELIVERED, 1, "dev")
    assert [each.number for each in attempts] == list(range(1, 10))
    assert len({request.headers["webhook-id"] for request in target.requests}) == 1


def test_two_processes_do_not_send_one_delivery_twice(sessions: SessionFactory, listed: Listed, times: Times) -> None:
    with receiver(Answer(after_s=0.5)) as target, ThreadPoolExecutor(8) as processes:
        number = write(sessions, target.url, times)
        results = list(processes.map(lambda _: deliver(sessions, listed(target), number, now=times), range(8)))
    assert len([result for result in results if result is not None]) == 1
    assert len(target.requests) == 1
    assert load(sessions, number)[0].tries == 1


def test_a_process_that_dies_while_sending_is_followed_by_another_under_the_same_id(
    sessions: SessionFactory, listed: Listed, times: Times
) -> None:
    with receiver() as target:
        number = write(sessions, target.url, times)
        with transaction(sessions) as session:
            dead = deliveries.claim(session, number, times.now)
        assert dead is not None
        times.pass_by(deliveries.CLAIM - timedelta(seconds=1))
        assert deliver(sessions, listed(target), number, now=times) is None  # the claim still holds
        times.pass_by(timedelta(seconds=1))
        assert (
            deliver(sessions, listed(target), number, now=times) is None
        )  # notes the lost attempt; the next is due later
        row, attempts = load(sessions, number)
        assert (row.state, row.next_at) == (DeliveryState.WAITING, times.now + schedule.DELAYS[1])
        assert attempts[0].outcome is AttemptOutcome.UNKNOWN
        assert attempts[0].problem == "the process that was sending it ended; the receiver may have got it"
        times.pass_by(schedule.DELAYS[1])
        assert deliver(sessions, listed(target), number, now=times) is not None
        with transaction(sessions) as session:  # the dead process was only slow
            assert not deliveries.finish(session, dead, times.now, Result(AttemptOutcome.FAILED))
    row, attempts = load(sessions, number)
    assert (row.state, [each.outcome for each in attempts]) == (
        DeliveryState.DELIVERED,
        [AttemptOutcome.UNKNOWN, AttemptOutcome.ACCEPTED],
    )


def test_a_second_delivery_of_the_same_key_changes_nothing(sessions: SessionFactory, times: Times) -> None:
    number = write(sessions, "https://hook.example/", times, "webhook/1/submission.finished/7")
    with transaction(sessions) as session:
        again = deliveries.write(
            session, DeliveryKind.WEBHOOK, "webhook/1/submission.finished/7", event="e", destination="d",
            message_id="msg_other", body="other", state=DeliveryState.WAITING, next_at=times.now,
        )  # fmt: skip
    assert again is None
    assert load(sessions, number)[0].body == BODY


def test_a_rotated_secret_signs_for_a_day_beside_the_new_one(
    sessions: SessionFactory, listed: Listed, times: Times
) -> None:
    with receiver() as target:
        first, second = (write(sessions, target.url, times, key) for key in ("a", "b"))
        secrets = []
        with transaction(sessions) as session:
            for webhook in session.scalars(select(Webhook).order_by(Webhook.id)):
                webhook.previous_secret, webhook.secret = webhook.secret, new_secret()
                webhook.previous_until = times.now + timedelta(days=1)
                secrets.append((webhook.previous_secret, webhook.secret))
        deliver(sessions, listed(target), first, now=times)
        times.pass_by(timedelta(days=1))
        deliver(sessions, listed(target), second, now=times)
    during, after = target.requests
    for secret in secrets[0]:
        assert Verifier(secret).verify(during.body, during.headers)
    assert len(after.headers["webhook-signature"].split()) == 1


def test_messages_go_out_for_due_deliveries_and_one_receiver_does_not_hold_up_the_others(
    engine: object, times: Times
) -> None:
    sent: list[Message] = []
    sessions = make_factory(engine, sent.append)  # type: ignore[arg-type]
    numbers = [write(sessions, "https://away.example/", times, f"a{index}") for index in range(20)]
    other = write(sessions, "https://other.example/", times, "other")
    assert {message.id for message in sent} == {*numbers, other}
    assert {(message.task, message.queue) for message in sent} == {(DELIVER, OUTBOX_QUEUE)}
    sent.clear()
    with transaction(sessions) as session:
        deliveries.nudge_due(session, times.now)
    assert sorted(message.id or 0 for message in sent) == [*numbers[:4], other]
    sent.clear()
    with transaction(sessions) as session:
        assert deliveries.nudge_due(session, times.now + timedelta(seconds=30)) == 0
        assert deliveries.nudge_due(session, times.now + deliveries.NUDGE_AGAIN) == 5


def test_what_may_be_replayed_and_dropped(sessions: SessionFactory, times: Times) -> None:
    number = write(sessions, "https://hook.example/", times)
    with transaction(sessions) as session, pytest.raises(ApiProblem, match="only one that has ended can be replayed"):
        deliveries.replay(session, number, "dev", times.now)
    with transaction(sessions) as session:
        assert deliveries.claim(session, number, times.now)
    with transaction(sessions) as session, pytest.raises(ApiProblem, match="is being sent"):
        deliveries.drop(session, number, "dev", times.now)
    times.pass_by(deliveries.CLAIM)
    with transaction(sessions) as session:
        deliveries.drop(session, number, "dev", times.now, "not needed")
        deliveries.drop(session, number, "other", times.now)
    row, _ = load(sessions, number)
    assert (row.state, row.reason, row.decided_by) == (DeliveryState.DROPPED, "dropped by dev: not needed", "dev")
    with transaction(sessions) as session, pytest.raises(ApiProblem, match="no delivery 4711"):
        deliveries.drop(session, 4711, "dev", times.now)
