"""Sign-in and sign-out with a browser, and password changes."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from sqlalchemy import func, select, update

from wqlab_contracts.api.accounts import SessionView
from wqlab_contracts.api.base import Problem
from wqlab_contracts.enums import Scope
from wqlab_server.accounts import passwords
from wqlab_server.http.browser_sessions import digest
from wqlab_server.models import BrowserSession, User
from wqlab_server.settings import Settings
from wqlab_server.storage.db import SessionFactory, transaction

from ..support.live_server import Live, expect
from ..support.people import PASSWORD
from ..support.scene import REQUEST

pytestmark = pytest.mark.integration
URL = "/api/v1/session"
SUBMISSIONS = "/api/v1/submissions"


@pytest.fixture
def stranger(live: Live) -> Iterator[httpx.Client]:
    """A client without credentials."""
    with live.client(None) as client:
        yield client


def signed_in(client: httpx.Client, name: str, password: str = PASSWORD) -> httpx.Response:
    return client.post(URL, json={"name": name, "password": password})


def who(client: httpx.Client) -> SessionView:
    return SessionView.model_validate_json(expect(client.get(URL)).content)


def problem(answer: httpx.Response) -> Problem:
    assert answer.headers["content-type"] == "application/problem+json"
    return Problem.model_validate_json(answer.content)


def test_user_signs_in_and_session_shows_the_user(stranger: httpx.Client) -> None:
    nobody = who(stranger)
    assert (nobody.user, nobody.csrf_token, nobody.expires_at, nobody.public_reading) == (None, None, None, False)
    assert stranger.get(SUBMISSIONS).status_code == 401

    answer = expect(signed_in(stranger, "maintain"))
    session_view = SessionView.model_validate_json(answer.content)
    assert session_view.user is not None
    assert (session_view.user.name, session_view.user.role) == ("maintain", "maintainer")
    assert session_view.user.scopes == [Scope.READ, Scope.SUBMIT, Scope.MAINTAIN]
    assert session_view == who(stranger)
    assert expect(stranger.get(SUBMISSIONS)).json()["total"] == 0


def test_session_shows_the_scopes_of_a_token(live: Live) -> None:
    with live.client(Scope.SUBMIT) as client:
        session_view = who(client)
        assert session_view.user is not None
        assert (session_view.user.name, session_view.user.scopes, session_view.csrf_token) == (
            "submit",
            [Scope.READ, Scope.SUBMIT],
            None,
        )
    with live.client(Scope.WORKER) as client:
        assert who(client).user is None


def test_cookie_is_http_only_and_database_stores_only_its_hash(
    stranger: httpx.Client, sessions: SessionFactory
) -> None:
    answer = expect(signed_in(stranger, "read"))
    name, _, rest = answer.headers["set-cookie"].partition("=")
    secret, *attributes = rest.split("; ")
    assert name == "wqlab_session"
    assert {each.lower() for each in attributes} == {"httponly", "max-age=2592000", "path=/", "samesite=lax"}
    assert secret not in answer.text
    assert answer.headers["cache-control"] == "no-store"
    with transaction(sessions) as session:
        assert session.scalars(select(BrowserSession.digest)).all() == [digest(secret)]
        stored = session.scalars(select(User.password_hash)).first()
    assert stored is not None
    assert stored.startswith("$argon2id$")


def test_cookie_is_secure_over_https(live: Live, settings: Settings, stranger: httpx.Client) -> None:
    live.app.state.settings = settings.model_copy(update={"public_url": "https://lab.example.org"})
    cookie = expect(signed_in(stranger, "read")).headers["set-cookie"]
    assert cookie.startswith("__Host-wqlab_session=")
    assert "; Secure" in cookie
    assert "domain" not in cookie.lower()


def test_wrong_password_and_unknown_user_get_the_same_response(
    stranger: httpx.Client, sessions: SessionFactory
) -> None:
    with transaction(sessions) as session:
        session.execute(update(User).where(User.name == "maintain").values(disabled_at=func.now()))
    wrong = signed_in(stranger, "admin", "not this one at all")
    answers = [
        wrong,
        signed_in(stranger, "nobody"),
        signed_in(stranger, "maintain"),  # disabled, with the right password
        signed_in(stranger, "'; drop table users; --\0"),
    ]
    assert {(answer.status_code, answer.content) for answer in answers} == {(401, wrong.content)}
    assert all("set-cookie" not in answer.headers for answer in answers)
    assert problem(wrong).type == "urn:wqlab:problem:wrong-credentials"


def test_unknown_user_takes_the_same_hash(stranger: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    verify, hashes = passwords._argon2.verify, []

    def recording_verify(password: str, password_hash: str) -> bool:
        hashes.append(password_hash)
        return verify(password, password_hash)

    monkeypatch.setattr(passwords._argon2, "verify", recording_verify)
    for name in ("admin", "nobody"):
        expect(signed_in(stranger, name, "not this one at all"), 401)
    of_admin, of_nobody = hashes
    assert of_admin != of_nobody
    assert of_admin.split("$")[:4] == of_nobody.split("$")[:4], "different algorithm or parameters"
    assert not passwords.matches("", None)


def test_sign_in_from_another_site_is_refused(stranger: httpx.Client) -> None:
    body = {"name": "read", "password": PASSWORD}
    for site in ("cross-site", "same-site"):
        expect(stranger.post(URL, json=body, headers={"Sec-Fetch-Site": site}), 403)
    # A form cannot send JSON.
    form = f'{{"name": "read", "password": "{PASSWORD}", "": "="}}'
    expect(stranger.post(URL, content=form, headers={"Content-Type": "text/plain"}), 422)
    expect(stranger.post(URL, data=body), 422)
    expect(stranger.post(URL, json=body, headers={"Sec-Fetch-Site": "same-origin"}))


def test_sign_in_does_not_reuse_a_given_session(live: Live, stranger: httpx.Client) -> None:
    """Session fixation: the attacker knows the cookie that the victim's browser sends."""
    for planted in ("known-to-the-attacker", live.browser("submit").cookies["wqlab_session"]):
        stranger.cookies.set("wqlab_session", planted, domain="127.0.0.1")
        cookie = expect(signed_in(stranger, "admin")).headers["set-cookie"]
        assert planted not in cookie
        with live.client(None) as attacker:
            attacker.cookies.set("wqlab_session", planted)
            assert who(attacker).user is None
        stranger.cookies.clear()


def test_second_sign_in_ends_the_browsers_first_session(live: Live, stranger: httpx.Client) -> None:
    expect(signed_in(stranger, "read"))
    first = stranger.cookies["wqlab_session"]
    expect(signed_in(stranger, "submit"))
    with live.client(None) as again:
        again.cookies.set("wqlab_session", first)
        assert who(again).user is None
    assert who(stranger).user is not None


def test_sign_out_ends_the_session_on_the_server(live: Live) -> None:
    with live.browser("submit") as client, live.browser("submit") as other:
        secret = client.cookies["wqlab_session"]
        gone = expect(client.delete(URL), 204)
        assert 'wqlab_session=""' in gone.headers["set-cookie"]
        client.cookies.set("wqlab_session", secret)
        expect(client.get(SUBMISSIONS), 401)
        assert "set-cookie" in client.get(URL).headers, "an invalid cookie is deleted"
        expect(client.delete(URL), 204)
        assert who(other).user is not None


def test_password_change_signs_out_other_browsers(live: Live) -> None:
    url, new = f"{URL}/password", "four words of my own"
    with live.browser("submit") as client, live.browser("submit") as other:
        wrong = client.put(url, json={"old_password": "not my password", "new_password": new})
        assert problem(expect(wrong, 422)).errors[0]["pointer"] == "/old_password"
        for easy in ("short", "aaaaaaaaaaaaaaaa", "submit submit"):
            refused = client.put(url, json={"old_password": PASSWORD, "new_password": easy})
            assert problem(expect(refused, 422)).errors[0]["pointer"] == "/new_password"
            assert easy not in refused.text
        old_cookie, old_csrf = client.cookies["wqlab_session"], client.headers["X-CSRF-Token"]
        answer = SessionView.model_validate_json(
            expect(client.put(url, json={"old_password": PASSWORD, "new_password": new})).content
        )
        assert client.cookies["wqlab_session"] != old_cookie
        assert answer == who(client)
        expect(client.post(SUBMISSIONS, json=REQUEST), 403)  # with the old CSRF token
        assert answer.csrf_token is not None
        assert answer.csrf_token != old_csrf
        expect(client.post(SUBMISSIONS, json=REQUEST, headers={"X-CSRF-Token": answer.csrf_token}), 201)
        assert who(other).user is None
        other.cookies.set("wqlab_session", old_cookie)
        assert who(other).user is None
    with live.client(None) as client:
        expect(signed_in(client, "submit"), 401)
        expect(signed_in(client, "submit", new))
        # The same text, composed differently by another keyboard.
        expect(signed_in(client, "submit", new.replace(" ", "\N{NO-BREAK SPACE}")))
    with live.client(Scope.SUBMIT) as client:
        expect(client.get(SUBMISSIONS))
        expect(client.put(url, json={"old_password": new, "new_password": PASSWORD}), 403)
