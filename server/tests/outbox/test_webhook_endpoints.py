"""Endpoints of webhooks and deliveries: who may do what, and what the answers show."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from sqlalchemy import select

from wqlab_contracts.api.deliveries import DeliveryDetail
from wqlab_contracts.api.webhooks import WebhookTestNotice
from wqlab_contracts.enums import DeliveryKind, DeliveryState, Scope
from wqlab_server.models import AuditEntry, Delivery, Webhook
from wqlab_server.outbox import deliveries
from wqlab_server.storage.db import SessionFactory, clock, transaction

from ..support.live_server import Live, expect

pytestmark = pytest.mark.integration
WEBHOOKS, DELIVERIES = "/api/v1/webhooks", "/api/v1/deliveries"
URL = "https://hook.example/wqlab"


def add(client: httpx.Client, status: int = 201, **more: Any) -> dict[str, Any]:
    body = {"url": URL, "events": ["submission.finished", "regression.found"], **more}
    answer: dict[str, Any] = expect(client.post(WEBHOOKS, json=body), status).json()
    return answer


def test_secret_is_shown_when_it_is_made_and_never_again(live: Live, sessions: SessionFactory) -> None:
    with live.client() as client:
        made = add(client)
        assert made["secret"].startswith("whsec_")
        rotated = expect(client.post(f"{WEBHOOKS}/{made['id']}/rotate")).json()
        assert rotated["secret"] != made["secret"]
        assert rotated["rotating_until"]
        removed = expect(client.delete(f"{WEBHOOKS}/{made['id']}")).json()
        assert expect(client.delete(f"{WEBHOOKS}/{made['id']}")).json() == removed
        expect(client.post(f"{WEBHOOKS}/{made['id']}/rotate"), 409)
        shown = client.get(f"{WEBHOOKS}/{made['id']}").text + client.get(WEBHOOKS).text
        assert "secret" not in shown
        assert client.get(WEBHOOKS).json()["items"] == []
        audit = client.get("/api/v1/audit?resource=webhook").json()["items"]
    assert [entry["action"] for entry in audit] == ["webhook.remove", "webhook.rotate", "webhook.create"]
    assert made["secret"] not in str(audit)
    with transaction(sessions) as session:
        row = session.get_one(Webhook, made["id"])
        assert (row.secret, row.previous_secret) == ("", None)


def test_users_have_webhooks_of_their_own_with_a_filter(live: Live) -> None:
    with live.client(Scope.SUBMIT) as person, live.client(Scope.MAINTAIN) as other, live.client() as admin:
        refused = add(person, 403)
        assert "filter by mine, device_types or plans" in refused["detail"]
        made = add(person, filter={"mine": True, "plans": ["flush"]})
        assert made["filter"] == {"mine": True, "device_types": [], "plans": ["flush"]}
        assert made["owner"] == "submit"
        for verb, path in (("GET", ""), ("POST", "/rotate"), ("DELETE", "")):
            expect(other.request(verb, f"{WEBHOOKS}/{made['id']}{path}"), 404)
        assert other.get(WEBHOOKS).json()["items"] == []
        assert [each["id"] for each in admin.get(WEBHOOKS).json()["items"]] == [made["id"]]
        expect(admin.delete(f"{WEBHOOKS}/{made['id']}"))
    with live.client(Scope.READ) as reader:
        add(reader, 403, filter={"mine": True})


def test_a_test_is_delivered_whatever_the_webhook_gets(live: Live, sessions: SessionFactory) -> None:
    with live.client(Scope.SUBMIT) as person, live.client(Scope.MAINTAIN) as other:
        made = add(person, events=["lab.lost"], filter={"mine": True})
        path = f"{WEBHOOKS}/{made['id']}/test"
        expect(other.post(path), 404)
        shown = expect(person.post(path), 201).json()
        assert (shown["event"], shown["state"], shown["destination"]) == ("webhook.test", "waiting", URL)
        notice = WebhookTestNotice.model_validate_json(shown["body"])
        assert (notice.data.webhook, notice.data.by) == (made["id"], "submit")
        assert f"delivery {shown['id']}, a test of this webhook" in expect(person.post(path), 409).json()["detail"]
        with transaction(sessions) as session:
            session.get_one(Delivery, shown["id"]).state = DeliveryState.DELIVERED
        again = expect(person.post(path), 201).json()
        assert again["message_id"] != shown["message_id"]
        expect(person.delete(f"{WEBHOOKS}/{made['id']}"))
        expect(person.post(path), 409)
    with transaction(sessions) as session:
        entries = session.scalars(select(AuditEntry).where(AuditEntry.action == "webhook.test")).all()
        assert [entry.detail for entry in entries] == [{"delivery": shown["id"]}, {"delivery": again["id"]}]


def test_a_webhook_is_paused_and_resumed(live: Live, sessions: SessionFactory) -> None:
    with live.client(Scope.SUBMIT) as person, live.client(Scope.MAINTAIN) as other:
        made = add(person, filter={"mine": True})
        path = f"{WEBHOOKS}/{made['id']}/pause"
        assert made["paused_at"] is None
        expect(other.put(path), 404)
        paused = expect(person.put(path)).json()
        assert paused["paused_at"] is not None
        assert expect(person.put(path)).json() == paused
        expect(person.post(f"{WEBHOOKS}/{made['id']}/test"), 201)
        for _ in range(2):
            assert expect(person.delete(path)).json()["paused_at"] is None
        expect(person.delete(f"{WEBHOOKS}/{made['id']}"))
        expect(person.put(path), 409)
        expect(person.delete(path), 409)
    with transaction(sessions) as session:
        actions = session.scalars(select(AuditEntry.action).where(AuditEntry.resource == f"webhook/{made['id']}")).all()
        assert [action.value for action in actions][1:] == [
            "webhook.pause", "webhook.pause", "webhook.test", "webhook.resume", "webhook.resume", "webhook.remove",
        ]  # fmt: skip


def test_a_user_has_at_most_20(live: Live) -> None:
    with live.client() as client:
        made = [add(client) for _ in range(20)]
        assert "you have 20 webhooks" in add(client, 409)["detail"]
        expect(client.delete(f"{WEBHOOKS}/{made[0]['id']}"))
        add(client)


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"url": "http://hook.example/"}, "/url"),
        ({"url": "https://u:p@hook.example/"}, "/url"),
        ({"events": []}, "/events"),
        ({"events": ["submission.lost"]}, "/events/0"),
        ({"filter": {"device_types": ["a b"]}}, "/filter/device_types/0"),
        ({"filter": {"mine": "yes"}}, "/filter/mine"),
    ],
)
def test_mistakes_are_located(live: Live, body: dict[str, Any], pointer: str) -> None:
    with live.client() as client:
        assert add(client, 422, **body)["errors"][0]["pointer"] == pointer


def write(sessions: SessionFactory, key: str, webhook_id: int | None = None, kind: str = "webhook") -> int:
    with transaction(sessions) as session:
        number = deliveries.write(
            session, DeliveryKind(kind), key, event="submission.finished", destination=URL, message_id=f"msg_{key}",
            webhook_id=webhook_id, body='{"type": "x"}', state=DeliveryState.WAITING, next_at=clock(session),
        )  # fmt: skip
    assert number is not None
    return number


def test_deliveries_of_others_are_not_shown(live: Live, sessions: SessionFactory) -> None:
    with live.client(Scope.SUBMIT) as person:
        made = add(person, filter={"mine": True})
        own, mail = write(sessions, "own", made["id"]), write(sessions, "mail", kind="mail")
        assert [each["id"] for each in person.get(DELIVERIES).json()["items"]] == [own]
        expect(person.get(f"{DELIVERIES}/{mail}"), 404)
        expect(person.post(f"{DELIVERIES}/{mail}/replay"), 404)
        for filters, found in (
            ("state=waiting", 1),
            ("state=delivered", 0),
            (f"webhook={made['id']}", 1),
            ("kind=mail", 0),
        ):
            assert person.get(f"{DELIVERIES}?{filters}").json()["total"] == found
    with live.client(Scope.MAINTAIN) as maintainer:
        assert [each["id"] for each in maintainer.get(DELIVERIES).json()["items"]] == [mail]
    with live.client() as admin:
        first = admin.get(f"{DELIVERIES}?limit=1").json()
        assert ([each["id"] for each in first["items"]], first["total"]) == ([mail], 2)
        rest = admin.get(f"{DELIVERIES}?cursor={first['next']}").json()
        assert [each["id"] for each in rest["items"]] == [own]


def test_a_delivery_that_has_ended_is_replayed(live: Live, sessions: SessionFactory) -> None:
    with live.client(Scope.SUBMIT) as person:
        made = add(person, filter={"mine": True})
        number = write(sessions, "own", made["id"])
        expect(person.post(f"{DELIVERIES}/{number}/replay"), 409)
        with transaction(sessions) as session:
            session.get_one(Delivery, number).state = DeliveryState.GIVEN_UP
        shown = DeliveryDetail.model_validate(expect(person.post(f"{DELIVERIES}/{number}/replay")).json())
    assert (shown.state, shown.reason, shown.body) == (DeliveryState.WAITING, "replayed by submit", '{"type": "x"}')
    with transaction(sessions) as session:
        entry = session.scalars(select(AuditEntry).where(AuditEntry.action == "delivery.replay")).one()
        assert (entry.actor, entry.resource) == ("submit", f"delivery/{number}")


def test_removal_drops_what_waits(live: Live, sessions: SessionFactory) -> None:
    with live.client() as client:
        made = add(client)
        number = write(sessions, "own", made["id"])
        expect(client.delete(f"{WEBHOOKS}/{made['id']}"))
        shown = client.get(f"{DELIVERIES}/{number}").json()
    assert (shown["state"], shown["reason"]) == ("dropped", "the webhook was removed")
