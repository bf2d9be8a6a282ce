"""Browser sessions: the cookie, the database row that it refers to, and the CSRF token derived from it."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from datetime import datetime, timedelta

from fastapi import Request, Response
from sqlalchemy import ColumnElement, and_, delete, func, not_, or_, select, update
from sqlalchemy.orm import Session

from ..models import BrowserSession, User
from ..settings import Settings
from .problems import ApiProblem

COOKIE = "wqlab_session"
_USE_RESOLUTION = timedelta(minutes=1)


def digest(secret: str) -> str:
    """Return the SHA-256 under which a session or token secret is stored.

    A fast hash is sufficient: the secrets are 256 random bits, so they cannot be guessed from a dictionary, and every
    request computes it. (Passwords, which people choose, have a slow hash.)
    """
    return hashlib.sha256(secret.encode()).hexdigest()


def csrf_token(secret: str) -> str:
    """Derive the CSRF token from the session's secret, which no other site can read. Nothing needs to be stored."""
    return hmac.new(secret.encode(), b"csrf", hashlib.sha256).hexdigest()


def begin(session: Session, settings: Settings, user: User, *, life_s: float | None = None) -> str:
    """Create a session and return its secret, for the cookie. Deletes expired sessions.

    `life_s` shortens the session's life, otherwise `session_life_s`.

    The secret is always new, never one from the request: another site may have set that (session fixation).
    """
    session.execute(
        delete(BrowserSession).where(not_(_is_valid(settings))).execution_options(synchronize_session=False)
    )
    secret = secrets.token_urlsafe(32)
    ends_at = None if life_s is None else func.now() + timedelta(seconds=life_s)
    session.add(BrowserSession(user_id=user.id, digest=digest(secret), ends_at=ends_at))
    session.flush()
    return secret


def find(session: Session, settings: Settings, secret: str) -> tuple[BrowserSession, User] | None:
    """Return the valid session of a cookie and its user, or None. Updates `last_used_at`, at most once a minute."""
    found = session.execute(
        select(BrowserSession, User)
        .join(User, User.id == BrowserSession.user_id)
        .where(
            BrowserSession.digest == digest(secret),
            _is_valid(settings),
            User.disabled_at.is_(None),
            User.without_role_since.is_(None),
        )
    ).one_or_none()
    if found is None:
        return None
    row, user = found
    session.execute(
        update(BrowserSession)
        .where(BrowserSession.id == row.id, BrowserSession.last_used_at < func.now() - _USE_RESOLUTION)
        .values(last_used_at=func.now())
        .execution_options(synchronize_session=False)
    )
    return row, user


def end(session: Session, secret: str) -> None:
    """Delete the session of a cookie, if there is one."""
    session.execute(delete(BrowserSession).where(BrowserSession.digest == digest(secret)))


def end_all(session: Session, user: User) -> None:
    """Delete every session of a user."""
    session.execute(delete(BrowserSession).where(BrowserSession.user_id == user.id))


def expires_at(settings: Settings, row: BrowserSession) -> datetime:
    """Return the session's expiry: `session_idle_s` after its last use, at most `session_life_s` after its start, and
    not after `ends_at`."""
    return min(
        row.last_used_at + timedelta(seconds=settings.session_idle_s),
        row.created_at + timedelta(seconds=settings.session_life_s),
        *([row.ends_at] if row.ends_at is not None else []),
    )


def _is_valid(settings: Settings) -> ColumnElement[bool]:
    return and_(
        BrowserSession.last_used_at > func.now() - timedelta(seconds=settings.session_idle_s),
        BrowserSession.created_at > func.now() - timedelta(seconds=settings.session_life_s),
        or_(BrowserSession.ends_at.is_(None), BrowserSession.ends_at > func.now()),
    )


# --- the cookie -------------------------------------------------------------------------------------------------


def cookie_name(settings: Settings) -> str:
    """Return the cookie's name; over https with the prefix `__Host-`, which no other host of the domain can set."""
    return f"__Host-{COOKIE}" if settings.https else COOKIE


def set_cookie(response: Response, settings: Settings, secret: str, *, life_s: float | None = None) -> None:
    """Set the session cookie. The browser keeps it for `life_s` seconds; at most, and by default, `session_life_s`."""
    response.set_cookie(
        cookie_name(settings),
        secret,
        max_age=int(min(settings.session_life_s, life_s or settings.session_life_s)),
        path="/",
        httponly=True,
        samesite="lax",
        secure=settings.https,
    )


def clear_cookie(response: Response, settings: Settings) -> None:
    response.delete_cookie(cookie_name(settings), path="/", httponly=True, samesite="lax", secure=settings.https)


def check_same_site(request: Request) -> None:
    """Raise ApiProblem 403 for a request to sign in that another site has caused.

    Otherwise another site could sign the browser in as an attacker, who then sees what the user does, or as another
    user than before (login CSRF).
    """
    if request.headers.get("Sec-Fetch-Site", "none") not in {"same-origin", "none"}:
        raise ApiProblem(403, "this sign-in comes from another site; sign in on the lab's own page")
