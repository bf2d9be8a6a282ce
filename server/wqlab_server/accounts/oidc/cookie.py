"""Cookie of a sign-in that has begun: state, nonce and PKCE verifier between the redirect and the provider's answer.

The cookie is encrypted with a key derived from the client secret, so the server stores nothing for visitors who never
come back, and every process of the API can read it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from dataclasses import dataclass
from typing import Any

from fastapi import Response
from joserfc import jwe
from joserfc.errors import JoseError
from joserfc.jwk import OctKey

from ...settings import Settings

COOKIE = "wqlab_sign_in"
LIFE_S = 600
"""Time for which a person may stay on the provider's pages."""
_HEADER = {"alg": "dir", "enc": "A256GCM"}


@dataclass(frozen=True)
class Begun:
    """A sign-in that has begun."""

    session: dict[str, Any]
    """What Authlib keeps in a session: state -> nonce, PKCE verifier and redirect URL."""
    next: str
    """Local path to open after the sign-in."""


def cookie_name(settings: Settings) -> str:
    """Return the cookie's name; over https with the prefix `__Host-`, which no other host of the domain can set."""
    return f"__Host-{COOKIE}" if settings.https else COOKIE


def seal(client_secret: str, begun: Begun, now: float | None = None) -> str:
    """Return the cookie's value, which is valid for LIFE_S."""
    ends_at = (time.time() if now is None else now) + LIFE_S
    text = json.dumps({"session": begun.session, "next": begun.next, "ends_at": ends_at})
    return jwe.encrypt_compact(_HEADER, text.encode(), _key(client_secret))


def unseal(client_secret: str, value: str, now: float | None = None) -> Begun | None:
    """Return the sign-in of a cookie; None if the cookie is expired or was not made with this client secret."""
    try:
        content = json.loads(jwe.decrypt_compact(value, _key(client_secret)).plaintext or b"")
    except (JoseError, ValueError):
        return None
    if content["ends_at"] < (time.time() if now is None else now):
        return None
    return Begun(content["session"], content["next"])


def set_cookie(response: Response, settings: Settings, value: str) -> None:
    response.set_cookie(
        cookie_name(settings), value, max_age=LIFE_S, path="/", httponly=True, samesite="lax", secure=settings.https
    )


def clear_cookie(response: Response, settings: Settings) -> None:
    response.delete_cookie(cookie_name(settings), path="/", httponly=True, samesite="lax", secure=settings.https)


def _key(client_secret: str) -> OctKey:
    return OctKey.import_key(hmac.new(client_secret.encode(), b"wqlab sign-in cookie", hashlib.sha256).digest())
