"""Endpoints of API tokens: scopes, expiry, revocation."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from sqlalchemy import func, select, update

from wqlab_contracts.api.accounts import TokenCreated, TokenView
from wqlab_contracts.enums import Scope
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
    for client in (live.client(scope), live.browser(scope.value)):
        with client:
            refused = expect(client.post(TOKENS, json={"name": "more", "scopes": ["read", wanted]}), 422).json()
            assert refused["errors"][0]["pointer"] == "/scopes/1"
            token(client, "read")


def test_token_scopes_cannot_exceed_the_creating_tokens(live: Live) -> None:
    with live.browser("admin") as admin:
        small = token(admin, "read")
    with live.client(None) as robot:
        robot.headers["Authorization"] = f"Bearer {small.token}"
        expect(robot.post(TOKENS, json={"name": "more", "scopes": ["submit"]}), 422)
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
