"""Sign-in with a real OpenID provider: redirect, answer, account, role, session."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from sqlalchemy import func, select, update

from wqlab_contracts.api.accounts import SessionView
from wqlab_contracts.enums import AuditAction, AuditOutcome, Scope, UserRole
from wqlab_server.http.auth import create_token
from wqlab_server.models import AuditEntry, BrowserSession, User
from wqlab_server.settings import Settings
from wqlab_server.storage.db import SessionFactory, transaction

from ...support.live_server import Live, expect
from ...support.openid import CLIENT_ID, PROVIDER_URL, MockProvider, begin, finish, mock_provider, oidc_settings
from ...support.people import PASSWORD

pytestmark = pytest.mark.integration
SESSION = "/api/v1/session"
CALLBACK = f"{PROVIDER_URL}/callback"


@pytest.fixture(scope="module")
def provider() -> Iterator[MockProvider]:
    with mock_provider() as provider:
        yield provider


@pytest.fixture
def settings(settings: Settings, provider: MockProvider, tmp_path: Path) -> Settings:
    return oidc_settings(settings, provider.issuer, tmp_path)


def sign_in(provider: MockProvider, client: httpx.Client, subject: str, next_path: str = "/") -> httpx.Response:
    return finish(client, provider.approve(begin(client, next_path), subject))


def who(client: httpx.Client) -> SessionView:
    return SessionView.model_validate_json(expect(client.get(SESSION)).content)


def name_and_role(client: httpx.Client) -> tuple[str, UserRole] | None:
    user = who(client).user
    return None if user is None else (user.name, user.role)


def change(live: Live, **changes: object) -> None:
    live.app.state.settings = live.app.state.settings.model_copy(update=changes)


def user_of(sessions: SessionFactory, subject: str) -> User:
    with transaction(sessions) as session:
        return session.scalars(select(User).where(User.subject == subject)).one()


def entries(sessions: SessionFactory, outcome: AuditOutcome = AuditOutcome.DONE) -> list[tuple[str, str, str]]:
    with sessions() as session:
        rows = session.scalars(select(AuditEntry).where(AuditEntry.outcome == outcome).order_by(AuditEntry.id)).all()
    return [(row.actor, row.action, row.resource) for row in rows]


def test_person_signs_in_and_out(
    provider: MockProvider, live: Live, browser: httpx.Client, sessions: SessionFactory
) -> None:
    provider.person("s-ada", preferred_username="Ada.Lovelace", groups=["lab", "choir"])
    shown = expect(browser.get(PROVIDER_URL)).json()
    assert shown == {"label": "Sign in at Example", "issuer": provider.issuer, "problem": None}
    assert who(browser).provider == "Sign in at Example"

    url = begin(browser, "/submissions/3?tab=log#end")
    asked = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
    assert url.startswith(f"{provider.issuer}/oauth2/authorize?")
    assert (asked["response_type"], asked["client_id"], asked["scope"]) == ("code", CLIENT_ID, "openid profile")
    assert asked["redirect_uri"] == f"http://lab.test{CALLBACK}"
    assert asked["code_challenge_method"] == "S256"
    assert min(len(asked[name]) for name in ("state", "nonce", "code_challenge")) >= 20

    answer = expect(finish(browser, provider.approve(url, "s-ada")), 303)
    assert answer.headers["location"] == "/submissions/3?tab=log#end"
    cookies = {each.partition("=")[0]: each for each in answer.headers.get_list("set-cookie")}
    attributes = {each.lower() for each in cookies["wqlab_session"].split("; ")[1:]}
    assert attributes == {"httponly", "max-age=86400", "path=/", "samesite=lax"}
    assert cookies["wqlab_sign_in"].startswith('wqlab_sign_in=""')
    assert name_and_role(browser) == ("ada.lovelace", UserRole.SUBMITTER)
    user = who(browser).user
    assert user is not None
    assert user.sign_in == "oidc"
    row = user_of(sessions, "s-ada")
    assert (row.issuer, row.password_hash, row.last_sign_in_at is None) == (provider.issuer, None, False)
    assert entries(sessions)[-2:] == [
        ("ada.lovelace", "user.create", "user/ada.lovelace"),
        ("ada.lovelace", "session.sign_in", "user/ada.lovelace"),
    ]

    expect(browser.delete(SESSION), 403)  # without the CSRF token
    expect(browser.delete(SESSION, headers={"X-CSRF-Token": who(browser).csrf_token or ""}), 204)
    assert who(browser).user is None
    expect(sign_in(provider, browser, "s-ada"), 303)
    assert name_and_role(browser) == ("ada.lovelace", UserRole.SUBMITTER)


def test_cookies_are_secure_over_https(provider: MockProvider, live: Live, browser: httpx.Client) -> None:
    change(live, public_url="https://lab.example.org")
    answer = browser.get(f"{PROVIDER_URL}/login")
    begun = answer.headers["set-cookie"]
    assert begun.startswith("__Host-wqlab_sign_in=")
    assert {"; Secure", "; HttpOnly", "; SameSite=lax"} <= {f"; {each}" for each in begun.split("; ")}
    assert len(begun) < 4096
    # The client has no https, so it does not send the cookie back by itself.
    cookie = begun.partition(";")[0]
    provider.person("s-1", groups=["lab"])
    done = expect(finish(browser, provider.approve(answer.headers["location"], "s-1"), Cookie=cookie), 303)
    session = next(each for each in done.headers.get_list("set-cookie") if each.startswith("__Host-wqlab_session="))
    assert "; Secure" in session


def test_longest_next_path_fits_into_the_cookie(live: Live, browser: httpx.Client) -> None:
    path = "/" + "x" * 1499
    assert len(browser.get(f"{PROVIDER_URL}/login", params={"next": path}).headers["set-cookie"]) < 4096
    expect(browser.get(f"{PROVIDER_URL}/login", params={"next": path + "x"}), 422)


@pytest.mark.parametrize(
    "path", ["https://evil.test", "//evil.test", "/\\evil.test", "\\/evil.test", "/\t/evil.test", "evil", "", "/é"]
)
def test_foreign_next_is_refused(browser: httpx.Client, path: str) -> None:
    expect(browser.get(f"{PROVIDER_URL}/login", params={"next": path}), 422)


def test_next_path_of_the_api_is_not_opened(provider: MockProvider, browser: httpx.Client) -> None:
    provider.person("s-1", groups=["lab"])
    assert sign_in(provider, browser, "s-1", f"{PROVIDER_URL}/login").headers["location"] == "/"


def test_answer_without_its_sign_in_is_refused(
    provider: MockProvider, live: Live, browser: httpx.Client, sessions: SessionFactory
) -> None:
    provider.person("s-1", groups=["lab"])
    url = provider.approve(begin(browser), "s-1")
    page = {"Accept": "text/html,application/xhtml+xml"}
    with live.client(None) as other:  # a browser of somebody else, or one without cookies
        refused = expect(finish(other, url), 400)
        assert refused.json()["type"] == "urn:wqlab:problem:mismatching-state"
        shown = expect(finish(other, url, **page), 400)
        assert shown.headers["content-type"].startswith("text/html")
        for text in ("open http://lab.test/sign-in and sign in again", '<a href="/sign-in">'):
            assert text in shown.text
        begin(other)
        expect(finish(other, url), 400)  # with a sign-in of its own
        assert who(other).user is None
    expect(finish(browser, url), 303)
    expect(finish(browser, url), 400)  # once only
    assert "script" not in shown.text
    assert "default-src 'none'" in shown.headers["content-security-policy"]


def test_forged_and_expired_cookies_are_refused(
    provider: MockProvider, browser: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.person("s-1", groups=["lab"])
    url = provider.approve(begin(browser), "s-1")
    kept = browser.cookies["wqlab_sign_in"]
    browser.cookies.clear()
    for forged in (kept[:-2], "x" + kept, "a.b.c.d.e", "e30", ""):
        expect(finish(browser, url, Cookie=f"wqlab_sign_in={forged}"), 400)
    expect(finish(browser, url, Cookie=f"wqlab_sign_in={kept}"), 303)


def test_sign_in_from_another_site_is_refused(provider: MockProvider, browser: httpx.Client) -> None:
    refused = browser.get(f"{PROVIDER_URL}/login", headers={"Sec-Fetch-Site": "cross-site", "Accept": "text/html"})
    assert "comes from another site" in expect(refused, 403).text
    expect(browser.get(f"{PROVIDER_URL}/login", headers={"Sec-Fetch-Site": "same-origin"}), 303)


def test_denied_sign_in_says_so_and_shows_no_foreign_text(provider: MockProvider, browser: httpx.Client) -> None:
    denied = expect(finish(browser, provider.deny(begin(browser)), Accept="text/html"), 403)
    assert "has not signed you in (access_denied)" in denied.text
    state = parse_qs(urlsplit(begin(browser)).query)["state"][0]
    error = "<b>call 555 now</b>"
    shown = browser.get(CALLBACK, params={"state": state, "error": error}, headers={"Accept": "text/html"})
    assert "(no known reason)" in expect(shown, 403).text
    assert "555" not in shown.text
    # Without a known state, whatever the URL says is somebody else's.
    expect(browser.get(CALLBACK, params={"error": "access_denied", "state": "x"}), 400)


def test_account_follows_issuer_and_subject_not_names(
    provider: MockProvider, live: Live, browser: httpx.Client, sessions: SessionFactory
) -> None:
    """A local user is named `admin`, so that a user of the provider with this name gets another one."""
    provider.person("s-1", preferred_username="admin", email="admin@example.org", groups=["lab"])
    expect(sign_in(provider, browser, "s-1"), 303)
    assert name_and_role(browser) == ("admin-2", UserRole.SUBMITTER)
    provider.person("s-1", preferred_username="somebody-else", groups=["lab"])
    expect(sign_in(provider, browser, "s-1"), 303)
    assert name_and_role(browser) == ("admin-2", UserRole.SUBMITTER), "the same account with another name"
    provider.person("s-2", preferred_username="admin", groups=["lab"])
    expect(sign_in(provider, browser, "s-2"), 303)
    assert name_and_role(browser) == ("admin-3", UserRole.SUBMITTER)
    # Nor the name of a worker's token, nor of the operator, who are actors of the audit log.
    for subject, name in (("s-3", "worker"), ("s-4", "Operator"), ("s-5", "../É t")):
        provider.person(subject, preferred_username=name, groups=["lab"])
        expect(sign_in(provider, browser, subject), 303)
    names = [user_of(sessions, subject).name for subject in ("s-3", "s-4", "s-5")]
    assert names == ["worker-2", "operator-2", "e-t"]
    with live.browser("admin") as local:
        assert name_and_role(local) == ("admin", UserRole.ADMIN)


def test_account_of_the_provider_has_no_password(
    provider: MockProvider, live: Live, browser: httpx.Client, sessions: SessionFactory
) -> None:
    provider.person("s-1", preferred_username="ada", groups=["lab"])
    expect(sign_in(provider, browser, "s-1"), 303)
    with live.client(None) as other:
        for password in ("", PASSWORD):
            expect(other.post(SESSION, json={"name": "ada", "password": password}), 401)
    csrf = {"X-CSRF-Token": who(browser).csrf_token or ""}
    body = {"old_password": "", "new_password": "a barge on the canal"}
    assert "no password here" in expect(browser.put(f"{SESSION}/password", json=body, headers=csrf), 403).text
    with live.client(Scope.ADMIN) as admin:
        assert "has no password here" in expect(admin.post("/api/v1/users/ada/password"), 409).text
        (shown,) = [each for each in expect(admin.get("/api/v1/users")).json()["items"] if each["name"] == "ada"]
    assert (shown["sign_in"], shown["issuer"], shown["subject"]) == ("oidc", provider.issuer, "s-1")


def test_role_follows_groups_at_each_sign_in(
    provider: MockProvider, live: Live, browser: httpx.Client, sessions: SessionFactory
) -> None:
    provider.person("s-1", preferred_username="ada", groups=["lab", "lab-admins"])
    expect(sign_in(provider, browser, "s-1"), 303)
    assert name_and_role(browser) == ("ada", UserRole.ADMIN)
    with transaction(sessions) as session:
        user = session.scalars(select(User).where(User.name == "ada")).one()
        _, secret = create_token(session, "ci", [Scope.ADMIN], user=user)
    provider.person("s-1", groups=["lab"])
    with live.client(None) as second:
        expect(sign_in(provider, second, "s-1"), 303)
        assert name_and_role(second) == ("ada", UserRole.SUBMITTER)
    assert who(browser).user is None, "a lower role ends the other sessions"
    with httpx.Client(base_url=live.url, headers={"Authorization": f"Bearer {secret}"}, timeout=None) as program:
        assert name_and_role(program) == ("ada", UserRole.SUBMITTER), "a token keeps what the role allows"
        expect(program.get("/api/v1/users"), 403)
    assert ("ada", "user.change", "user/ada") in entries(sessions)
    with live.client(Scope.ADMIN) as admin:
        refused = expect(admin.patch("/api/v1/users/ada", json={"role": "admin"}), 409)
        assert "follows the groups" in refused.json()["detail"]
        expect(admin.patch("/api/v1/users/ada", json={"role": "submitter"}))


def test_person_without_a_group_loses_access_until_the_next_sign_in_with_one(
    provider: MockProvider, live: Live, browser: httpx.Client, sessions: SessionFactory
) -> None:
    provider.person("s-1", preferred_username="ada", groups=["lab"])
    expect(sign_in(provider, browser, "s-1"), 303)
    with transaction(sessions) as session:
        user = session.scalars(select(User).where(User.name == "ada")).one()
        _, secret = create_token(session, "ci", [Scope.READ], user=user)
    with (
        live.client(None) as second,
        httpx.Client(base_url=live.url, headers={"Authorization": f"Bearer {secret}"}, timeout=None) as program,
    ):
        assert expect(program.get(SESSION)).json()["user"]["name"] == "ada"
        for groups, text in ((["choir"], "none of your groups has a role"), ([], "names no group of yours")):
            provider.person("s-1", groups=groups)
            refused = expect(sign_in(provider, second, "s-1"), 403)
            assert text in refused.json()["detail"]
        assert who(browser).user is None
        expect(program.get(SESSION), 401)
        with live.client(Scope.ADMIN) as admin:
            users = expect(admin.get("/api/v1/users")).json()["items"]
            assert [each["name"] for each in users if each["without_role_since"] is not None] == ["ada"]
        provider.person("s-1", groups=["lab"])
        expect(sign_in(provider, second, "s-1"), 303)
        assert name_and_role(program) == ("ada", UserRole.SUBMITTER)
    refusals = entries(sessions, AuditOutcome.REFUSED)
    assert refusals == [("", AuditAction.SIGN_IN, "user/ada")], "equal ones within a minute once"


def test_stranger_without_a_group_gets_no_account(
    provider: MockProvider, live: Live, browser: httpx.Client, sessions: SessionFactory
) -> None:
    provider.person("s-9", preferred_username="eve")
    expect(sign_in(provider, browser, "s-9"), 403)
    with sessions() as session:
        assert session.scalar(select(func.count()).where(User.subject == "s-9")) == 0
    assert entries(sessions, AuditOutcome.REFUSED) == [("", AuditAction.SIGN_IN, "user")]
    change(live, oidc_default_role=UserRole.VIEWER)
    expect(sign_in(provider, browser, "s-9"), 303)
    assert name_and_role(browser) == ("eve", UserRole.VIEWER)


def test_disabled_account_stays_out(
    provider: MockProvider, live: Live, browser: httpx.Client, sessions: SessionFactory
) -> None:
    provider.person("s-1", preferred_username="ada", groups=["lab"])
    expect(sign_in(provider, browser, "s-1"), 303)
    with live.client(Scope.ADMIN) as admin:
        expect(admin.patch("/api/v1/users/ada", json={"disabled": True}))
        assert who(browser).user is None
        assert "ada is disabled" in expect(sign_in(provider, browser, "s-1"), 403).json()["detail"]
        expect(admin.patch("/api/v1/users/ada", json={"disabled": False}))
    expect(sign_in(provider, browser, "s-1"), 303)


def test_sign_in_replaces_the_browsers_session(provider: MockProvider, live: Live, sessions: SessionFactory) -> None:
    provider.person("s-1", preferred_username="ada", groups=["lab"])
    with live.browser("maintain") as client, live.client(None) as again:
        before = client.cookies["wqlab_session"]
        expect(sign_in(provider, client, "s-1"), 303)
        assert name_and_role(client) == ("ada", UserRole.SUBMITTER)
        again.cookies.set("wqlab_session", before)
        assert who(again).user is None


def test_session_ends_when_the_provider_must_be_asked_again(
    provider: MockProvider, live: Live, browser: httpx.Client, sessions: SessionFactory
) -> None:
    provider.person("s-1", groups=["lab"])
    expect(sign_in(provider, browser, "s-1"), 303)
    ends_at = who(browser).expires_at
    with transaction(sessions) as session:
        row = session.scalars(select(BrowserSession).where(BrowserSession.ends_at.is_not(None))).one()
        assert row.ends_at == ends_at
        assert row.ends_at is not None
        assert abs((row.ends_at - row.created_at).total_seconds() - 86400) < 1
        session.execute(update(BrowserSession).values(ends_at=func.now()))
    assert who(browser).user is None
    with live.browser("submit") as local, transaction(sessions) as session:
        assert who(local).user is not None
        assert session.scalars(select(BrowserSession.ends_at)).all() == [None], "the expired one is deleted"


def test_failed_answers_are_limited_by_address(browser: httpx.Client, live: Live) -> None:
    for _ in range(50):
        expect(browser.get(CALLBACK, params={"state": "x", "code": "y"}), 400)
    assert "too many attempts" in expect(browser.get(CALLBACK, params={"state": "x", "code": "y"}), 429).text


def test_simultaneous_first_sign_ins_make_one_account(
    provider: MockProvider, live: Live, sessions: SessionFactory
) -> None:
    provider.person("s-1", preferred_username="ada", groups=["lab"])

    def once(_: int) -> tuple[str, UserRole] | None:
        with live.client(None) as client:
            expect(sign_in(provider, client, "s-1"), 303)
            return name_and_role(client)

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(once, range(4))) == {("ada", UserRole.SUBMITTER)}
