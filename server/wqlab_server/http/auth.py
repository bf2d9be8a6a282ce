"""Authentication and authorization: API tokens with scopes, and browser sessions, whose scope follows the user's role.

A request with a bearer token is authorized by that token alone. A browser sends its cookie with every request, also
with one that another site caused; therefore a request that changes something by cookie must also carry the session's
CSRF token, which only the lab's own pages can read.
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
from sqlalchemy import ColumnElement, func, or_, select, update
from sqlalchemy.orm import Session

from wqlab_contracts.enums import AuditAction, Scope, SignInMethod, UserRole

from ..models import Token, User
from ..settings import Settings
from ..storage.db import SessionFactory, transaction
from . import browser_sessions
from .audit import RequestAudit, set_actor
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
_MIN_SECRET_LENGTH = 40
"""Minimum length, without the prefix, of a token that was made elsewhere: 30 random bytes in base 64."""
_USE_RESOLUTION = timedelta(minutes=1)
_AUTHENTICATION = "authentication"
"""Key of a request's state."""
UNUSABLE_TOKEN = "the token is unknown, revoked or expired; make a new one on the account page"  # noqa: S105
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_bearer = HTTPBearer(
    auto_error=False,
    scheme_name="token",
    description="An API token, made on the account page or with `wqlab-server token create`",
)
_cookie = APIKeyCookie(
    name=browser_sessions.COOKIE,
    auto_error=False,
    scheme_name="session",
    description=f"Set by `POST /api/v1/session`; over https its name is `__Host-{browser_sessions.COOKIE}`. "
    f"Every method but GET and HEAD also needs the header `{CSRF_HEADER}` with the `csrf_token` that "
    "`GET /api/v1/session` returns",
)

# `identify` reads both headers itself; declaring them as parameters puts them into the OpenAPI document.
_Token = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
_Cookie = Annotated[str | None, Depends(_cookie)]


@dataclass(frozen=True)
class Principal:
    """The authenticated sender of a request: a user, a worker, or a visitor."""

    owner: str
    """Name of the user or of the worker token. Empty for a visitor without an account."""
    scopes: frozenset[Scope]
    """Scopes of this request, limited to those the user's current role allows."""
    user_id: int | None = None
    """None for workers and visitors."""
    role: UserRole | None = None
    sign_in: SignInMethod = SignInMethod.PASSWORD
    """How the user signs in."""
    ends_at: datetime | None = None
    """Expiry of the token, or of the session if it is not used again."""
    csrf: str | None = None
    """CSRF token of a browser session; None for an API token."""
    lab: str | None = None
    """Lab that a worker token is bound to; None for any lab."""
    token_id: int | None = None
    """Id of the API token; None for a browser session or a visitor."""
    token_name: str | None = None

    def may(self, scope: Scope) -> bool:
        """Return True if the principal has `scope`. Each scope includes those below it, except `worker`."""
        if scope is Scope.WORKER:
            return scope in self.scopes
        return any(_RANK.get(held, -1) >= _RANK[scope] for held in self.scopes)

    def all_scopes(self) -> list[Scope]:
        """Return every scope the principal has, included ones too, lowest first."""
        return [scope for scope in Scope if self.may(scope)]


@dataclass(frozen=True)
class Authentication:
    """Result of checking a request's credentials."""

    principal: Principal | None
    """None without credentials, with invalid ones, or with an expired session."""
    problem: ApiProblem | None = None
    """Refusal of an invalid token."""


VISITOR = Principal(owner="", scopes=frozenset({Scope.READ}))
"""Sender of an unauthenticated request where the lab allows public reading."""


# --- credentials ------------------------------------------------------------------------------------------------


def create_token(
    session: Session,
    name: str,
    scopes: Sequence[Scope],
    *,
    user: User | None = None,
    lab: str | None = None,
    parent_id: int | None = None,
    expires_at: datetime | None = None,
    secret: str | None = None,
) -> tuple[Token, str]:
    """Create an API token and return its row and its secret; the secret is not stored.

    `user` is the owner; a worker token has none. `parent_id` is the token that this one is created with. `secret` is a
    secret made elsewhere; by default one is generated. Raises ApiProblem 401 if the parent is revoked, and ValueError
    if there is no scope, if `worker` is combined with another scope, if a token that is not a worker's is bound to a
    lab, or if it has no owner.
    """
    if not scopes:
        raise ValueError("a token needs at least one scope")
    worker = Scope.WORKER in scopes
    if worker and len(set(scopes)) > 1:
        raise ValueError("scope worker cannot be combined with other scopes: make a second token for them")
    if lab is not None and not worker:
        raise ValueError("only a worker token can be bound to a lab")
    if user is None and not worker:
        raise ValueError("a token that is not a worker's needs an owner: name the user")
    if parent_id is not None:
        _lock_ancestors(session, parent_id)
    secret = secret or PREFIX + secrets.token_urlsafe(32)
    token = Token(
        name=name,
        user_id=None if user is None or worker else user.id,
        digest=digest(secret),
        scopes=sorted({scope.value for scope in scopes}),
        lab=lab,
        parent_id=parent_id,
        expires_at=expires_at,
    )
    session.add(token)
    session.flush()
    return token, secret


def _lock_ancestors(session: Session, parent_id: int) -> None:
    """Lock a token and all its ancestors against revocation. Raises ApiProblem 401 if one of them is revoked."""
    line = select(Token.id, Token.parent_id).where(Token.id == parent_id).cte("line", recursive=True)
    line = line.union_all(select(Token.id, Token.parent_id).join(line, Token.id == line.c.parent_id))
    locked = select(Token).where(Token.id.in_(select(line.c.id))).order_by(Token.id).with_for_update(read=True)
    ancestors = session.scalars(locked.execution_options(populate_existing=True)).all()
    if any(token.revoked_at is not None for token in ancestors):
        raise ApiProblem(401, UNUSABLE_TOKEN)


def revoke_tokens(session: Session, *conditions: ColumnElement[bool]) -> None:
    """Revoke the tokens that match all `conditions`, and every token created with one of them.

    The tokens are locked first. Whoever creates a token has locked all its ancestors, so every descendant is either
    visible afterwards or is not created.
    """
    roots = session.scalars(select(Token.id).where(*conditions).order_by(Token.id).with_for_update()).all()
    family = select(Token.id).where(Token.id.in_(roots)).cte("family", recursive=True)
    family = family.union_all(select(Token.id).join(family, Token.parent_id == family.c.id))
    session.execute(
        update(Token)
        .where(Token.id.in_(select(family.c.id)), Token.revoked_at.is_(None))
        .values(revoked_at=func.now())
        .execution_options(synchronize_session=False)
    )


def keep_worker_token(session: Session, name: str, secret: str, lab: str | None = None) -> Token | None:
    """Make `secret`, kept by an operator in a file, the only valid worker token named `name`; return it if it is new.

    Does nothing if it already is, and revokes the token it replaces. Raises ValueError if the secret is too short or
    has no prefix, or if it belongs to another or a revoked token.
    """
    if not secret.startswith(PREFIX) or len(secret) < len(PREFIX) + _MIN_SECRET_LENGTH:
        raise ValueError(
            f"not a token secret: write {PREFIX} followed by at least {_MIN_SECRET_LENGTH} random letters and digits"
        )
    known = session.scalars(select(Token).where(Token.digest == digest(secret))).one_or_none()
    if known is not None and (known.name != name or known.user_id is not None or known.revoked_at is not None):
        raise ValueError("this secret belongs to another token or to a revoked one: make a new secret")
    revoke_tokens(session, Token.name == name, Token.user_id.is_(None), Token.digest != digest(secret))
    if known is not None:
        return None
    token, _ = create_token(session, name, [Scope.WORKER], lab=lab, secret=secret)
    return token


def by_token(session: Session, secret: str) -> Principal | None:
    """Return the principal of a token secret, or None if the token is unknown, revoked or expired, or its user disabled
    or without a role.

    Updates `last_used_at`, at most once a minute.
    """
    found = session.execute(
        select(Token, User)
        .outerjoin(User, User.id == Token.user_id)
        .where(
            Token.digest == digest(secret),
            Token.revoked_at.is_(None),
            or_(Token.expires_at.is_(None), Token.expires_at > func.now()),
            User.disabled_at.is_(None),
            User.without_role_since.is_(None),
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
            func.coalesce(Token.last_used_at, token.created_at - _USE_RESOLUTION) < func.now() - _USE_RESOLUTION,
        )
        .values(last_used_at=func.now())
        .execution_options(synchronize_session=False)
    )
    scopes = frozenset(Scope(scope) for scope in token.scopes)
    if user is None:
        return Principal(
            token.name, scopes, ends_at=token.expires_at, lab=token.lab, token_id=token.id, token_name=token.name
        )
    return Principal(
        user.name,
        _limit_to_role(scopes, user.role),
        user.id,
        user.role,
        sign_in_method(user),
        ends_at=token.expires_at,
        token_id=token.id,
        token_name=token.name,
    )


def by_cookie(session: Session, settings: Settings, secret: str) -> Principal | None:
    """Return the principal of a session cookie, or None if the session is unknown or expired."""
    found = browser_sessions.find(session, settings, secret)
    if found is None:
        return None
    row, user = found
    ends_at = browser_sessions.expires_at(settings, row)
    scopes = frozenset({SCOPE_OF_ROLE[user.role]})
    csrf = browser_sessions.csrf_token(secret)
    return Principal(user.name, scopes, user.id, user.role, sign_in_method(user), ends_at, csrf)


def sign_in_method(user: User) -> SignInMethod:
    return SignInMethod.PASSWORD if user.issuer is None else SignInMethod.OIDC


def _limit_to_role(scopes: frozenset[Scope], role: UserRole) -> frozenset[Scope]:
    """Limit a token's scopes to what its owner's current role allows."""
    highest = SCOPE_OF_ROLE[role]
    return frozenset(scope if _RANK[scope] <= _RANK[highest] else highest for scope in scopes)


# --- requests ---------------------------------------------------------------------------------------------------


def bearer_token(request: Request) -> str | None:
    """Return the token in the request's Authorization header, if there is one."""
    scheme, token = get_authorization_scheme_param(request.headers.get("Authorization"))
    return token if scheme.lower() == "bearer" and token else None


def authenticate(request: Request) -> Authentication:
    """Check the token or session of a request in the database."""
    factory: SessionFactory = request.app.state.sessions
    settings: Settings = request.app.state.settings
    if token := bearer_token(request):
        with transaction(factory) as session:
            found = by_token(session, token)
        if found is None:
            detail = UNUSABLE_TOKEN
            return Authentication(None, ApiProblem(401, detail))
        return Authentication(found)
    secret = request.cookies.get(browser_sessions.cookie_name(settings))
    if not secret:
        return Authentication(None)
    with transaction(factory) as session:
        return Authentication(by_cookie(session, settings, secret))


def remember(request: Request, found: Authentication) -> None:
    """Keep the result for the rest of this request."""
    request.scope.setdefault("state", {})[_AUTHENTICATION] = found


def remembered(request: Request) -> Authentication | None:
    """Return the result that was kept for this request; None if its credentials were not checked yet."""
    found: Authentication | None = request.scope.get("state", {}).get(_AUTHENTICATION)
    return found


def identify(request: Request) -> Principal | None:
    """Return the principal of a request, or None if the request has no credentials or an expired session.

    Raises ApiProblem 401 if the token is unknown, revoked or expired, and 403 if a request that changes something by
    cookie lacks the session's CSRF token.
    """
    found = remembered(request) or authenticate(request)
    if found.problem is not None:
        raise found.problem
    principal = found.principal
    if principal is not None:
        set_actor(request, principal.owner, principal.token_id, principal.token_name)
        if principal.csrf is not None and request.method not in _SAFE_METHODS:
            _check_csrf(principal, request.headers.get(CSRF_HEADER, ""))
    return principal


def _check_csrf(principal: Principal, header: str) -> None:
    """Raise ApiProblem 403 unless `header` is the CSRF token of the principal's session."""
    assert principal.csrf is not None  # noqa: S101 - every session has one
    if hmac.compare_digest(header.encode(), principal.csrf.encode()):
        return
    mistake = "belongs to another session" if header else "is missing"
    raise ApiProblem(
        403, f"the header {CSRF_HEADER} {mistake}: send the csrf_token that GET /api/v1/session returns", slug="csrf"
    )


def require(scope: Scope, *, visitors: bool = False) -> Callable[..., Principal]:
    """Return a FastAPI dependency that yields the principal.

    The dependency raises ApiProblem 401 without a valid token or session and 403 without `scope`. With `visitors`, it
    accepts unauthenticated requests where the lab allows public reading; those other than GET only calculate
    something, such as a quote. Without it, a token that `is_read_only` gets 403 for all but GET.
    """

    def principal(request: Request, _token: _Token, _cookie: _Cookie) -> Principal:
        settings: Settings = request.app.state.settings
        found = identify(request)
        if found is None:
            if visitors and settings.public_reading:
                return VISITOR
            raise ApiProblem(401, "sign in, or send a token: Authorization: Bearer <token>")
        if not found.may(scope):
            if request.method not in _SAFE_METHODS:
                RequestAudit(request).refuse(AuditAction.REQUEST, request.scope["route"].name, needs=scope)
            held = ", ".join(sorted(found.scopes))
            raise ApiProblem(403, f"this request needs scope {scope}; you have {held}")
        if not visitors and request.method not in _SAFE_METHODS and is_read_only(found):
            RequestAudit(request).refuse(AuditAction.REQUEST, request.scope["route"].name, needs=Scope.SUBMIT)
            raise ApiProblem(403, "a token with scope read changes nothing; use one with more scopes, or a browser")
        return found

    return principal


def is_read_only(principal: Principal) -> bool:
    """Return True for an API token of an account that has only scope read.

    In a browser, with its CSRF token, the same account may change its own settings, such as its mail address.
    """
    return principal.csrf is None and principal.role is not None and not principal.may(Scope.SUBMIT)


def may_read(request: Request) -> bool:
    """Return True if the request would still be authorized now. Long-lived streams check this repeatedly."""
    settings: Settings = request.app.state.settings
    found = authenticate(request)
    if found.problem is not None:
        return False
    return settings.public_reading if found.principal is None else found.principal.may(Scope.READ)


require_reader = require(Scope.READ, visitors=True)
Reader = Annotated[Principal, Depends(require_reader)]
"""Requires scope read; where the lab allows public reading, visitors are accepted too."""
SignedIn = Annotated[Principal, Depends(require(Scope.READ))]
Submitter = Annotated[Principal, Depends(require(Scope.SUBMIT))]
Maintainer = Annotated[Principal, Depends(require(Scope.MAINTAIN))]
Admin = Annotated[Principal, Depends(require(Scope.ADMIN))]
Worker = Annotated[Principal, Depends(require(Scope.WORKER))]


def only_build_workers(principal: Worker) -> Principal:
    """Return the principal. Raises ApiProblem 403 if its token is bound to a lab."""
    if principal.lab is not None:
        raise ApiProblem(
            403, f"this token is for the devices of lab {principal.lab}; a build worker needs a token without a lab"
        )
    return principal
