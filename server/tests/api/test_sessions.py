"""Signing in with a browser: what it takes, what it gives, how it ends, and what attackers get."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import httpx
import pytest
from pwdlib import PasswordHash
from sqlalchemy import func, select, update

from wqlab_contracts.api.accounts import SessionView
from wqlab_contracts.api.submissions import Problem
from wqlab_contracts.enums import Scope
from wqlab_server.accounts import passwords, throttle
from wqlab_server.http import sse
from wqlab_server.http.browser_sessions import digest
from wqlab_server.models import BrowserSession, SignInThrottle, Submission, User
from wqlab_server.settings import Settings
from wqlab_server.storage.db import SessionFactory, transaction

from ..support.people import PASSWORD, browser
from .conftest import Live
from .scene import REQUEST, Scene
from .test_submissions import ok

pytestmark = pytest.mark.integration
URL = "/api/v1/session"
SUBMISSIONS = "/api/v1/submissions"


@pytest.fixture
def stranger(live: Live) -> Iterator[httpx.Client]:
    """A browser that nobody has signed in with."""
    with live.client(None) as client:
        yield client


def signed_in(client: httpx.Client, name: str, password: str = PASSWORD) -> httpx.Response:
    return client.post(URL, json={"name": name, "password": password})


def who(client: httpx.Client) -> SessionView:
    return SessionView.model_validate_json(ok(client.get(URL)).content)


def problem(answer: httpx.Response) -> Problem:
    assert answer.headers["content-type"] == "application/problem+json"
    return Problem.model_validate_json(answer.content)


# --- signing in -------------------------------------------------------------------------------------------------


def test_a_user_signs_in_and_is_told_who_they_are(stranger: httpx.Client) -> None:
    nobody = who(stranger)
    assert (nobody.user, nobody.csrf_token, nobody.expires_at, nobody.public_reading) == (None, None, None, False)
    assert stranger.get(SUBMISSIONS).status_code == 401

    answer = ok(signed_in(stranger, "maintain"))
    told = SessionView.model_validate_json(answer.content)
    assert told.user is not None
    assert (told.user.name, told.user.role) == ("maintain", "maintainer")
    assert told.user.scopes == [Scope.READ, Scope.SUBMIT, Scope.MAINTAIN]
    assert told == who(stranger)
    assert ok(stranger.get(SUBMISSIONS)).json()["total"] == 0


def test_a_token_is_told_what_it_may(live: Live) -> None:
    with live.client(Scope.SUBMIT) as client:
        told = who(client)
        assert told.user is not None
        assert (told.user.name, told.user.scopes, told.csrf_token) == ("submit", [Scope.READ, Scope.SUBMIT], None)
    with live.client(Scope.WORKER) as client:
        assert who(client).user is None


def test_the_cookie_is_for_the_browser_alone_and_the_database_cannot_replay_it(
    stranger: httpx.Client, sessions: SessionFactory
) -> None:
    answer = ok(signed_in(stranger, "read"))
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


def test_a_guess_at_a_stolen_password_costs_64_mib_and_three_passes(real_passwords: PasswordHash) -> None:
    assert "$argon2id$v=19$m=65536,t=3,p=4$" in real_passwords.hash("from the start")


def test_over_https_the_cookie_goes_no_other_way(live: Live, settings: Settings, stranger: httpx.Client) -> None:
    live.app.state.settings = settings.model_copy(update={"public_url": "https://lab.example.org"})
    cookie = ok(signed_in(stranger, "read")).headers["set-cookie"]
    assert cookie.startswith("__Host-wqlab_session=")
    assert "; Secure" in cookie
    assert "domain" not in cookie.lower()


def test_nothing_tells_a_wrong_password_from_a_user_that_there_is_not(
    stranger: httpx.Client, sessions: SessionFactory
) -> None:
    with transaction(sessions) as session:
        session.execute(update(User).where(User.name == "maintain").values(disabled_at=func.now()))
    wrong = signed_in(stranger, "admin", "not this one at all")
    answers = [
        wrong,
        signed_in(stranger, "nobody"),
        signed_in(stranger, "maintain"),  # disabled, and the password is right
        signed_in(stranger, "'; drop table users; --\0"),
    ]
    assert {(answer.status_code, answer.content) for answer in answers} == {(401, wrong.content)}
    assert all("set-cookie" not in answer.headers for answer in answers)
    assert problem(wrong).type == "urn:wqlab:problem:wrong-credentials"


def test_a_user_that_there_is_not_costs_the_same_hash(stranger: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    verify, looked_at = passwords._argon2.verify, []

    def watched(password: str, password_hash: str) -> bool:
        looked_at.append(password_hash)
        return verify(password, password_hash)

    monkeypatch.setattr(passwords._argon2, "verify", watched)
    for name in ("admin", "nobody"):
        ok(signed_in(stranger, name, "not this one at all"), 401)
    of_admin, of_nobody = looked_at
    assert of_admin != of_nobody
    assert of_admin.split("$")[:4] == of_nobody.split("$")[:4], "another algorithm or other parameters"
    assert not passwords.matches("", None)


def test_signing_in_from_another_site_is_refused(stranger: httpx.Client) -> None:
    body = {"name": "read", "password": PASSWORD}
    for site in ("cross-site", "same-site"):
        ok(stranger.post(URL, json=body, headers={"Sec-Fetch-Site": site}), 403)
    # What a form can send is not JSON.
    form = f'{{"name": "read", "password": "{PASSWORD}", "": "="}}'
    ok(stranger.post(URL, content=form, headers={"Content-Type": "text/plain"}), 422)
    ok(stranger.post(URL, data=body), 422)
    ok(stranger.post(URL, json=body, headers={"Sec-Fetch-Site": "same-origin"}))


def test_a_planted_session_is_not_taken_over(live: Live, stranger: httpx.Client) -> None:
    """Fixation: the attacker knows the cookie that the victim's browser brings along."""
    for planted in ("known-to-the-attacker", live.browser("submit").cookies["wqlab_session"]):
        stranger.cookies.set("wqlab_session", planted, domain="127.0.0.1")
        cookie = ok(signed_in(stranger, "admin")).headers["set-cookie"]
        assert planted not in cookie
        with live.client(None) as attacker:
            attacker.cookies.set("wqlab_session", planted)
            assert who(attacker).user is None
        stranger.cookies.clear()


def test_a_second_sign_in_ends_the_first_session_of_that_browser(live: Live, stranger: httpx.Client) -> None:
    ok(signed_in(stranger, "read"))
    first = stranger.cookies["wqlab_session"]
    ok(signed_in(stranger, "submit"))
    with live.client(None) as again:
        again.cookies.set("wqlab_session", first)
        assert who(again).user is None
    assert who(stranger).user is not None


# --- throttling -------------------------------------------------------------------------------------------------


def test_guessing_is_stopped_also_with_the_right_password_and_for_names_that_nobody_has(
    stranger: httpx.Client, sessions: SessionFactory
) -> None:
    for name in ("admin", "nobody"):
        for _ in range(throttle.PER_ACCOUNT_AND_ADDRESS):
            ok(signed_in(stranger, name, "wrong, wrong, wrong"), 401)
        refused = ok(signed_in(stranger, name), 429)
        assert problem(refused).type == "urn:wqlab:problem:too-many-sign-ins"
        assert 0 < int(refused.headers["retry-after"]) <= throttle.WINDOW.total_seconds()
    ok(signed_in(stranger, "submit"))
    with transaction(sessions) as session:
        session.execute(update(SignInThrottle).values(since=func.now() - throttle.WINDOW))
    ok(signed_in(stranger, "admin"))
    with transaction(sessions) as session:
        left = session.execute(select(SignInThrottle.key, SignInThrottle.attempts)).all()
    assert {attempts for _, attempts in left} == {0}, "a sign-in that succeeds counts as no try"
    assert not [key for key, _ in left if "nobody" in key], "what is over is forgotten"


def test_guesses_at_the_same_time_are_counted_like_any(live: Live) -> None:
    answers: list[int] = []

    def guess() -> None:
        with live.client(None) as client:
            answers.append(signed_in(client, "admin", "wrong, wrong, wrong").status_code)

    threads = [threading.Thread(target=guess) for _ in range(3 * throttle.PER_ACCOUNT_AND_ADDRESS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    most = throttle.PER_ACCOUNT_AND_ADDRESS
    assert sorted(answers) == [401] * most + [429] * 2 * most


def test_an_attacker_elsewhere_locks_nobody_out_and_cannot_change_addresses_for_ever(
    sessions: SessionFactory, live: Live
) -> None:
    def take(account: str, address: str) -> timedelta | None:
        with transaction(sessions) as session:
            return throttle.take(session, throttle.the_try(account, address))

    for _ in range(throttle.PER_ACCOUNT_AND_ADDRESS):
        assert take("admin", "2001:db8::1") is None
    assert take("admin", "2001:db8::ffff") is not None, "the same /64"
    assert take("admin", "192.0.2.1") is None
    for number in range(throttle.PER_ADDRESS - throttle.PER_ACCOUNT_AND_ADDRESS - 1):
        assert take(f"user-{number}", "2001:db8::2") is None
    assert take("another", "2001:db8::3") is not None
    taken = 1 + throttle.PER_ACCOUNT_AND_ADDRESS
    for number in range(throttle.PER_ACCOUNT - taken):
        assert take("admin", f"198.51.100.{number}") is None
    assert take("admin", "203.0.113.1") is not None


# --- cross-site requests ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [None, "", "x", "another session's", "é"])
def test_a_change_by_cookie_needs_the_sessions_own_csrf_token(
    live: Live, sessions: SessionFactory, given: str | None
) -> None:
    with live.browser("admin") as client, live.browser("admin") as other:
        own = client.headers.pop("X-CSRF-Token")
        headers: dict[str, str | bytes] = {}
        if given is not None:
            token = other.headers["X-CSRF-Token"] if given == "another session's" else given
            headers["X-CSRF-Token"] = token.encode("latin-1")
        for method, url, body in (
            ("POST", SUBMISSIONS, REQUEST),
            ("POST", "/api/v1/tokens", {"name": "mine", "scopes": ["admin"]}),
            ("POST", "/api/v1/users", {"name": "mallory", "role": "admin"}),
            ("PUT", f"{URL}/password", {"old_password": PASSWORD, "new_password": "known to mallory"}),
            ("DELETE", URL, None),
        ):
            refused: Any = problem(ok(client.request(method, url, json=body, headers=headers), 403))
            assert refused.type == "urn:wqlab:problem:csrf", (method, url)
        assert ok(client.get(SUBMISSIONS)).json()["total"] == 0
        assert who(client).user is not None
        assert ok(client.post(SUBMISSIONS, json=REQUEST, headers={"X-CSRF-Token": own}), 201).json()["owner"] == "admin"
    with transaction(sessions) as session:
        assert session.scalar(select(func.count(Submission.id))) == 1


def test_a_token_needs_no_csrf_token_and_wins_over_a_cookie(live: Live) -> None:
    with live.browser("admin") as client:
        del client.headers["X-CSRF-Token"]
        client.headers["Authorization"] = f"Bearer {live.secrets[Scope.SUBMIT]}"
        assert ok(client.post(SUBMISSIONS, json=REQUEST), 201).json()["owner"] == "submit"
        ok(client.get("/api/v1/users"), 403)
        client.headers["Authorization"] = "Bearer wql_no_such_token"
        ok(client.get(SUBMISSIONS), 401)
        client.headers["Authorization"] = "Basic YWRtaW46YWRtaW4="
        ok(client.post(SUBMISSIONS, json=REQUEST), 403)


# --- the end of a session ---------------------------------------------------------------------------------------


def test_signing_out_ends_it_on_the_server(live: Live) -> None:
    with live.browser("submit") as client, live.browser("submit") as other:
        secret = client.cookies["wqlab_session"]
        gone = ok(client.delete(URL), 204)
        assert 'wqlab_session=""' in gone.headers["set-cookie"]
        client.cookies.set("wqlab_session", secret)
        ok(client.get(SUBMISSIONS), 401)
        assert "set-cookie" in client.get(URL).headers, "a dead cookie is taken back"
        ok(client.delete(URL), 204)
        assert who(other).user is not None


@pytest.mark.parametrize(
    ("column", "age"),
    [("last_used_at", timedelta(days=7)), ("created_at", timedelta(days=30))],
)
def test_a_session_ends_by_itself(live: Live, sessions: SessionFactory, column: str, age: timedelta) -> None:
    def grow(old: timedelta) -> None:
        with transaction(sessions) as session:
            session.execute(update(BrowserSession).values({column: func.now() - old}))

    with live.browser("read") as client:
        before = who(client).expires_at
        grow(age - timedelta(minutes=5))
        assert who(client).user is not None
        told = who(client).expires_at
        assert before is not None
        assert told is not None
        if column == "last_used_at":  # used again: it goes on
            assert told >= before
        else:
            assert told < before - timedelta(days=6)
        grow(age)
        assert who(client).user is None
        ok(client.get(SUBMISSIONS), 401)
    with live.browser("read"), transaction(sessions) as session:
        assert session.scalar(select(func.count(BrowserSession.id))) == 1, "what is over is forgotten"


def test_a_changed_password_signs_everyone_else_out(live: Live) -> None:
    url, new = f"{URL}/password", "four words of my own"
    with live.browser("submit") as client, live.browser("submit") as other:
        wrong = client.put(url, json={"old_password": "not my password", "new_password": new})
        assert problem(ok(wrong, 422)).errors[0]["pointer"] == "/old_password"
        for easy in ("short", "aaaaaaaaaaaaaaaa", "submit submit"):
            refused = client.put(url, json={"old_password": PASSWORD, "new_password": easy})
            assert problem(ok(refused, 422)).errors[0]["pointer"] == "/new_password"
            assert easy not in refused.text
        old_cookie, old_csrf = client.cookies["wqlab_session"], client.headers["X-CSRF-Token"]
        answer = SessionView.model_validate_json(
            ok(client.put(url, json={"old_password": PASSWORD, "new_password": new})).content
        )
        assert client.cookies["wqlab_session"] != old_cookie
        assert answer == who(client)
        ok(client.post(SUBMISSIONS, json=REQUEST), 403)  # with the old CSRF token
        assert answer.csrf_token is not None
        assert answer.csrf_token != old_csrf
        ok(client.post(SUBMISSIONS, json=REQUEST, headers={"X-CSRF-Token": answer.csrf_token}), 201)
        assert who(other).user is None
        other.cookies.set("wqlab_session", old_cookie)
        assert who(other).user is None
    with live.client(None) as client:
        ok(signed_in(client, "submit"), 401)
        ok(signed_in(client, "submit", new))
        # The same text, as another keyboard composes it.
        ok(signed_in(client, "submit", new.replace(" ", "\N{NO-BREAK SPACE}")))
    with live.client(Scope.SUBMIT) as client:
        ok(client.get(SUBMISSIONS))
        ok(client.put(url, json={"old_password": new, "new_password": PASSWORD}), 403)


def test_old_passwords_are_not_guessed_by_way_of_changing_them(live: Live) -> None:
    with live.browser("submit") as client:
        body = {"old_password": "guess after guess", "new_password": "four words of my own"}
        for _ in range(throttle.PER_ACCOUNT_AND_ADDRESS):
            ok(client.put(f"{URL}/password", json=body), 422)
        ok(client.put(f"{URL}/password", json=body | {"old_password": PASSWORD}), 429)


# --- streams ----------------------------------------------------------------------------------------------------


def test_events_come_by_cookie_and_stop_when_it_is_worth_nothing(
    live: Live, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """EventSource sends no header, only the cookie."""
    monkeypatch.setattr(sse, "ASK_AGAIN_S", 0.0)
    number = scene.submission()
    with (
        browser(live.url, "read") as client,
        live.client(Scope.ADMIN) as admin,
        client.stream("GET", f"{SUBMISSIONS}/{number}/events") as answer,
    ):
        assert answer.status_code == 200
        lines = answer.iter_lines()
        assert next(line for line in lines if "submission_state" in line)
        scene.emit(number, "run_progress", text="seen")
        assert next(line for line in lines if "seen" in line)
        ok(admin.patch("/api/v1/users/read", json={"disabled": True}))
        scene.emit(number, "run_progress", text="unseen")
        assert not [line for line in lines if "unseen" in line]


# --- headers ----------------------------------------------------------------------------------------------------


def test_answers_may_run_nothing_and_be_framed_nowhere(live: Live) -> None:
    with live.browser("read") as client:
        for url in (URL, SUBMISSIONS, "/api/v1/plans", "/api/v1/nothing", "/healthz", "/r/7", "/docs"):
            headers = client.get(url).headers
            assert headers["x-content-type-options"] == "nosniff", url
            assert "frame-ancestors 'none'" in headers["content-security-policy"], url
            if url.startswith("/api/"):
                assert headers["cache-control"] == "no-store", url
                assert headers["content-security-policy"].startswith("default-src 'none'"), url
