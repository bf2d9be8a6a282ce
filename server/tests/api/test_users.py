"""Users and their tokens: who may make whom, and what is left when a role or a user goes."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from sqlalchemy import func, select, update

from wqlab_contracts.api.accounts import TokenCreated, TokenView, UserPassword, UserView
from wqlab_contracts.api.submissions import Page
from wqlab_contracts.enums import Scope
from wqlab_server.models import Token, User
from wqlab_server.storage.db import SessionFactory, transaction

from ..support.people import browser
from .conftest import Live
from .scene import REQUEST
from .test_submissions import ok

pytestmark = pytest.mark.integration
USERS, TOKENS, SUBMISSIONS = "/api/v1/users", "/api/v1/tokens", "/api/v1/submissions"


def token(client: httpx.Client, *scopes: str, **more: Any) -> TokenCreated:
    answer = client.post(TOKENS, json={"name": "mine", "scopes": list(scopes), **more})
    return TokenCreated.model_validate_json(ok(answer, 201).content)


def status_of(live: Live, made: TokenCreated, method: str = "GET") -> int:
    with live.client(None) as client:
        client.headers["Authorization"] = f"Bearer {made.token}"
        return client.request(method, SUBMISSIONS, json=REQUEST if method == "POST" else None).status_code


# --- users ------------------------------------------------------------------------------------------------------


def test_an_administrator_makes_a_user_whose_password_is_shown_once(live: Live) -> None:
    with live.browser("admin") as admin:
        made = UserPassword.model_validate_json(
            ok(admin.post(USERS, json={"name": "ada.l", "role": "submitter"}), 201).content
        )
        assert (made.name, made.role, made.last_sign_in_at, made.disabled_at) == ("ada.l", "submitter", None, None)
        assert len(made.password) == 24
        shown = ok(admin.get(USERS)).text + ok(admin.get(f"{USERS}/ada.l")).text
        assert made.password not in shown
        assert "argon2" not in shown
        assert "ada.l already" in ok(admin.post(USERS, json={"name": "ada.l", "role": "viewer"}), 409).text
        with browser(live.url, "ada.l", made.password) as ada:
            assert ok(ada.post(SUBMISSIONS, json=REQUEST), 201).json()["owner"] == "ada.l"
            ok(ada.get(USERS), 403)
        assert UserView.model_validate_json(admin.get(f"{USERS}/ada.l").content).last_sign_in_at is not None


@pytest.mark.parametrize("name", ["", "Ada", "ada l", "-ada", "a" * 65, "ädä", "../etc", "ada\n"])
def test_names_that_look_alike_or_odd_are_refused(live: Live, name: str) -> None:
    with live.client(Scope.ADMIN) as admin:
        refused = ok(admin.post(USERS, json={"name": name, "role": "viewer"}), 422).json()
        assert refused["errors"][0]["pointer"] == "/name"


def test_users_are_listed_by_pages_and_found(live: Live) -> None:
    with live.client(Scope.ADMIN) as admin:
        first = Page[UserView].model_validate_json(ok(admin.get(USERS, params={"limit": 3})).content)
        assert ([user.name for user in first.items], first.total) == (["admin", "maintain", "submit"], 4)
        second = Page[UserView].model_validate_json(admin.get(USERS, params={"limit": 3, "cursor": first.next}).content)
        assert ([user.name for user in second.items], second.next) == (["read"], None)
        assert [user["name"] for user in admin.get(USERS, params={"q": "MAIN"}).json()["items"]] == ["maintain"]
        assert admin.get(USERS, params={"q": "%"}).json()["total"] == 0


@pytest.mark.parametrize("scope", [None, Scope.READ, Scope.SUBMIT, Scope.MAINTAIN, Scope.WORKER])
def test_users_are_the_administrators_business(live: Live, scope: Scope | None) -> None:
    status = 401 if scope is None else 403
    with live.client(scope) as client:
        for name in ("admin", "nobody"):  # nor does a refusal tell whether there is such a user
            for method, url, body in (
                ("GET", USERS, None),
                ("POST", USERS, {"name": name, "role": "admin"}),
                ("GET", f"{USERS}/{name}", None),
                ("PATCH", f"{USERS}/{name}", {"role": "admin"}),
                ("POST", f"{USERS}/{name}/password", None),
            ):
                assert client.request(method, url, json=body).status_code == status, (method, url)


def test_a_viewer_looks_and_nothing_else(live: Live) -> None:
    with live.browser("read") as client:
        ok(client.get(SUBMISSIONS))
        refused = ok(client.post(SUBMISSIONS, json=REQUEST), 403)
        assert refused.json()["detail"] == "this needs scope submit; you have read"
        assert client.post("/api/v1/devices/tiny-1/quarantine", json={"reason": "x"}).status_code == 403


def test_a_role_counts_at_once_in_browsers_and_for_tokens(live: Live) -> None:
    with live.client(Scope.ADMIN) as admin, live.browser("submit") as client:
        made = token(client, "submit")
        ok(admin.patch(f"{USERS}/submit", json={"role": "viewer"}))
        ok(client.post(SUBMISSIONS, json=REQUEST), 403)
        assert (status_of(live, made), status_of(live, made, "POST")) == (200, 403)
        ok(admin.patch(f"{USERS}/submit", json={"role": "admin"}))
        ok(client.get(USERS))
        assert status_of(live, made, "POST") == 201
        with live.client(None) as robot:
            robot.headers["Authorization"] = f"Bearer {made.token}"
            ok(robot.get(USERS), 403)  # the token keeps what it was made with


def test_a_disabled_users_browsers_and_tokens_are_dead_for_good(live: Live) -> None:
    with live.client(Scope.ADMIN) as admin, live.browser("maintain") as client:
        made = token(client, "read")
        assert ok(admin.patch(f"{USERS}/maintain", json={"disabled": True})).json()["disabled_at"]
        ok(admin.patch(f"{USERS}/maintain", json={"disabled": True}))
        ok(client.get(SUBMISSIONS), 401)
        assert client.get("/api/v1/session").json()["user"] is None
        assert status_of(live, made) == 401
        with live.client(Scope.MAINTAIN) as robot:
            ok(robot.get(SUBMISSIONS), 401)
        assert ok(admin.patch(f"{USERS}/maintain", json={"disabled": False})).json()["disabled_at"] is None
        ok(client.get(SUBMISSIONS), 401)
        assert status_of(live, made) == 401
        live.browser("maintain").close()


def test_the_lab_keeps_an_administrator(live: Live) -> None:
    with live.client(Scope.ADMIN) as admin:
        for change in ({"role": "viewer"}, {"disabled": True}, {"role": "maintainer", "disabled": True}):
            assert "only administrator" in ok(admin.patch(f"{USERS}/admin", json=change), 409).text
        ok(admin.patch(f"{USERS}/maintain", json={"role": "admin"}))
        ok(admin.patch(f"{USERS}/nobody", json={"role": "admin"}), 404)
        answers: list[int] = []

        def demote(name: str) -> None:
            with live.client(Scope.ADMIN) as client:
                answers.append(client.patch(f"{USERS}/{name}", json={"disabled": True}).status_code)

        threads = [threading.Thread(target=demote, args=(name,)) for name in ("admin", "maintain")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    # Whoever comes second finds the lab with one administrator, or has been disabled by the first.
    assert answers.count(200) == 1
    assert set(answers) <= {200, 401, 409}


def test_a_reset_password_is_shown_once_and_ends_sessions(live: Live) -> None:
    with live.client(Scope.ADMIN) as admin, live.browser("submit") as client:
        reset = UserPassword.model_validate_json(ok(admin.post(f"{USERS}/submit/password")).content)
        ok(client.get(SUBMISSIONS), 401)
        with browser(live.url, "submit", reset.password) as again:
            ok(again.get(SUBMISSIONS))
        with live.client(Scope.SUBMIT) as robot:
            ok(robot.get(SUBMISSIONS))
        ok(admin.post(f"{USERS}/nobody/password"), 404)


# --- tokens -----------------------------------------------------------------------------------------------------


def test_a_token_acts_for_its_owner_until_it_is_revoked(live: Live) -> None:
    with live.browser("submit") as client:
        made = token(client, "submit", "read")
        assert (made.owner, made.scopes, made.expires_at) == ("submit", ["read", "submit"], None)
        with live.client(None) as robot:
            robot.headers["Authorization"] = f"Bearer {made.token}"
            number = ok(robot.post(SUBMISSIONS, json=REQUEST), 201).json()["id"]
        assert client.get(f"{SUBMISSIONS}/{number}").json()["owner"] == "submit"
        ok(client.post(f"{SUBMISSIONS}/{number}/cancel"))
        assert made.token not in client.get(TOKENS).text
        ok(client.post(f"{TOKENS}/{made.id}/revoke"))
        assert ok(client.post(f"{TOKENS}/{made.id}/revoke")).json()["revoked_at"]
        assert status_of(live, made) == 401


@pytest.mark.parametrize(
    ("scope", "wanted"),
    [(Scope.READ, "submit"), (Scope.SUBMIT, "maintain"), (Scope.MAINTAIN, "admin"), (Scope.MAINTAIN, "worker")],
)
def test_nobody_gives_away_more_than_they_have(live: Live, scope: Scope, wanted: str) -> None:
    for client in (live.client(scope), live.browser(scope.value)):
        with client:
            refused = ok(client.post(TOKENS, json={"name": "more", "scopes": ["read", wanted]}), 422).json()
            assert refused["errors"][0]["pointer"] == "/scopes/1"
            token(client, "read")


def test_a_small_token_of_a_great_user_stays_small(live: Live) -> None:
    with live.browser("admin") as admin:
        small = token(admin, "read")
    with live.client(None) as robot:
        robot.headers["Authorization"] = f"Bearer {small.token}"
        ok(robot.post(TOKENS, json={"name": "more", "scopes": ["submit"]}), 422)
        assert [each["owner"] for each in ok(robot.get(TOKENS)).json()["items"]] == ["admin", "admin"]


def test_scopes_are_named_and_do_not_mix(live: Live) -> None:
    with live.client(Scope.ADMIN) as admin:
        assert "there are: read" in ok(admin.post(TOKENS, json={"name": "x", "scopes": ["root"]}), 422).text
        assert ok(admin.post(TOKENS, json={"name": "x", "scopes": []}), 422)
        assert "stands alone" in ok(admin.post(TOKENS, json={"name": "x", "scopes": ["worker", "read"]}), 422).text
        assert token(admin, "worker").owner is None
    with live.client(Scope.WORKER) as worker:
        ok(worker.get(TOKENS), 403)


def test_a_token_ends_when_it_was_to_and_makes_none_that_lives_longer(live: Live, sessions: SessionFactory) -> None:
    soon = datetime.now(UTC) + timedelta(hours=1)
    with live.browser("submit") as client:
        past = {"name": "x", "scopes": ["read"], "expires_at": "2001-01-01T00:00:00Z"}
        assert ok(client.post(TOKENS, json=past), 422).json()["errors"][0]["pointer"] == "/expires_at"
        made = token(client, "submit", expires_at=soon.isoformat())
        assert made.expires_at == soon
    with live.client(None) as robot:
        robot.headers["Authorization"] = f"Bearer {made.token}"
        later = {"name": "x", "scopes": ["read"], "expires_at": (soon + timedelta(days=1)).isoformat()}
        assert ok(robot.post(TOKENS, json=later), 422).json()["errors"][0]["pointer"] == "/expires_at"
        child = token(robot, "read")
        assert child.expires_at == soon
    assert status_of(live, child) == 200
    with transaction(sessions) as session:
        session.execute(update(Token).where(Token.id == made.id).values(expires_at=func.now()))
    assert status_of(live, made) == 401


def test_everyone_sees_and_revokes_their_own_tokens_an_administrator_all(live: Live) -> None:
    def owners(client: httpx.Client, **params: str) -> list[str | None]:
        answer = ok(client.get(TOKENS, params=params)).json()
        return [TokenView.model_validate(each).owner for each in answer["items"]]

    with live.browser("submit") as client, live.browser("maintain") as other, live.client(Scope.ADMIN) as admin:
        mine = token(client, "read")
        assert owners(client) == ["submit", "submit"]
        assert owners(client, owner="admin") == []
        assert owners(admin) == ["submit", None, "admin", "maintain", "submit", "read"]
        assert owners(admin, owner="read") == ["read"]
        first = ok(admin.get(TOKENS, params={"limit": 4})).json()
        assert (len(first["items"]), first["total"]) == (4, 6)
        assert owners(admin, limit="4", cursor=first["next"]) == ["submit", "read"]
        # As if there were no such token.
        assert ok(other.post(f"{TOKENS}/{mine.id}/revoke"), 404).json()["detail"] == f"no token {mine.id}"
        assert status_of(live, mine) == 200
        ok(admin.post(f"{TOKENS}/{mine.id}/revoke"))
        assert status_of(live, mine) == 401


def test_the_database_holds_no_secret(live: Live, sessions: SessionFactory) -> None:
    with live.client(Scope.ADMIN) as admin:
        made = token(admin, "read")
        password = ok(admin.post(USERS, json={"name": "ada", "role": "viewer"}), 201).json()["password"]
    with transaction(sessions) as session:
        stored = " ".join([*session.scalars(select(Token.digest)), *session.scalars(select(User.password_hash))])
    assert made.token not in stored
    assert password not in stored
