"""Who asks, and what they may do: API tokens with scopes, and browsers' sessions, whose scopes are their user's role.

A request that brings a token is judged by the token alone. A cookie is sent by the browser whoever caused the request,
so whatever changes something must also bring the session's CSRF token, which only the lab's own pages can read.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import APIKeyCookie, HTTPAuthorizationCredentials, HTTPBearer
from fastapi.security.utils import get_authorization_scheme_param
from sqlalchemy import func, or_, select, update
from sqlalchemy.orm import Session

from wqlab_contracts.enums import Scope, UserRole

from ..models import Token, User
from ..settings import Settings
from ..storage.db import SessionFactory, transaction
from . import browser_sessions
from .browser_sessions import digest
from .problems import ApiProblem

PREFIX = "wql_"
CSRF_HEADER = "X-CSRF-Token"
SCOPE_OF_ROLE = {
    UserRole.VIEWER: Scope.READ,
    UserRole.SUBMITTER: Scope.SUBMIT,
    UserRole.MAINTAINER: Scope.MAINTAIN,
    UserRole.ADMIN: Scope.ADMIN,
}
_RANK = {scope: rank for rank, scope in enumerate(SCOPE_OF_ROLE.values())}
_SHORTEST_SECRET = 40
"""Of a token that was made elsewhere, without its prefix: the length of 30 random bytes in base 64."""
_USE_NOTED_EVERY = timedelta(minutes=1)
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_bearer = HTTPBearer(
    auto_error=False, scheme_name="token", description="An API token: made in the pages, or `wqlab-server token create`"
)
_cookie = APIKeyCookie(
    name=browser_sessions.COOKIE,
    auto_error=False,
    scheme_name="session",
    description=f"Set by `POST /api/v1/session`; over https it is called `__Host-{browser_sessions.COOKIE}`. "
    f"Every method but GET and HEAD also needs the header `{CSRF_HEADER}`, with `csrf_token` of `GET /api/v1/session`",
)

# `identify` reads both itself; as parameters of an endpoint they are in its documentation.
_Token = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
_Cookie = Annotated[str | None, Depends(_cookie)]


@dataclass(frozen=True)
class Principal:
    owner: str
    """A user's name, or a worker token's. Empty for a visitor whom the lab lets read."""
    scopes: frozenset[Scope]
    """What this request may do: never more than the user's role allows today."""
    user_id: int | None = None
    """None for workers and visitors."""
    role: UserRole | None = None
    ends_at: datetime | None = None
    """When its token ends, or its session if it is not used."""
    csrf: str | None = None
    """Of a browser's session; None for a token."""
    lab: str | None = None
    """A worker token bound to one lab."""

    def may(self, scope: Scope) -> bool:
        """Each role holds the scopes below its own; `worker` is apart from all of them."""
        if scope is Scope.WORKER:
            return scope in self.scopes
        return any(_RANK.get(held, -1) >= _RANK[scope] for held in self.scopes)

    def all_scopes(self) -> list[Scope]:
        """In rising order, those that others include too."""
        return [scope for scope in Scope if self.may(scope)]


VISITOR = Principal(owner="", scopes=frozenset({Scope.READ}))
"""Anyone, where the lab allows public reading."""


# --- credentials ------------------------------------------------------------------------------------------------


def create_token(
    session: Session,
    name: str,
    scopes: Sequence[Scope],
    *,
    user: User | None = None,
    lab: str | None = None,
    expires_at: datetime | None = None,
    secret: str | None = None,
) -> tuple[Token, str]:
    """The row and the secret, which is shown once and kept nowhere. `user`: whom it acts for; a worker's acts for
    nobody. `secret`: one that was made elsewhere. Raises ValueError for scopes that do not mix."""
    if not scopes:
        raise ValueError("a token needs a scope")
    worker = Scope.WORKER in scopes
    if worker and len(set(scopes)) > 1:
        raise ValueError("scope worker stands alone: make a second token for people")
    if lab is not None and not worker:
        raise ValueError("only a worker token is bound to a lab")
    if user is None and not worker:
        raise ValueError("this token acts for a user: name its owner")
    secret = secret or PREFIX + secrets.token_urlsafe(32)
    token = Token(
        name=name,
        user_id=None if user is None or worker else user.id,
        digest=digest(secret),
        scopes=sorted({scope.value for scope in scopes}),
        lab=lab,
        expires_at=expires_at,
    )
    session.add(token)
    session.flush()
    return token, secret


def keep_worker_token(session: Session, name: str, secret: str, lab: str | None = None) -> None:
    """Makes `secret`, which an operator keeps in a file, the one token of that name: does nothing when it is, and
    revokes the one it replaces. Raises ValueError for a secret that could be guessed."""
    if not secret.startswith(PREFIX) or len(secret) < len(PREFIX) + _SHORTEST_SECRET:
        raise ValueError(f"it is no token: {PREFIX} and at least {_SHORTEST_SECRET} random letters and digits")
    known = session.scalars(select(Token).where(Token.digest == digest(secret))).one_or_none()
    if known is not None and (known.name != name or known.user_id is not None or known.revoked_at is not None):
        raise ValueError("it is another token's secret, or a revoked one's: make a new one")
    others = update(Token).where(Token.name == name, Token.user_id.is_(None), Token.revoked_at.is_(None))
    session.execute(others.where(Token.digest != digest(secret)).values(revoked_at=func.now()))
    if known is None:
        create_token(session, name, [Scope.WORKER], lab=lab, secret=secret)


def by_token(session: Session, secret: str) -> Principal | None:
    """Whose token this is; None for one that never was, is revoked or over, or whose user is disabled. Notes the use,
    at most once a minute."""
    found = session.execute(
        select(Token, User)
        .outerjoin(User, User.id == Token.user_id)
        .where(
            Token.digest == digest(secret),
            Token.revoked_at.is_(None),
            or_(Token.expires_at.is_(None), Token.expires_at > func.now()),
            User.disabled_at.is_(None),
        )
    ).one_or_none()
    if found is None:
        return None
    token: Token = found[0]
    user: User | None = found[1]
    session.execute(
        update(Token)
        .where(
            Token.id == token.id,
            func.coalesce(Token.last_used_at, token.created_at - _USE_NOTED_EVERY) < func.now() - _USE_NOTED_EVERY,
        )
        .values(last_used_at=func.now())
        .execution_options(synchronize_session=False)
    )
    scopes = frozenset(Scope(scope) for scope in token.scopes)
    if user is None:
        return Principal(token.name, scopes, ends_at=token.expires_at, lab=token.lab)
    return Principal(user.name, _within(scopes, user.role), user.id, user.role, ends_at=token.expires_at)


def by_cookie(session: Session, settings: Settings, secret: str) -> Principal | None:
    """Whose browser this is; None for a session that never was or is over."""
    found = browser_sessions.find(session, settings, secret)
    if found is None:
        return None
    row, user = found
    ends_at = browser_sessions.expires_at(settings, row)
    scopes = frozenset({SCOPE_OF_ROLE[user.role]})
    return Principal(user.name, scopes, user.id, user.role, ends_at, browser_sessions.csrf_token(secret))


def _within(scopes: frozenset[Scope], role: UserRole) -> frozenset[Scope]:
    """What is left of a token's scopes under the role that its owner has today."""
    most = SCOPE_OF_ROLE[role]
    return frozenset(scope if _RANK[scope] <= _RANK[most] else most for scope in scopes)


# --- requests ---------------------------------------------------------------------------------------------------


def identify(request: Request) -> Principal | None:
    """Whose request this is; None for nobody's. Raises ApiProblem 401 for a token that is no good, and 403 for a
    change by cookie without the session's CSRF token."""
    factory: SessionFactory = request.app.state.sessions
    settings: Settings = request.app.state.settings
    scheme, token = get_authorization_scheme_param(request.headers.get("Authorization"))
    if scheme.lower() == "bearer" and token:
        with transaction(factory) as session:
            found = by_token(session, token)
        if found is None:
            raise ApiProblem(401, "the token is unknown, revoked or over; make another one in the pages of the lab")
        return found
    secret = request.cookies.get(browser_sessions.cookie_name(settings))
    if not secret:
        return None
    with transaction(factory) as session:
        found = by_cookie(session, settings, secret)
    if found is not None and request.method not in _SAFE_METHODS:
        _check_csrf(found, request.headers.get(CSRF_HEADER, ""))
    return found


def _check_csrf(who: Principal, given: str) -> None:
    assert who.csrf is not None  # noqa: S101 - every session has one
    if hmac.compare_digest(given.encode(), who.csrf.encode()):
        return
    wrong = "is another session's" if given else "is missing"
    raise ApiProblem(403, f"the header {CSRF_HEADER} {wrong}: send csrf_token of GET /api/v1/session", slug="csrf")


def require(scope: Scope, *, visitors: bool = False) -> Callable[..., Principal]:
    """A FastAPI dependency: the principal, or 401 without a good token or session, or 403 without `scope`. With
    `visitors`, nobody's GET is answered too where the lab allows public reading."""

    def principal(request: Request, _token: _Token, _cookie: _Cookie) -> Principal:
        settings: Settings = request.app.state.settings
        found = identify(request)
        if found is None:
            if visitors and settings.public_reading and request.method in _SAFE_METHODS:
                return VISITOR
            raise ApiProblem(401, "sign in, or send a token: Authorization: Bearer <token>")
        if not found.may(scope):
            held = ", ".join(sorted(found.scopes))
            raise ApiProblem(403, f"this needs scope {scope}; you have {held}")
        return found

    return principal


def may_read(request: Request) -> bool:
    """Whether the request would be answered now, as a stream that it opened long ago must ask."""
    settings: Settings = request.app.state.settings
    try:
        found = identify(request)
    except ApiProblem:
        return False
    return settings.public_reading if found is None else found.may(Scope.READ)


Reader = Annotated[Principal, Depends(require(Scope.READ, visitors=True))]
"""Anyone who may read; where the lab allows public reading, a visitor too."""
SignedIn = Annotated[Principal, Depends(require(Scope.READ))]
Submitter = Annotated[Principal, Depends(require(Scope.SUBMIT))]
Maintainer = Annotated[Principal, Depends(require(Scope.MAINTAIN))]
Admin = Annotated[Principal, Depends(require(Scope.ADMIN))]
Worker = Annotated[Principal, Depends(require(Scope.WORKER))]


def only_build_workers(principal: Worker) -> Principal:
    """Raises ApiProblem 403 for a token that is bound to a lab."""
    if principal.lab is not None:
        raise ApiProblem(
            403, f"this token is for the devices of lab {principal.lab}; a build worker needs a token without a lab"
        )
    return principal


BuildWorker = Annotated[Principal, Depends(only_build_workers)]
"""A worker that no lab binds: it applies, builds, looks up. What it builds, every lab boots."""
