"""Browsers that are signed in: the cookie they carry, the row behind it, and the CSRF token that belongs to both."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from datetime import datetime, timedelta

from fastapi import Response
from sqlalchemy import ColumnElement, and_, delete, func, not_, select, update
from sqlalchemy.orm import Session

from ..models import BrowserSession, User
from ..settings import Settings

COOKIE = "wqlab_session"
_USE_NOTED_EVERY = timedelta(minutes=1)


def digest(secret: str) -> str:
    """SHA-256 is right here: sessions and tokens are 256 random bits, so there is no dictionary to slow down, and every
    request pays for the check. (A password, which people choose, has a slow hash.)"""
    return hashlib.sha256(secret.encode()).hexdigest()


def csrf_token(secret: str) -> str:
    """Follows from the cookie, which no other site can read: nothing to store, and another one with every session."""
    return hmac.new(secret.encode(), b"csrf", hashlib.sha256).hexdigest()


def begin(session: Session, settings: Settings, user: User) -> str:
    """A new session's secret, for the cookie. Never one that the browser brought: somebody else may have put it there.
    Forgets sessions that are over."""
    session.execute(delete(BrowserSession).where(not_(_alive(settings))).execution_options(synchronize_session=False))
    secret = secrets.token_urlsafe(32)
    session.add(BrowserSession(user_id=user.id, digest=digest(secret)))
    session.flush()
    return secret


def find(session: Session, settings: Settings, secret: str) -> tuple[BrowserSession, User] | None:
    """The living session of a cookie, with its user. Notes the use, at most once a minute."""
    found = session.execute(
        select(BrowserSession, User)
        .join(User, User.id == BrowserSession.user_id)
        .where(BrowserSession.digest == digest(secret), _alive(settings), User.disabled_at.is_(None))
    ).one_or_none()
    if found is None:
        return None
    row, user = found
    session.execute(
        update(BrowserSession)
        .where(BrowserSession.id == row.id, BrowserSession.last_used_at < func.now() - _USE_NOTED_EVERY)
        .values(last_used_at=func.now())
        .execution_options(synchronize_session=False)
    )
    return row, user


def end(session: Session, secret: str) -> None:
    """Harmless for a cookie that is nobody's."""
    session.execute(delete(BrowserSession).where(BrowserSession.digest == digest(secret)))


def end_all(session: Session, user: User) -> None:
    session.execute(delete(BrowserSession).where(BrowserSession.user_id == user.id))


def expires_at(settings: Settings, row: BrowserSession) -> datetime:
    """When it ends if nothing is asked before; used, it ends when it has grown too old."""
    return min(
        row.last_used_at + timedelta(seconds=settings.session_idle_s),
        row.created_at + timedelta(seconds=settings.session_life_s),
    )


def _alive(settings: Settings) -> ColumnElement[bool]:
    return and_(
        BrowserSession.last_used_at > func.now() - timedelta(seconds=settings.session_idle_s),
        BrowserSession.created_at > func.now() - timedelta(seconds=settings.session_life_s),
    )


# --- the cookie -------------------------------------------------------------------------------------------------


def cookie_name(settings: Settings) -> str:
    """Over https one that no other host of the same domain can plant."""
    return f"__Host-{COOKIE}" if settings.https else COOKIE


def set_cookie(response: Response, settings: Settings, secret: str) -> None:
    response.set_cookie(
        cookie_name(settings),
        secret,
        max_age=int(settings.session_life_s),
        path="/",
        httponly=True,
        samesite="lax",
        secure=settings.https,
    )


def clear_cookie(response: Response, settings: Settings) -> None:
    response.delete_cookie(cookie_name(settings), path="/", httponly=True, samesite="lax", secure=settings.https)
