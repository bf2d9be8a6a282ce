"""Endpoints of users: creation, roles, disabling, password resets."""

from __future__ import annotations

import threading
from typing import Any

import httpx
import pytest

from wqlab_contracts.api.accounts import TokenCreated, UserPassword, UserView
from wqlab_contracts.api.base import Page
from wqlab_contracts.enums import Scope

from ..support.live_server import Live, expect
from ..support.people import browser
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


def test_password_of_a_new_user_is_shown_once(live: Live) -> None:
    with live.browser("admin") as admin:
        made = UserPassword.model_validate_json(
            expect(admin.post(USERS, json={"name": "ada.l", "role": "submitter"}), 201).content
        )
        assert (made.name, made.role, made.last_sign_in_at, made.disabled_at) == ("ada.l", "submitter", None, None)
        assert len(made.password) == 24
        shown = expect(admin.get(USERS)).text
        assert made.password not in shown
        assert "argon2" not in shown
        assert "ada.l already exists" in expect(admin.post(USERS, json={"name": "ada.l", "role": "viewer"}), 409).text
        with browser(live.url, "ada.l", made.password) as ada:
            assert expect(ada.post(SUBMISSIONS, json=REQUEST), 201).json()["owner"] == "ada.l"
            expect(ada.get(USERS), 403)
        [ada_after] = Page[UserView].model_validate_json(admin.get(USERS, params={"q": "ada.l"}).content).items
        assert ada_after.last_sign_in_at is not None


@pytest.mark.parametrize("name", ["", "Ada", "ada l", "-ada", "a" * 65, "ädä", "../etc", "ada\n"])
def test_invalid_user_names_are_refused(live: Live, name: str) -> None:
    with live.client(Scope.ADMIN) as admin:
        refused = expect(admin.post(USERS, json={"name": name, "role": "viewer"}), 422).json()
        assert refused["errors"][0]["pointer"] == "/name"


def test_users_are_listed_in_pages_and_searched(live: Live) -> None:
    with live.client(Scope.ADMIN) as admin:
        first = Page[UserView].model_validate_json(expect(admin.get(USERS, params={"limit": 3})).content)
        assert ([user.name for user in first.items], first.total) == (["admin", "maintain", "submit"], 4)
        second = Page[UserView].model_validate_json(admin.get(USERS, params={"limit": 3, "cursor": first.next}).content)
        assert ([user.name for user in second.items], second.next) == (["read"], None)
        assert [user["name"] for user in admin.get(USERS, params={"q": "MAIN"}).json()["items"]] == ["maintain"]
        assert admin.get(USERS, params={"q": "%"}).json()["total"] == 0


@pytest.mark.parametrize("scope", [None, Scope.READ, Scope.SUBMIT, Scope.MAINTAIN, Scope.WORKER])
def test_only_administrators_manage_users(live: Live, scope: Scope | None) -> None:
    status = 401 if scope is None else 403
    with live.client(scope) as client:
        for name in ("admin", "nobody"):  # a refusal does not reveal whether the user exists
            for method, url, body in (
                ("GET", USERS, None),
                ("POST", USERS, {"name": name, "role": "admin"}),
                ("PATCH", f"{USERS}/{name}", {"role": "admin"}),
                ("POST", f"{USERS}/{name}/password", None),
            ):
                assert client.request(method, url, json=body).status_code == status, (method, url)


def test_viewer_can_only_read(live: Live) -> None:
    with live.browser("read") as client:
        expect(client.get(SUBMISSIONS))
        refused = expect(client.post(SUBMISSIONS, json=REQUEST), 403)
        assert refused.json()["detail"] == "this request needs scope submit; you have read"
        assert client.post("/api/v1/devices/tiny-1/quarantine", json={"reason": "x"}).status_code == 403


def test_role_change_takes_effect_for_browsers_and_tokens(live: Live) -> None:
    with live.client(Scope.ADMIN) as admin, live.browser("submit") as client:
        made = token(client, "submit")
        expect(admin.patch(f"{USERS}/submit", json={"role": "viewer"}))
        expect(client.post(SUBMISSIONS, json=REQUEST), 403)
        assert (status_of(live, made), status_of(live, made, "POST")) == (200, 403)
        expect(admin.patch(f"{USERS}/submit", json={"role": "admin"}))
        expect(client.get(USERS))
        assert status_of(live, made, "POST") == 201
        with live.client(None) as robot:
            robot.headers["Authorization"] = f"Bearer {made.token}"
            expect(robot.get(USERS), 403)  # the token keeps the scopes it was created with


def test_disabling_a_user_ends_sessions_and_revokes_tokens(live: Live) -> None:
    with live.client(Scope.ADMIN) as admin, live.browser("maintain") as client:
        made = token(client, "read")
        assert expect(admin.patch(f"{USERS}/maintain", json={"disabled": True})).json()["disabled_at"]
        expect(admin.patch(f"{USERS}/maintain", json={"disabled": True}))
        expect(client.get(SUBMISSIONS), 401)
        assert client.get("/api/v1/session").json()["user"] is None
        assert status_of(live, made) == 401
        with live.client(Scope.MAINTAIN) as robot:
            expect(robot.get(SUBMISSIONS), 401)
        assert expect(admin.patch(f"{USERS}/maintain", json={"disabled": False})).json()["disabled_at"] is None
        expect(client.get(SUBMISSIONS), 401)
        assert status_of(live, made) == 401
        live.browser("maintain").close()


def test_last_administrator_cannot_be_removed(live: Live) -> None:
    with live.client(Scope.ADMIN) as admin:
        for change in ({"role": "viewer"}, {"disabled": True}, {"role": "maintainer", "disabled": True}):
            assert "only administrator" in expect(admin.patch(f"{USERS}/admin", json=change), 409).text
        expect(admin.patch(f"{USERS}/maintain", json={"role": "admin"}))
        expect(admin.patch(f"{USERS}/nobody", json={"role": "admin"}), 404)
        answers: list[int] = []

        def demote(name: str) -> None:
            with live.client(Scope.ADMIN) as client:
                answers.append(client.patch(f"{USERS}/{name}", json={"disabled": True}).status_code)

        threads = [threading.Thread(target=demote, args=(name,)) for name in ("admin", "maintain")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    # The second request finds only one administrator left, or its sender was disabled by the first.
    assert answers.count(200) == 1
    assert set(answers) <= {200, 401, 409}


def test_password_reset_ends_sessions(live: Live) -> None:
    with live.client(Scope.ADMIN) as admin, live.browser("submit") as client:
        reset = UserPassword.model_validate_json(expect(admin.post(f"{USERS}/submit/password")).content)
        expect(client.get(SUBMISSIONS), 401)
        with browser(live.url, "submit", reset.password) as again:
            expect(again.get(SUBMISSIONS))
        with live.client(Scope.SUBMIT) as robot:
            expect(robot.get(SUBMISSIONS))
        expect(admin.post(f"{USERS}/nobody/password"), 404)
