"""Endpoints of API tokens: scopes, expiry, revocation."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from sqlalchemy import func, select, text, update

from wqlab_contracts.api.accounts import TokenCreated, TokenView
from wqlab_contracts.enums import Scope
from wqlab_server.http.auth import create_token
from wqlab_server.http.problems import ApiProblem
from wqlab_server.models import Token, User
from wqlab_server.storage.db import SessionFactory, transaction

from ..support.live_server import Live, expect
from ..support.scene import REQUEST

pytestmark = pytest.mark.integration
USERS, TOKENS, SUBMISSIONS = "/api/v1/users", "/api/v1/tokens", "/api/v1/submissions"


def token(client: httpx.Client, *scopes: str, **more: Any) -> TokenCreated:
    answer = client.post(TOKENS, json={"name": "mine", "scopes": list(scopes), **more})
    return TokenCreated.model_validate_json(expect(answer, 201).content)


def status_of(live: Live, made: TokenCreated, method: str = "GET") -> int:
    with live.client(None) as client:
        client.headers["Authorization"] = f"Bearer {made.token}"
        return client.request(method, SUBMISSIONS, json=REQUEST if method == "POST" else None).status_code


def test_token_acts_for_its_owner_until_it_is_revoked(live: Live) -> None:
    with live.browser("submit") as client:
        made = token(client, "submit", "read")
        assert (made.owner, made.scopes, made.expires_at) == ("submit", ["read", "submit"], None)
        with live.client(None) as robot:
            robot.headers["Authorization"] = f"Bearer {made.token}"
            number = expect(robot.post(SUBMISSIONS, json=REQUEST), 201).json()["id"]
        assert client.get(f"{SUBMISSIONS}/{number}").json()["owner"] == "submit"
        expect(client.post(f"{SUBMISSIONS}/{number}/cancel"))
        assert made.token not in client.get(TOKENS).text
        expect(client.post(f"{TOKENS}/{made.id}/revoke"))
        assert expect(client.post(f"{TOKENS}/{made.id}/revoke")).json()["revoked_at"]
        assert status_of(live, made) == 401


@pytest.mark.parametrize(
    ("scope", "wanted"),
    [(Scope.READ, "submit"), (Scope.SUBMIT, "maintain"), (Scope.MAINTAIN, "admin"), (Scope.MAINTAIN, "worker")],
)
def test_token_scopes_cannot_exceed_the_owners(live: Live, scope: Scope, wanted: str) -> None:
    # A token with scope read makes no tokens at all: see http/test_read_only.py.
    clients = [live.browser(scope.value), *([] if scope is Scope.READ else [live.client(scope)])]
    for client in clients:
        with client:
            refused = expect(client.post(TOKENS, json={"name": "more", "scopes": ["read", wanted]}), 422).json()
            assert refused["errors"][0]["pointer"] == "/scopes/1"
            token(client, "read")


def test_token_scopes_cannot_exceed_the_creating_tokens(live: Live) -> None:
    with live.browser("admin") as admin:
        small = token(admin, "read")
    with live.client(None) as robot:
        robot.headers["Authorization"] = f"Bearer {small.token}"
        # A token with scope read of somebody who may do more changes nothing.
        expect(robot.post(TOKENS, json={"name": "more", "scopes": ["submit"]}), 403)
        expect(robot.post(TOKENS, json={"name": "same", "scopes": ["read"]}), 403)
        expect(robot.post(f"{TOKENS}/{small.id}/revoke"), 403)
        expect(robot.put("/api/v1/mail-address", json={"address": "mallory@example.org"}), 403)
        assert [each["owner"] for each in expect(robot.get(TOKENS)).json()["items"]] == ["admin", "admin"]


def test_invalid_scope_combinations_are_refused(live: Live) -> None:
    with live.client(Scope.ADMIN) as admin:
        assert "the scopes are: read" in expect(admin.post(TOKENS, json={"name": "x", "scopes": ["root"]}), 422).text
        assert expect(admin.post(TOKENS, json={"name": "x", "scopes": []}), 422)
        assert (
            "cannot be combined with other scopes"
            in expect(admin.post(TOKENS, json={"name": "x", "scopes": ["worker", "read"]}), 422).text
        )
        assert token(admin, "worker").owner is None
    with live.client(Scope.WORKER) as worker:
        expect(worker.get(TOKENS), 403)


def test_token_expires_and_creates_none_that_lasts_longer(live: Live, sessions: SessionFactory) -> None:
    soon = datetime.now(UTC) + timedelta(hours=1)
    with live.browser("submit") as client:
        past = {"name": "x", "scopes": ["read"], "expires_at": "2001-01-01T00:00:00Z"}
        assert expect(client.post(TOKENS, json=past), 422).json()["errors"][0]["pointer"] == "/expires_at"
        made = token(client, "submit", expires_at=soon.isoformat())
        assert made.expires_at == soon
    with live.client(None) as robot:
        robot.headers["Authorization"] = f"Bearer {made.token}"
        later = {"name": "x", "scopes": ["read"], "expires_at": (soon + timedelta(days=1)).isoformat()}
        assert expect(robot.post(TOKENS, json=later), 422).json()["errors"][0]["pointer"] == "/expires_at"
        child = token(robot, "read")
        assert child.expires_at == soon
    assert status_of(live, child) == 200
    with transaction(sessions) as session:
        session.execute(update(Token).where(Token.id == made.id).values(expires_at=func.now()))
    assert status_of(live, made) == 401


def test_users_manage_their_own_tokens_and_administrators_all(live: Live) -> None:
    def owners(client: httpx.Client, **params: str) -> list[str | None]:
        answer = expect(client.get(TOKENS, params=params)).json()
        return [TokenView.model_validate(each).owner for each in answer["items"]]

    with live.browser("submit") as client, live.browser("maintain") as other, live.client(Scope.ADMIN) as admin:
        mine = token(client, "read")
        assert owners(client) == ["submit", "submit"]
        assert owners(client, owner="admin") == []
        assert owners(admin) == ["submit", None, "admin", "maintain", "submit", "read"]
        assert owners(admin, owner="read") == ["read"]
        first = expect(admin.get(TOKENS, params={"limit": 4})).json()
        assert (len(first["items"]), first["total"]) == (4, 6)
        assert owners(admin, limit="4", cursor=first["next"]) == ["submit", "read"]
        # The response is the same as for an unknown token.
        assert expect(other.post(f"{TOKENS}/{mine.id}/revoke"), 404).json()["detail"] == f"no token {mine.id}"
        assert status_of(live, mine) == 200
        expect(admin.post(f"{TOKENS}/{mine.id}/revoke"))
        assert status_of(live, mine) == 401


def test_database_contains_no_secret(live: Live, sessions: SessionFactory) -> None:
    with live.client(Scope.ADMIN) as admin:
        made = token(admin, "read")
        password = expect(admin.post(USERS, json={"name": "ada", "role": "viewer"}), 201).json()["password"]
    with transaction(sessions) as session:
        stored = " ".join([*session.scalars(select(Token.digest)), *session.scalars(select(User.password_hash))])
    assert made.token not in stored
    assert password not in stored


def bearer(live: Live, made: TokenCreated) -> httpx.Client:
    client = live.client(None)
    client.headers["Authorization"] = f"Bearer {made.token}"
    return client


def test_revoking_a_token_revokes_those_created_with_it(live: Live) -> None:
    with live.browser("admin") as browser:
        stolen, other = token(browser, "admin"), token(browser, "admin")
        with bearer(live, stolen) as thief:
            child, worker = token(thief, "admin"), token(thief, "worker")
            with bearer(live, child) as heir:
                grandchild = token(heir, "read")
        assert (child.parent_id, grandchild.parent_id, stolen.parent_id) == (stolen.id, child.id, None)
        assert [status_of(live, each) for each in (stolen, child, grandchild)] == [200] * 3
        expect(browser.post(f"{TOKENS}/{stolen.id}/revoke"))
        assert [status_of(live, each) for each in (stolen, child, grandchild)] == [401] * 3
        with bearer(live, worker) as client:
            expect(client.get("/api/worker/v1/labs/local/leases"), 401)
        assert status_of(live, other) == 200


def test_disabling_a_user_revokes_what_the_users_tokens_created(live: Live) -> None:
    with live.browser("admin") as browser:
        expect(browser.post(USERS, json={"name": "second", "role": "admin"}), 201)
        expect(browser.patch(f"{USERS}/maintain", json={"role": "admin"}))
        with live.browser("maintain") as client, bearer(live, token(client, "admin")) as robot:
            worker = token(robot, "worker")
        with bearer(live, worker) as client:
            expect(client.get("/api/worker/v1/labs/local/leases"))
            expect(browser.patch(f"{USERS}/maintain", json={"disabled": True}))
            expect(client.get("/api/worker/v1/labs/local/leases"), 401)


def test_token_of_an_expired_token_is_expired(live: Live, sessions: SessionFactory) -> None:
    ends_at = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    with live.browser("admin") as browser, bearer(live, token(browser, "admin", expires_at=ends_at)) as robot:
        child = token(robot, "admin")
        with bearer(live, child) as heir:
            grandchild = token(heir, "worker")
    assert child.expires_at == grandchild.expires_at == datetime.fromisoformat(ends_at)
    assert status_of(live, child) == 200
    with transaction(sessions) as session:
        session.execute(update(Token).where(Token.expires_at.is_not(None)).values(expires_at=func.now()))
    assert status_of(live, child) == 401


def test_token_created_while_its_parent_is_revoked_is_revoked_too(live: Live, sessions: SessionFactory) -> None:
    """The grandparent's revocation waits for the request that is creating the grandchild, and then sees it."""
    with live.browser("admin") as browser:
        root = token(browser, "admin")
        with bearer(live, root) as robot:
            child = token(robot, "admin")
        with sessions() as creating, ThreadPoolExecutor() as pool:
            row, _ = create_token(creating, "late", [Scope.WORKER], parent_id=child.id)
            revoked = pool.submit(browser.post, f"{TOKENS}/{root.id}/revoke")
            wait_for_lock(sessions)
            creating.commit()
            expect(revoked.result())
        with transaction(sessions) as session:
            assert session.get_one(Token, row.id).revoked_at is not None
        with sessions() as creating, pytest.raises(ApiProblem, match="revoked"):
            create_token(creating, "later", [Scope.WORKER], parent_id=child.id)


def wait_for_lock(sessions: SessionFactory) -> None:
    """Return once a database session waits for a lock of another."""
    waiting = text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
    while True:
        with sessions() as session:
            if session.scalar(waiting):
                return
