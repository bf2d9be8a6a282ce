"""Audit log: who did what to which resource, when, from where, with which outcome."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from sqlalchemy import Engine, event, text

from wqlab_contracts.api.audit import AuditEntry
from wqlab_contracts.api.base import Page
from wqlab_contracts.enums import AuditAction, Scope
from wqlab_server.storage.db import SessionFactory

from ..support.live_server import Live, expect
from ..support.people import PASSWORD
from ..support.scene import REQUEST, Scene

pytestmark = pytest.mark.integration
API = "/api/v1"
AUDIT = f"{API}/audit"


def entries(client: httpx.Client, **filters: Any) -> list[AuditEntry]:
    """Return the entries that match, oldest first."""
    page = Page[AuditEntry].model_validate_json(expect(client.get(AUDIT, params={"limit": 200, **filters})).content)
    assert page.total == len(page.items)
    return page.items[::-1]


def told(entry: AuditEntry) -> tuple[str, str, str, str]:
    return entry.actor, entry.action.value, entry.resource, entry.outcome.value


def test_changes_are_recorded_with_actor_address_and_resource(live: Live, scene: Scene, client: httpx.Client) -> None:
    scene.devices()
    with live.browser("submit") as browser:
        number = expect(browser.post(f"{API}/submissions", json=REQUEST), 201).json()["id"]
        made = expect(browser.post(f"{API}/tokens", json={"name": "ci", "scopes": ["submit"]}), 201).json()
        with live.client(None) as robot:
            robot.headers["Authorization"] = f"Bearer {made['token']}"
            expect(robot.post(f"{API}/submissions/{number}/cancel"))
        expect(browser.post(f"{API}/tokens/{made['id']}/revoke"))
        expect(browser.post(f"{API}/tokens/{made['id']}/revoke"))
        expect(browser.delete(f"{API}/session"), 204)
    with live.client(Scope.MAINTAIN) as maintainer:
        expect(maintainer.post(f"{API}/devices/tiny-1/quarantine", json={"reason": "noisy fan"}))
        expect(maintainer.post(f"{API}/devices/tiny-1/release"))
        expect(maintainer.post(f"{API}/devices/tiny-2/check"), 202)
    expect(client.post(f"{API}/users", json={"name": "new", "role": "viewer"}), 201)
    expect(client.patch(f"{API}/users/new", json={"role": "submitter"}))
    expect(client.post(f"{API}/users/new/password"))
    with live.client(Scope.WORKER) as worker:
        for capacity in (2, 2, 3):
            expect(worker.post("/api/worker/v1/labs/local/capacity", json={"capacity": capacity}), 204)
    found = [each for each in entries(client) if each.actor != "operator"]
    assert [told(each) for each in found] == [
        (actor, action, resource, "done")
        for actor, action, resource in [
            ("submit", "session.sign_in", "user/submit"),
            ("submit", "submission.create", f"submission/{number}"),
            ("submit", "token.create", f"token/{made['id']}"),
            ("submit", "submission.cancel", f"submission/{number}"),
            ("submit", "token.revoke", f"token/{made['id']}"),
            ("submit", "session.sign_out", "user/submit"),
            ("maintain", "device.quarantine", "device/tiny-1"),
            ("maintain", "device.release", "device/tiny-1"),
            ("maintain", "device.check", "device/tiny-2"),
            ("admin", "user.create", "user/new"),
            ("admin", "user.change", "user/new"),
            ("admin", "user.reset_password", "user/new"),
            ("worker", "lab.register", "lab/local"),
            ("worker", "lab.register", "lab/local"),
        ]
    ]
    assert {each.address for each in found} == {"127.0.0.1"}
    by_action = {each.action: each for each in found}
    canceled = by_action[AuditAction.CANCEL_SUBMISSION]
    assert (canceled.token_id, canceled.token_name) == (made["id"], "ci")
    assert by_action[AuditAction.CREATE_SUBMISSION].token_id is None
    assert by_action[AuditAction.CREATE_TOKEN].detail == {"name": "ci", "scopes": ["submit"]}
    assert by_action[AuditAction.QUARANTINE_DEVICE].detail == {"reason": "noisy fan"}
    assert by_action[AuditAction.CHANGE_USER].detail == {"role": "submitter"}
    assert by_action[AuditAction.REGISTER_LAB].detail == {"capacity": 3}


def test_failed_sign_ins_and_refused_requests_are_recorded(live: Live, scene: Scene, client: httpx.Client) -> None:
    wrong = "hunter2hunter2"
    with live.client(None) as visitor:
        for name in ("submit", "submit", wrong):
            expect(visitor.post(f"{API}/session", json={"name": name, "password": wrong}), 401)
    with live.browser("submit") as browser:
        change = {"old_password": wrong, "new_password": "another long password"}
        expect(browser.put(f"{API}/session/password", json=change), 422)
        expect(browser.put(f"{API}/session/password", json={**change, "old_password": PASSWORD}))
    with live.client(Scope.READ) as reader:
        for _ in range(3):
            expect(reader.post(f"{API}/users", json={"name": "mole", "role": "admin"}), 403)
    number = scene.submission(owner="somebody")
    with live.client(Scope.SUBMIT) as submitter:
        expect(submitter.post(f"{API}/submissions/{number}/cancel"), 403)
    assert [told(each) for each in entries(client)] == [
        ("", "session.sign_in", "user/submit", "refused"),
        ("", "session.sign_in", "user/submit", "refused"),
        ("", "session.sign_in", "user", "refused"),
        ("submit", "session.sign_in", "user/submit", "done"),
        ("submit", "session.change_password", "user/submit", "refused"),
        ("submit", "session.change_password", "user/submit", "done"),
        ("read", "request", "create_user", "refused"),
        ("submit", "submission.cancel", f"submission/{number}", "refused"),
    ]
    assert entries(client, outcome="refused", actor="read")[0].detail == {"needs": "admin"}


def test_log_contains_no_secret(live: Live, client: httpx.Client, sessions: SessionFactory) -> None:
    secrets = [PASSWORD, "a mistyped password", *live.secrets.values()]
    with live.client(None) as visitor:
        expect(visitor.post(f"{API}/session", json={"name": "a mistyped password", "password": "x"}), 401)
        expect(visitor.post(f"{API}/labs/join", json={"token": "wqj_guessed"}), 409)
    with live.browser("admin") as browser:
        secrets += [browser.cookies["wqlab_session"], browser.headers["X-CSRF-Token"], "wqj_guessed"]
        made = expect(browser.post(f"{API}/tokens", json={"name": "x", "scopes": ["read"]}), 201).json()
        user = expect(browser.post(f"{API}/users", json={"name": "new", "role": "viewer"}), 201).json()
        reset = expect(browser.post(f"{API}/users/new/password")).json()
        secrets += [made["token"], user["password"], reset["password"]]
    with sessions() as session:
        log = session.scalars(text("SELECT audit_log::text FROM audit_log")).all()
    assert len(log) == 6
    assert not [secret for secret in secrets if any(secret in line for line in log)]


def test_entry_is_written_in_the_transaction_of_the_change(client: httpx.Client, sessions: SessionFactory) -> None:
    expect(client.post(f"{API}/users", json={"name": "new", "role": "viewer"}), 201)
    made = expect(client.post(f"{API}/tokens", json={"name": "x", "scopes": ["read"]}), 201).json()
    expect(client.post(f"{API}/users", json={"name": "new", "role": "viewer"}), 409)
    with sessions() as session:
        for table, where, action in (
            ("users", "name = 'new'", "user.create"),
            ("tokens", f"id = {made['id']}", "token.create"),
        ):
            changed = session.scalar(text(f"SELECT xmin::text FROM {table} WHERE {where}"))
            logged = session.scalars(text(f"SELECT xmin::text FROM audit_log WHERE action = '{action}'")).all()
            assert logged == [changed]


def test_repeated_idempotency_key_creates_one_entry(live: Live, scene: Scene, client: httpx.Client) -> None:
    scene.devices()
    with live.client(Scope.SUBMIT) as submitter:
        for _ in range(2):
            expect(submitter.post(f"{API}/submissions", json=REQUEST, headers={"Idempotency-Key": "job 7"}), 201)
    created = entries(client, action="submission.create")
    assert [each.detail for each in created] == [{"targets": ["flush on tiny"]}]


def test_filters_and_pages(live: Live, client: httpx.Client) -> None:
    for number in range(5):
        expect(client.post(f"{API}/users", json={"name": f"user{number}", "role": "viewer"}), 201)
    with live.browser("submit"):
        pass
    assert len(entries(client, resource="user")) == 6
    assert [each.actor for each in entries(client, resource="user/user3")] == ["admin"]
    assert not entries(client, resource="user_")
    assert len(entries(client, action="user.create", actor="admin", address="127.0.0.1")) == 5
    assert not entries(client, address="192.0.2.1")
    last = entries(client)[-1].at
    assert len(entries(client, until=last.isoformat())) == 5
    assert len(entries(client, since=last.isoformat())) == 1
    first = Page[AuditEntry].model_validate_json(client.get(AUDIT, params={"limit": 4}).content)
    second = Page[AuditEntry].model_validate_json(client.get(AUDIT, params={"limit": 4, "cursor": first.next}).content)
    ids = [each.id for each in (*first.items, *second.items)]
    assert ids == sorted(set(ids), reverse=True)
    assert (len(ids), second.next, first.total) == (6, None, 6)
    expect(client.get(AUDIT, params={"action": "user.eat"}), 422)


@pytest.mark.parametrize("scope", [None, Scope.READ, Scope.MAINTAIN, Scope.WORKER])
def test_only_administrators_read_the_log(live: Live, scope: Scope | None) -> None:
    live.allow_public_reading()
    with live.client(scope) as client:
        expect(client.get(AUDIT), 403 if scope else 401)


def test_refusals_need_no_second_database_connection(
    live: Live, scene: Scene, engine: Engine, client: httpx.Client
) -> None:
    """Requests that hold a connection while they wait for another one would block each other."""
    number = scene.submission(owner="somebody")
    held: list[int] = []

    def count(*_: object) -> None:
        held.append(engine.pool.checkedout())  # type: ignore[attr-defined]

    event.listen(engine, "checkout", count)
    try:
        with live.client(Scope.SUBMIT) as submitter:
            expect(submitter.post(f"{API}/submissions/{number}/cancel"), 403)
    finally:
        event.remove(engine, "checkout", count)
    assert max(held) == 1
    assert len(entries(client, outcome="refused")) == 1
