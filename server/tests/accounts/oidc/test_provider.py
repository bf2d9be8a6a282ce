"""Answers of a provider that is wrong, hostile, slow or gone. Local accounts keep working."""

from __future__ import annotations

import base64
import gzip
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest
from joserfc.jwk import RSAKey

from wqlab_server.accounts.oidc import client as oidc_client
from wqlab_server.accounts.oidc import provider as oidc_provider
from wqlab_server.settings import Settings

from ...support.live_server import Live, expect
from ...support.openid import (
    CLIENT_ID,
    CLIENT_SECRET,
    PROVIDER_URL,
    FaultyProvider,
    begin,
    faulty_provider,
    finish,
    oidc_settings,
    send_json,
)

pytestmark = pytest.mark.integration
METADATA = "/.well-known/openid-configuration"


@pytest.fixture
def provider() -> Iterator[FaultyProvider]:
    with faulty_provider() as provider:
        yield provider


@pytest.fixture
def settings(settings: Settings, provider: FaultyProvider, tmp_path: Path) -> Settings:
    return oidc_settings(settings, provider.issuer, tmp_path)


def sign_in(provider: FaultyProvider, browser: httpx.Client, subject: str = "s-1") -> httpx.Response:
    return finish(browser, provider.approve(begin(browser), subject))


def name_of(browser: httpx.Client) -> str | None:
    user = expect(browser.get("/api/v1/session")).json()["user"]
    return user and user["name"]


def problem(browser: httpx.Client) -> str:
    return str(expect(browser.get(PROVIDER_URL)).json()["problem"])


def test_right_answer_is_accepted(provider: FaultyProvider, browser: httpx.Client) -> None:
    expect(sign_in(provider, browser), 303)
    assert name_of(browser) == "ada"
    sent = dict(parse_qsl(provider.bodies[0]))
    assert (sent["grant_type"], len(sent["code_verifier"])) == ("authorization_code", 48)
    assert "client_secret" not in sent
    credentials = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
    assert provider.authorizations == [f"Basic {credentials}"]


@pytest.mark.parametrize(
    ("claims", "text"),
    [
        ({"iss": "https://other.example.org"}, "iss"),
        ({"iss": None}, "iss"),
        ({"aud": "another-client"}, "aud"),
        ({"aud": "another-client", "azp": CLIENT_ID}, "aud"),
        ({"aud": [CLIENT_ID, "another-client"]}, "azp"),
        ({"aud": None}, "aud"),
        ({"nonce": "of-another-sign-in"}, "nonce"),
        ({"nonce": None}, "nonce"),
        ({"exp": lambda now: now - 180}, "expired"),
        ({"exp": "soon"}, "exp"),
        ({"exp": None}, "exp"),
        ({"iat": lambda now: now + 600}, "issued in the future"),
        ({"nbf": lambda now: now + 600}, "not yet valid"),
        ({"sub": None}, "sub"),
        ({"sub": ""}, "sub"),
        ({"sub": "x" * 256}, "255 characters"),
        ({"sub": "a\0b"}, "255 characters"),
        ({"sub": 7}, "sub"),
        ({"groups": {"lab": True}}, "not a list"),
        ({"groups": None, "_claim_names": {"groups": "src1"}}, "too many groups"),
    ],
    ids=lambda each: "-".join(each) if isinstance(each, dict) else "",
)
def test_id_token_with_wrong_claims_is_refused(
    provider: FaultyProvider, browser: httpx.Client, claims: dict[str, Any], text: str
) -> None:
    provider.claims = claims
    refused = expect(sign_in(provider, browser), 502).json()
    assert refused["type"] == "urn:wqlab:problem:provider-answer"
    assert text in refused["detail"]
    assert name_of(browser) is None


def test_clocks_may_differ_by_two_minutes(provider: FaultyProvider, browser: httpx.Client) -> None:
    provider.claims = {"iat": lambda now: now - 400, "exp": lambda now: now - 60}
    expect(sign_in(provider, browser), 303)
    provider.claims = {"iat": lambda now: now + 60, "nbf": lambda now: now + 60, "exp": lambda now: now + 400}
    expect(sign_in(provider, browser), 303)


@pytest.mark.parametrize("algorithm", ["none", "HS256"])
def test_signature_without_the_providers_key_is_refused(
    provider: FaultyProvider, browser: httpx.Client, algorithm: str
) -> None:
    """The metadata offer both."""
    provider.algorithm = algorithm
    assert "ID token is invalid" in expect(sign_in(provider, browser), 502).json()["detail"]
    assert name_of(browser) is None


def test_foreign_signature_is_refused(provider: FaultyProvider, browser: httpx.Client) -> None:
    url = provider.approve(begin(browser))
    published = provider.keys()
    provider.answers["/keys"] = lambda handler: send_json(handler, published)
    provider.key = RSAKey.generate_key(2048)
    assert "ID token is invalid" in expect(finish(browser, url), 502).json()["detail"]
    assert provider.asked.count("/keys") == 2, "a new key is looked for once"


@pytest.mark.parametrize("key_ids", [("first", "second"), (None, None)], ids=["other key id", "no key ids"])
def test_keys_are_kept_and_fetched_again_when_the_provider_has_new_ones(
    provider: FaultyProvider, browser: httpx.Client, key_ids: tuple[str | None, str | None]
) -> None:
    provider.key_id = key_ids[0]
    for _ in range(3):
        expect(sign_in(provider, browser), 303)
    assert (provider.asked.count("/keys"), provider.asked.count(METADATA)) == (1, 1)
    provider.key, provider.key_id = RSAKey.generate_key(2048), key_ids[1]
    for _ in range(2):
        expect(sign_in(provider, browser), 303)
    assert (provider.asked.count("/keys"), provider.asked.count(METADATA)) == (2, 1)


def test_issuer_in_the_answer_is_checked(provider: FaultyProvider, browser: httpx.Client) -> None:
    provider.callback = {"iss": "https://other.example.org"}
    assert "another issuer" in expect(sign_in(provider, browser), 502).json()["detail"]
    provider.callback = {"iss": provider.issuer, "session_state": "ignored"}
    expect(sign_in(provider, browser), 303)


def test_missing_issuer_in_the_answer_is_refused_if_promised(provider: FaultyProvider, browser: httpx.Client) -> None:
    provider.metadata = {"authorization_response_iss_parameter_supported": True}
    assert "another issuer" in expect(sign_in(provider, browser), 502).json()["detail"]


def test_userinfo_has_what_the_id_token_lacks(provider: FaultyProvider, browser: httpx.Client) -> None:
    provider.metadata = {"userinfo_endpoint": f"{provider.issuer}/userinfo"}
    provider.claims = {"groups": None, "preferred_username": None}
    provider.userinfo = {"sub": "s-1", "groups": ["lab"], "email": "Grace@example.org"}
    expect(sign_in(provider, browser), 303)
    assert name_of(browser) == "grace"
    provider.userinfo = {"sub": "s-2", "groups": ["lab-admins"]}
    assert "different people" in expect(sign_in(provider, browser), 502).json()["detail"]
    provider.answers["/userinfo"] = lambda handler: send_json(handler, {}, 500)
    assert "userinfo endpoint answers 500" in expect(sign_in(provider, browser), 503).json()["detail"]


def test_groups_in_a_claim_in_a_claim(provider: FaultyProvider, live: Live, browser: httpx.Client) -> None:
    settings = live.app.state.settings.model_copy(update={"oidc_groups_claim": "realm_access.roles"})
    live.app.state.oidc.settings = settings
    provider.claims = {"realm_access": {"roles": ["lab-admins", 7]}}
    expect(sign_in(provider, browser), 303)
    assert expect(browser.get("/api/v1/session")).json()["user"]["role"] == "admin"
    provider.claims = {"realm_access.roles": "lab"}
    expect(sign_in(provider, browser), 303)
    assert expect(browser.get("/api/v1/session")).json()["user"]["role"] == "submitter"


def test_client_secret_is_posted_if_the_provider_reads_it_only_there(
    provider: FaultyProvider, browser: httpx.Client
) -> None:
    provider.metadata = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
    expect(sign_in(provider, browser), 303)
    assert dict(parse_qsl(provider.bodies[0]))["client_secret"] == CLIENT_SECRET


@pytest.mark.parametrize(
    ("answer", "status", "text"),
    [
        ((401, {"error": "invalid_client"}), 502, "check WQLAB_OIDC_CLIENT_ID and WQLAB_OIDC_CLIENT_SECRET_FILE"),
        ((400, {"error": "invalid_grant"}), 502, "refuses its own authorization code (invalid_grant)"),
        ((400, {"error": "<b>"}), 502, "(no known reason)"),
        ((500, {}), 503, "token endpoint fails"),
        ((200, {"access_token": "x", "token_type": "Bearer"}), 502, "has no ID token"),
        ((200, {"access_token": "x", "token_type": "Bearer", "id_token": "a.b.c"}), 502, "ID token is invalid"),
        ((200, {"access_token": "x", "token_type": "Bearer", "id_token": 3}), 502, "ID token is invalid"),
        ((200, []), 502, "invalid"),
    ],
    ids=str,
)
def test_token_endpoint_that_fails(
    provider: FaultyProvider, browser: httpx.Client, answer: tuple[int, Any], status: int, text: str
) -> None:
    provider.answers["/token"] = lambda handler: send_json(handler, answer[1], answer[0])
    assert text in expect(sign_in(provider, browser), status).json()["detail"]
    assert name_of(browser) is None


def endless(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    try:
        for _ in range(10_000):
            handler.wfile.write(b" " * 10_000)
    except OSError:
        pass


def dripping(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    try:
        for _ in range(300):
            handler.wfile.write(b" ")
            time.sleep(0.1)
    except OSError:
        pass


def compressed(handler: BaseHTTPRequestHandler) -> None:
    body = gzip.compress(b"0" * 1_000_000)
    handler.send_response(200)
    handler.send_header("Content-Encoding", "gzip")
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def redirecting(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(302)
    handler.send_header("Location", "http://127.0.0.1:1/elsewhere")
    handler.end_headers()


BAD_RESPONSES: list[tuple[Callable[[BaseHTTPRequestHandler], None], str]] = [
    (endless, "sends more than 256 KiB"),
    (dripping, "has not answered within 3 s"),
    (compressed, "sends a compressed response"),
    (redirecting, "redirects elsewhere"),
]


@pytest.mark.parametrize(("answer", "text"), BAD_RESPONSES, ids=lambda each: getattr(each, "__name__", ""))
@pytest.mark.parametrize("path", [METADATA, "/keys", "/token"])
def test_responses_are_bounded(
    provider: FaultyProvider,
    browser: httpx.Client,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    answer: Callable[[BaseHTTPRequestHandler], None],
    text: str,
) -> None:
    if answer is dripping:
        monkeypatch.setattr(oidc_client, "RESPONSE_TIME_S", 3.0)
    provider.answers[path] = answer
    if path == METADATA:
        assert text in problem(browser)
        refused = expect(browser.get(f"{PROVIDER_URL}/login"), 503)
    else:
        refused = expect(sign_in(provider, browser), 503)
    assert text in refused.json()["detail"]
    assert refused.headers["retry-after"] == "15"


@pytest.mark.parametrize(
    ("metadata", "text"),
    [
        ({"issuer": "http://localhost:1"}, "write it into WQLAB_OIDC_ISSUER exactly as the provider has it"),
        ({"token_endpoint": "http://idp.example.org/token"}, "token_endpoint is not encrypted"),
        ({"jwks_uri": "file:///etc/passwd"}, "jwks_uri is not encrypted"),
        ({"authorization_endpoint": "javascript:alert(1)"}, "authorization_endpoint is not encrypted"),
        ({"userinfo_endpoint": "http://10.0.0.1/"}, "userinfo_endpoint is not encrypted"),
        ({"token_endpoint": None}, "have no token_endpoint"),
        ({"jwks_uri": 5}, "have no jwks_uri"),
        ({"id_token_signing_alg_values_supported": ["none", "HS256"]}, "signs ID tokens with none of"),
    ],
    ids=str,
)
def test_metadata_are_checked(
    provider: FaultyProvider, browser: httpx.Client, metadata: dict[str, Any], text: str
) -> None:
    provider.metadata = metadata
    assert text in problem(browser)
    expect(browser.get(f"{PROVIDER_URL}/login"), 503)


def test_metadata_do_not_become_options_of_the_http_client(provider: FaultyProvider, browser: httpx.Client) -> None:
    """Authlib passes metadata on as options of the same names."""
    provider.metadata = {"follow_redirects": True, "verify": False, "timeout": 1e9, "base_url": "http://127.0.0.1:1"}
    provider.answers["/token"] = redirecting
    assert "redirects elsewhere" in expect(sign_in(provider, browser), 503).json()["detail"]


def test_remote_provider_may_not_name_endpoints_on_loopback() -> None:
    document = FaultyProvider("https://idp.example.org").document() | {"token_endpoint": "http://127.0.0.1:8750/x"}
    with pytest.raises(oidc_client.ProviderUnavailable, match="token_endpoint is not encrypted"):
        oidc_provider._checked(document, "https://idp.example.org")


def test_unreachable_provider_does_not_stop_the_lab(
    provider: FaultyProvider, live: Live, browser: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.answers[METADATA] = lambda handler: send_json(handler, {}, 503)
    assert "answers 503" in problem(browser)
    shown = expect(browser.get(f"{PROVIDER_URL}/login", headers={"Accept": "text/html"}), 503)
    assert "sign in with a password" in shown.text
    assert provider.asked.count(METADATA) == 1, "a failure is kept for a while"
    with live.browser("submit") as local:
        assert name_of(local) == "submit"
    provider.answers.clear()
    assert "answers 503" in problem(browser)
    monkeypatch.setattr(oidc_provider, "RETRY_AFTER_S", 0.0)
    assert problem(browser) == "None"
    expect(sign_in(provider, browser), 303)
    provider.answers[METADATA] = lambda handler: send_json(handler, {}, 503)
    assert problem(browser) == "None", "an answer is kept for a while, too"
    monkeypatch.setattr(oidc_provider, "CHECK_LIFE_S", 0.0)
    assert "answers 503" in problem(browser)
    expect(sign_in(provider, browser), 303)  # with the metadata of before: the rest of the provider may work


def test_lab_without_a_provider(live: Live, browser: httpx.Client) -> None:
    live.app.state.oidc = None
    for path in ("", "/login", "/callback"):
        assert "no OpenID provider" in expect(browser.get(f"{PROVIDER_URL}{path}"), 404).json()["detail"]


def test_callback_url_is_not_taken_from_the_request(provider: FaultyProvider, browser: httpx.Client) -> None:
    answer = browser.get(f"{PROVIDER_URL}/login", headers={"Host": "evil.test", "X-Forwarded-Host": "evil.test"})
    asked = dict(parse_qsl(urlsplit(answer.headers["location"]).query))
    assert asked["redirect_uri"] == f"http://lab.test{PROVIDER_URL}/callback"
