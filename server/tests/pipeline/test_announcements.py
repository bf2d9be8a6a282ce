"""Events of the whole pipeline, from what happens to the receiver."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select
from standardwebhooks import Webhook as Verifier

from wqlab_contracts.api.webhooks import WebhookFilter, WebhookSubmission
from wqlab_contracts.celery_names import DELIVER
from wqlab_contracts.enums import Arm, OutboxEvent, UserRole
from wqlab_server.models import Delivery, LastTick, PendingEvent, User, Webhook
from wqlab_server.outbox.send import deliver
from wqlab_server.outbox.webhooks import new_secret

from ..support.lab import LabUnderTest
from ..support.people import add_user
from ..support.receiver import Answer, receiver

pytestmark = pytest.mark.integration


def subscribe(lab: LabUnderTest, url: str, *, owner: str = "dev", **filters: Any) -> str:
    """Create a webhook for every event and return its secret."""
    secret = new_secret()
    with lab.transaction() as session:
        session.add(
            Webhook(
                owner=owner, url=url, events=[event.value for event in OutboxEvent], filter=WebhookFilter(**filters),
                secret=secret,
            )
        )  # fmt: skip
    return secret


def bodies(lab: LabUnderTest) -> list[dict[str, Any]]:
    """Return the bodies of all deliveries, oldest first."""
    with lab.transaction() as session:
        return [json.loads(body or "") for body in session.scalars(select(Delivery.body).order_by(Delivery.id))]


def types(lab: LabUnderTest) -> list[str]:
    return [body["type"] for body in bodies(lab)]


def test_a_submission_is_told_from_accepted_to_finished_over_http(lab: LabUnderTest) -> None:
    """The receiver fails once; each event arrives, signed, and is accepted once."""
    lab.mark_all_good()
    with receiver(Answer(500), Answer(200)) as target:
        lab.settings = lab.settings.model_copy(update={"private_webhook_hosts": target.host})
        secret = subscribe(lab, target.url)
        submission_id = lab.submit("locks@single")
        lab.finished(submission_id)
        for _ in range(2):
            numbers = sorted({message.id for message in lab.sent if message.task == DELIVER} | {1, 2})
            for number in numbers:
                deliver(lab.sessions, lab.settings, number or 0)
            lab.sql("UPDATE deliveries SET next_at = now() WHERE state = 'waiting'")
        lab.tick()  # the events are handled already
    assert types(lab) == ["submission.accepted", "submission.finished"]
    accepted = [Verifier(secret).verify(request.body, request.headers) for request in target.requests[1:]]
    assert sorted(each["type"] for each in accepted) == ["submission.accepted", "submission.finished"]
    finished = WebhookSubmission.model_validate(bodies(lab)[1]["data"])
    assert (finished.submission, finished.url) == (submission_id, f"http://lab.test/r/{submission_id}")
    assert [(each.plan, each.device_type, each.verdict) for each in finished.targets] == [
        ("locks", "single", "improvement")
    ]
    with lab.transaction() as session:
        assert set(session.scalars(select(Delivery.state))) == {"delivered"}


def test_regressions_are_told_with_the_targets_that_regressed(lab: LabUnderTest) -> None:
    lab.mark_all_good()
    lab.worker.value = lambda arm, *_: 5.0 if arm is Arm.BASELINE else 33.0
    subscribe(lab, "https://all.example/")
    subscribe(lab, "https://other.example/", plans=["affinity"])
    lab.finished(lab.submit("locks@single"))
    assert types(lab) == ["submission.accepted", "submission.finished", "regression.found"]
    assert [each["verdict"] for each in bodies(lab)[2]["data"]["targets"]] == ["regression"]


def test_only_events_after_its_creation_of_an_enabled_owner(lab: LabUnderTest) -> None:
    lab.submit("locks@single")
    lab.tick()
    with lab.transaction() as session:
        add_user(session, "gone", UserRole.ADMIN).disabled_at = session.scalars(select(User.created_at)).first()
        add_user(session, "left", UserRole.ADMIN).without_role_since = session.scalars(select(User.created_at)).first()
    subscribe(lab, "https://late.example/")
    subscribe(lab, "https://gone.example/", owner="gone")
    subscribe(lab, "https://left.example/", owner="left")
    lab.submit("locks@single")
    lab.tick()
    with lab.transaction() as session:
        assert list(session.scalars(select(Delivery.destination))) == ["https://late.example/"]


def test_a_quarantined_device_is_told_each_time(lab: LabUnderTest) -> None:
    subscribe(lab, "https://single.example/", device_types=["single"])
    subscribe(lab, "https://device.example/", device_types=["device"])
    for _ in range(2):
        lab.post("devices/single-1/quarantine", {"reason": "the fan is loud"})
        lab.post("devices/single-1/release")
    lab.tick()
    lab.tick()
    assert types(lab) == ["device.quarantined"] * 2
    assert bodies(lab)[0]["data"] == {
        "device": "single-1", "device_type": "single", "lab": "local", "reason": "the fan is loud (dev)", "by": "dev",
        "url": "http://lab.test/lab/single-1",
    }  # fmt: skip


def publish(lab: LabUnderTest) -> None:
    answer = lab.worker.request("POST", "labs/local/capacity", json={"capacity": 2})
    assert answer.status_code < 300, answer.text


def test_a_lost_lab_is_told_once_until_it_is_back(lab: LabUnderTest) -> None:
    subscribe(lab, "https://all.example/")
    publish(lab)
    lab.tick()
    ago = "now() - interval '301 s'"
    lab.sql(f"UPDATE labs SET published_at = {ago}")
    lab.tick()
    assert types(lab) == []  # the server itself was away
    lab.sql(f"UPDATE last_tick SET running_since = {ago}")
    for _ in range(3):
        lab.tick()
    assert types(lab) == ["lab.lost"]
    assert (bodies(lab)[0]["data"]["lab"], bodies(lab)[0]["data"]["devices"]) == ("local", 3)
    publish(lab)
    lab.tick()
    lab.sql(f"UPDATE labs SET published_at = {ago}")
    lab.tick()
    assert types(lab) == ["lab.lost"] * 2


def test_ticks_after_a_gap_begin_anew(lab: LabUnderTest) -> None:
    lab.tick()
    lab.sql("UPDATE last_tick SET running_since = now() - interval '1 day'")
    lab.tick()
    with lab.transaction() as session:
        row = session.scalars(select(LastTick)).one()
        assert row.finished_at - row.running_since > timedelta(hours=23)
    lab.sql("UPDATE last_tick SET finished_at = now() - interval '61 s'")
    lab.tick()
    with lab.transaction() as session:
        row = session.scalars(select(LastTick)).one()
        assert abs(row.finished_at - row.running_since) < timedelta(seconds=1)


def test_an_event_that_cannot_be_handled_holds_up_no_other(lab: LabUnderTest) -> None:
    subscribe(lab, "https://all.example/")
    with lab.transaction() as session:
        session.add(PendingEvent(key="lab.lost/x", event=OutboxEvent.LAB_LOST, lab="x", detail={}))
    lab.submit("locks@single")
    lab.tick()
    assert types(lab) == ["submission.accepted"]
    assert lab.tick_errors() == {("outbox", "1"): 1}
