"""Who asks, and what they may do: bearer tokens with scopes."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from wqlab_contracts.enums import Scope

from .db import SessionFactory, transaction
from .models import Token
from .problems import ApiProblem

PREFIX = "wql_"
_RANK = {scope: rank for rank, scope in enumerate((Scope.READ, Scope.SUBMIT, Scope.MAINTAIN, Scope.ADMIN))}
_USE_NOTED_EVERY = timedelta(minutes=1)
_bearer = HTTPBearer(auto_error=False, description="An API token: `wqlab-server token create`")


@dataclass(frozen=True)
class Principal:
    token_id: int
    owner: str
    scopes: frozenset[Scope]
    lab: str | None = None
    """A worker token bound to one lab."""

    def may(self, scope: Scope) -> bool:
        """Each role holds the scopes below its own; `worker` is apart from all of them."""
        if scope is Scope.WORKER:
            return scope in self.scopes
        return any(_RANK.get(held, -1) >= _RANK[scope] for held in self.scopes)


def digest(secret: str) -> str:
    """SHA-256 is right here: a token is 256 random bits, so there is no dictionary to slow down, and every request
    pays for the check. (A password, which people choose, would need a slow hash.)"""
    return hashlib.sha256(secret.encode()).hexdigest()


def create_token(
    session: Session, name: str, scopes: Sequence[Scope], *, owner: str | None = None, lab: str | None = None
) -> tuple[Token, str]:
    """The row and the secret, which is shown once and kept nowhere. Raises ValueError for scopes that do not mix."""
    if not scopes:
        raise ValueError("a token needs a scope")
    if Scope.WORKER in scopes and len(set(scopes)) > 1:
        raise ValueError("scope worker stands alone: make a second token for people")
    if lab is not None and Scope.WORKER not in scopes:
        raise ValueError("only a worker token is bound to a lab")
    secret = PREFIX + secrets.token_urlsafe(32)
    token = Token(
        name=name, owner=owner or name, digest=digest(secret), scopes=sorted({s.value for s in scopes}), lab=lab
    )
    session.add(token)
    session.flush()
    return token, secret


def authenticate(session: Session, secret: str) -> Principal | None:
    """Whose token this is; None for one that never was or is revoked. Notes the use, at most once a minute."""
    token = session.scalar(select(Token).where(Token.digest == digest(secret), Token.revoked_at.is_(None)))
    if token is None:
        return None
    session.execute(
        update(Token)
        .where(
            Token.id == token.id,
            func.coalesce(Token.last_used_at, token.created_at - _USE_NOTED_EVERY) < func.now() - _USE_NOTED_EVERY,
        )
        .values(last_used_at=func.now())
        .execution_options(synchronize_session=False)
    )
    return Principal(token.id, token.owner, frozenset(Scope(scope) for scope in token.scopes), token.lab)


def require(scope: Scope) -> Callable[..., Principal]:
    """A FastAPI dependency: the principal, or 401 without a good token, or 403 without `scope`."""

    def principal(
        request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
    ) -> Principal:
        if credentials is None:
            raise ApiProblem(401, "send a token: Authorization: Bearer <token>")
        factory: SessionFactory = request.app.state.sessions
        with transaction(factory) as session:
            found = authenticate(session, credentials.credentials)
        if found is None:
            raise ApiProblem(401, "the token is unknown or revoked; `wqlab-server token create` makes one")
        if not found.may(scope):
            held = ", ".join(sorted(found.scopes))
            raise ApiProblem(403, f"this needs scope {scope}, the token has {held}")
        return found

    return principal


Reader = Annotated[Principal, Depends(require(Scope.READ))]
Submitter = Annotated[Principal, Depends(require(Scope.SUBMIT))]
Maintainer = Annotated[Principal, Depends(require(Scope.MAINTAIN))]
Admin = Annotated[Principal, Depends(require(Scope.ADMIN))]
Worker = Annotated[Principal, Depends(require(Scope.WORKER))]
