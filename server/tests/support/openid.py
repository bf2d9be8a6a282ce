"""OpenID providers of the tests: oidc-provider-mock behind a check of PKCE, and one whose answers have faults."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit
from wsgiref.types import StartResponse, WSGIEnvironment

import httpx
import oidc_provider_mock
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey
from werkzeug.serving import make_server

from wqlab_server.settings import Settings

from .people import empty_ssl_context

PROVIDER_URL = "/api/v1/session/oidc"
CLIENT_ID, CLIENT_SECRET = "wqlab-test", "a secret of forty characters or so, for a test"


class PkceCheck:
    """WSGI middleware that refuses an authorization code without the verifier of its challenge (RFC 7636).

    The provider itself ignores PKCE.
    """

    def __init__(self, app: Callable[[WSGIEnvironment, StartResponse], Iterable[bytes]]) -> None:
        self.app = app
        self.challenges: dict[str, str] = {}
        """Authorization code -> challenge."""
        self.requests: list[dict[str, str]] = []
        """Parameters of each authorization request."""

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if path == "/oauth2/authorize":
            asked = dict(parse_qsl(environ["QUERY_STRING"]))
            self.requests.append(asked)

            def remember(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
                location = dict(headers).get("Location", "")
                if code := parse_qs(urlsplit(location).query).get("code"):
                    assert asked["code_challenge_method"] == "S256"
                    self.challenges[code[0]] = asked["code_challenge"]
                return start_response(status, headers, *rest)

            return self.app(environ, remember)
        if path == "/oauth2/token":
            body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
            sent = dict(parse_qsl(body.decode()))
            digest = hashlib.sha256(sent.get("code_verifier", "").encode()).digest()
            challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
            if self.challenges.get(sent.get("code", "")) != challenge:
                start_response("400 Bad Request", [("Content-Type", "application/json")])
                return [b'{"error": "invalid_grant"}']
            environ["wsgi.input"] = _Body(body)
        return self.app(environ, start_response)


class _Body:
    def __init__(self, content: bytes) -> None:
        self._content = content

    def read(self, size: int = -1) -> bytes:
        size = len(self._content) if size < 0 else size
        found, self._content = self._content[:size], self._content[size:]
        return found


@dataclass
class MockProvider:
    """A running oidc-provider-mock."""

    issuer: str
    pkce: PkceCheck

    def person(self, subject: str, **claims: object) -> None:
        """Set the claims of a person."""
        httpx.put(
            f"{self.issuer}/users/{subject}", json=claims, verify=empty_ssl_context(), timeout=None
        ).raise_for_status()

    def approve(self, url: str, subject: str) -> str:
        """Sign a person in on the provider's page; return the URL that it redirects to."""
        answer = httpx.post(url, data={"sub": subject}, verify=empty_ssl_context(), timeout=None)
        assert answer.status_code == 302, answer.text
        return answer.headers["location"]

    def deny(self, url: str) -> str:
        """Refuse a sign-in. The provider leaves `state` out, which RFC 6749, section 4.1.2.1, requires."""
        answer = httpx.post(url, data={"action": "deny"}, verify=empty_ssl_context(), timeout=None)
        assert answer.status_code == 302, answer.text
        return f"{answer.headers['location']}&state={dict(parse_qsl(urlsplit(url).query))['state']}"


@contextmanager
def mock_provider(port: int = 0) -> Iterator[MockProvider]:
    pkce = PkceCheck(oidc_provider_mock.app())
    server = make_server("localhost", port, pkce, threaded=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield MockProvider(f"http://localhost:{server.server_port}", pkce)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass
class FaultyProvider:
    """A provider with one fault at a time: what the tests set here replaces the right answer."""

    issuer: str = ""
    claims: dict[str, Any] = field(default_factory=dict)
    """Claims of the ID token; None removes one, and a function computes one from the time in seconds."""
    metadata: dict[str, Any] = field(default_factory=dict)
    answers: dict[str, Callable[[BaseHTTPRequestHandler], None]] = field(default_factory=dict)
    """Path -> function that answers instead."""
    userinfo: dict[str, Any] = field(default_factory=dict)
    callback: dict[str, str] = field(default_factory=dict)
    """More parameters of the redirect to the lab."""
    algorithm: str = "RS256"
    key_id: str | None = "first"
    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048))
    asked: list[str] = field(default_factory=list)
    """Paths of the requests."""
    bodies: list[str] = field(default_factory=list)
    authorizations: list[str] = field(default_factory=list)
    _nonces: dict[str, str] = field(default_factory=dict)

    def approve(self, url: str, subject: str = "s-1") -> str:
        """Return the URL that the provider redirects to."""
        asked = dict(parse_qsl(urlsplit(url).query))
        self._nonces[subject] = asked["nonce"]
        return f"{asked['redirect_uri']}?{urlencode({'code': subject, 'state': asked['state'], **self.callback})}"

    def document(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "id_token_signing_alg_values_supported": ["RS256", "HS256", "none"],
            **self.metadata,
        }

    def keys(self) -> dict[str, Any]:
        named = {} if self.key_id is None else {"kid": self.key_id}
        other = {"kty": "RSA", "use": "enc", "kid": "for encryption", "e": "AQAB", "n": "damaged"}
        return {"keys": [self.key.as_dict(private=False) | named, other, {"kty": "future", "kid": "x"}]}

    def token(self, subject: str) -> dict[str, Any]:
        now = int(time.time())
        claims = {
            "iss": self.issuer, "sub": subject, "aud": CLIENT_ID, "nonce": self._nonces[subject],
            "iat": now, "exp": now + 300, "preferred_username": "ada", "groups": ["lab"], **self.claims,
        }  # fmt: skip
        header = {"alg": self.algorithm} | ({} if self.key_id is None else {"kid": self.key_id})
        key: Any = OctKey.import_key(CLIENT_SECRET) if self.algorithm == "HS256" else self.key
        present = {
            name: value(now) if callable(value) else value for name, value in claims.items() if value is not None
        }
        id_token = (
            _unsigned(present)
            if self.algorithm == "none"
            else jwt.encode(header, present, key, algorithms=["RS256", "HS256"])
        )
        return {"access_token": "an-access-token", "token_type": "Bearer", "id_token": id_token}


def _unsigned(claims: Mapping[str, Any]) -> str:
    def part(content: Mapping[str, Any]) -> str:
        return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()

    return f"{part({'alg': 'none'})}.{part(claims)}."


def send_json(handler: BaseHTTPRequestHandler, content: object, status: int = 200) -> None:
    body = json.dumps(content).encode()
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


@contextmanager
def faulty_provider() -> Iterator[FaultyProvider]:
    provider = FaultyProvider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = urlsplit(self.path).path
            provider.asked.append(path)
            length = int(self.headers.get("Content-Length", 0))
            body = self.rfile.read(length).decode()
            if path in provider.answers:
                provider.answers[path](self)
            elif path == "/.well-known/openid-configuration":
                send_json(self, provider.document())
            elif path == "/keys":
                send_json(self, provider.keys())
            elif path == "/token":
                provider.bodies.append(body)
                provider.authorizations.append(self.headers.get("Authorization", ""))
                send_json(self, provider.token(dict(parse_qsl(body))["code"]))
            elif path == "/userinfo":
                send_json(self, provider.userinfo)
            else:
                send_json(self, {}, 404)

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider.issuer = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def oidc_settings(settings: Settings, issuer: str, folder: Path, **changes: Any) -> Settings:
    """Return the settings of a lab with this provider, in which the groups `lab` and `lab-admins` have roles."""
    secret = folder / "client-secret"
    secret.write_text(CLIENT_SECRET + "\n")
    oidc = {
        "oidc_issuer": issuer,
        "oidc_client_id": CLIENT_ID,
        "oidc_client_secret_file": secret,
        "oidc_roles": "lab=submitter; lab-admins=admin",
        "oidc_label": "Sign in at Example",
    }
    return Settings.model_validate({**settings.model_dump(), **oidc, **changes})


def begin(client: httpx.Client, next_path: str = "/") -> str:
    """Follow the link of the sign-in page; return the URL at the provider that the lab redirects to."""
    answer = client.get(f"{PROVIDER_URL}/login", params={"next": next_path})
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


def finish(client: httpx.Client, url: str, **headers: str) -> httpx.Response:
    """Go to the callback URL that the provider redirects to, at the lab under test."""
    parts = urlsplit(url)
    assert parts.path == f"{PROVIDER_URL}/callback", url
    return client.get(f"{parts.path}?{parts.query}", headers=headers)
