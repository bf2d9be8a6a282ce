"""Endpoints of the review queue: approve, change, drop; who may, and what the audit log has."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from wqlab_contracts.enums import DeliveryState, Scope
from wqlab_contracts.mail import OutgoingMail
from wqlab_server.outbox import mails
from wqlab_server.storage.db import SessionFactory, clock, transaction

from ..support.live_server import Live, expect
from ..support.scene import Scene

pytestmark = pytest.mark.integration
DELIVERIES = "/api/v1/deliveries"


@pytest.fixture
def mail(sessions: SessionFactory, scene: Scene) -> int:
    """A mail that waits for review."""
    submission_id = scene.submission()
    with transaction(sessions) as session:
        written = OutgoingMail(
            message_id="m@lab.test", in_reply_to="p@example.org", references=["p@example.org"], sender="wqlab@lab.test",
            to=["ada@example.org"], cc=["lkml@example.org"], subject="Re: x", date=datetime(2026, 1, 1, tzinfo=UTC),
            body="figures\n",
        )  # fmt: skip
        number = mails.write(
            session, written, key="k", event=mails.REPLY, submission_id=submission_id, thread="p@example.org", says={},
            review=True, now=clock(session),
        )  # fmt: skip
    assert number is not None
    return number


def test_a_maintainer_changes_and_approves_a_mail(live: Live, mail: int) -> None:
    path = f"{DELIVERIES}/{mail}"
    with live.client(Scope.MAINTAIN) as client:
        (listed,) = client.get(f"{DELIVERIES}?kind=mail&state=waiting_for_review").json()["items"]
        assert (listed["id"], listed["destination"]) == (mail, "ada@example.org, lkml@example.org")
        changed = expect(client.patch(f"{path}/mail", json={"cc": [], "body": "other figures\n"})).json()
        assert (changed["destination"], changed["body"]) == ("ada@example.org", "other figures\n")
        assert changed["mail"]["subject"] == changed["subject"] == "Re: x"
        assert changed["decided_by"] is None
        for _ in range(2):
            approved = expect(client.post(f"{path}/approve")).json()
        assert (approved["state"], approved["reason"]) == (DeliveryState.WAITING, "approved by maintain")
        assert approved["decided_by"] == "maintain"
        expect(client.patch(f"{path}/mail", json={"subject": "late"}), 409)
    with live.client() as admin:
        entries = admin.get(f"/api/v1/audit?resource=delivery/{mail}").json()["items"]
    assert [(entry["action"], entry["actor"]) for entry in entries][1:] == [
        ("mail.approve", "maintain"),
        ("mail.edit", "maintain"),
    ]
    assert entries[-1]["detail"] == {"changed": ["body", "cc"]}


def test_a_mail_is_dropped_with_a_reason(live: Live, mail: int) -> None:
    with live.client(Scope.MAINTAIN) as client:
        dropped = expect(client.post(f"{DELIVERIES}/{mail}/drop", json={"reason": "noisy device"})).json()
        assert (dropped["state"], dropped["reason"]) == ("dropped", "dropped by maintain: noisy device")
        expect(client.post(f"{DELIVERIES}/{mail}/drop", json={}))
        expect(client.post(f"{DELIVERIES}/{mail}/approve"), 409)
        expect(client.post(f"{DELIVERIES}/{mail}/replay"), 409)


@pytest.mark.parametrize("scope", [Scope.READ, Scope.SUBMIT])
def test_others_may_not(live: Live, mail: int, scope: Scope) -> None:
    with live.client(scope) as client:
        for verb, end in (("POST", "approve"), ("PATCH", "mail"), ("POST", "drop")):
            expect(client.request(verb, f"{DELIVERIES}/{mail}/{end}", json={}), 403)
        expect(client.get(f"{DELIVERIES}/{mail}"), 404)


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"to": ["nobody"]}, "/to/0"),
        ({"to": []}, "/to"),
        ({"body": "fine\nReviewed-by: wqlab <a@b>\n"}, "/body"),
        ({"subject": "x\r\nBcc: all@example.org"}, "/subject"),
    ],
)
def test_what_cannot_be_sent_is_refused(live: Live, mail: int, change: dict[str, Any], pointer: str) -> None:
    with live.client(Scope.MAINTAIN) as client:
        answer = expect(client.patch(f"{DELIVERIES}/{mail}/mail", json=change), 422).json()
    assert answer["errors"][0]["pointer"] == pointer


def test_preview_and_file_of_a_report(live: Live, scene: Scene) -> None:
    number = scene.submission()
    scene.finish(number)
    with live.client(Scope.READ) as client:
        preview = expect(client.get(f"/api/v1/submissions/{number}/mail")).json()
        text = expect(client.get(f"/api/v1/submissions/{number}/report?format=mail"))
        linked = expect(client.get(f"/r/{number}.eml"))
        expect(client.get("/api/v1/submissions/4711/mail"), 404)
    assert text.headers["content-type"] == "message/rfc822"
    assert linked.content == text.content
    head, _, body = text.text.partition("\n\n")
    assert f"Message-ID: <{preview['message_id']}>" in head.splitlines()
    assert "Auto-Submitted: auto-generated" in head.splitlines()
    assert body == preview["body"]
    assert "\r" not in text.text
