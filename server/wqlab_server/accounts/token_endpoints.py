"""Endpoints to create, list and revoke API tokens: users their own, administrators everyone's."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, status
from sqlalchemy import func, select

from wqlab_contracts.api.accounts import TokenCreated, TokenRequest, TokenView
from wqlab_contracts.api.base import Page
from wqlab_contracts.enums import AuditAction, Scope

from ..http.audit import Audit
from ..http.auth import Principal, SignedIn, create_token, revoke_tokens
from ..http.deps import Db
from ..http.paging import PAGE_DEFAULT, Before, Id, Limit, encode_cursor, plain_text
from ..http.problems import documented, invalid, not_found
from ..models import Token, User
from ..storage.db import clock

router = APIRouter(prefix="/tokens", tags=["tokens"], responses=documented(401, 403, 422, 429))


@router.get("")
def list_tokens(
    session: Db,
    principal: SignedIn,
    before: Before,
    limit: Limit = PAGE_DEFAULT,
    owner: Annotated[str | None, Query(max_length=100, description="Only tokens of this user")] = None,
) -> Page[TokenView]:
    """List one's own tokens, administrators everyone's; newest first, revoked ones included."""
    conditions = [] if principal.may(Scope.ADMIN) else [Token.user_id == principal.user_id]
    if owner is not None:
        conditions.append(User.name == plain_text("owner", owner))
    found = select(Token, User.name).outerjoin(User, User.id == Token.user_id).where(*conditions)
    total = session.scalar(select(func.count()).select_from(found.subquery())) or 0
    query = found.order_by(Token.id.desc()).limit(limit + 1)
    rows = session.execute(query if before is None else query.where(Token.id < before)).all()
    return Page[TokenView](
        items=[_view(token, name) for token, name in rows[:limit]],
        total=total,
        next=encode_cursor(rows[limit - 1][0].id) if len(rows) > limit else None,
    )


@router.post(
    "",
    status_code=status.HTTP_201_CREATED,
    operation_id="create_token",
    responses=documented(400, rules="a scope exceeds the caller's, or `expires_at` is past or later than the caller's"),
)
def make_token(body: TokenRequest, session: Db, principal: SignedIn, audit: Audit) -> TokenCreated:
    """Create a token owned by the caller. The response contains its secret, which is shown only once. A token created
    with another token expires no later than that one, and is revoked with it."""
    _check(session, body, principal)
    user = session.get_one(User, principal.user_id)
    scopes = [Scope(scope) for scope in body.scopes]
    try:
        token, secret = create_token(
            session,
            plain_text("name", body.name, "body"),
            scopes,
            user=None if Scope.WORKER in scopes else user,
            parent_id=principal.token_id,
            expires_at=body.expires_at or (principal.ends_at if principal.csrf is None else None),
        )
    except ValueError as error:
        raise invalid([{"pointer": "/scopes", "detail": str(error)}]) from None
    session.refresh(token)
    audit.record(
        session,
        AuditAction.CREATE_TOKEN,
        f"token/{token.id}",
        name=token.name,
        scopes=token.scopes,
        expires_at=token.expires_at.isoformat() if token.expires_at else None,
    )
    return TokenCreated(**_view(token, user.name if token.user_id else None).model_dump(), token=secret)


@router.post("/{token_id}/revoke", responses=documented(404))
def revoke_token(token_id: Id, session: Db, principal: SignedIn, audit: Audit) -> TokenView:
    """Revoke a token, at once and permanently, and every token created with it. Revoking it again changes nothing. Only
    administrators can revoke the tokens of others; anybody else gets 404."""
    row = session.get(Token, token_id)
    if row is None or not (row.user_id == principal.user_id or principal.may(Scope.ADMIN)):
        raise not_found("token", token_id)
    if row.revoked_at is None:
        revoke_tokens(session, Token.id == token_id)
        audit.record(session, AuditAction.REVOKE_TOKEN, f"token/{token_id}", name=row.name)
        session.flush()
        session.refresh(row)
    owner = None if row.user_id is None else session.get_one(User, row.user_id).name
    return _view(row, owner)


def _check(session: Db, body: TokenRequest, principal: Principal) -> None:
    """Check that the token's scopes and expiry do not exceed the caller's. Raises ApiProblem 422 with every mistake."""
    known = [scope.value for scope in Scope]
    mistakes = []
    for index, scope in enumerate(body.scopes):
        if scope not in known:
            detail = f"unknown scope {scope[:50]!r}; the scopes are: {', '.join(known)}"
        elif scope == Scope.WORKER and not principal.may(Scope.ADMIN):
            detail = "only an administrator can create a worker token"
        elif scope != Scope.WORKER and not principal.may(Scope(scope)):
            detail = f"your own scopes are {', '.join(principal.all_scopes())}, so your tokens cannot have {scope}"
        else:
            continue
        mistakes.append({"pointer": f"/scopes/{index}", "detail": detail})
    if body.expires_at is not None:
        if body.expires_at <= clock(session):
            mistakes.append({"pointer": "/expires_at", "detail": "this time is in the past"})
        elif principal.csrf is None and principal.ends_at is not None and body.expires_at > principal.ends_at:
            ends_at = principal.ends_at.isoformat()
            detail = f"the token of this request expires at {ends_at}; a token created with it cannot expire later"
            mistakes.append({"pointer": "/expires_at", "detail": detail})
    if mistakes:
        raise invalid(mistakes)


def _view(row: Token, owner: str | None) -> TokenView:
    return TokenView(
        id=row.id,
        name=row.name,
        owner=owner,
        scopes=row.scopes,
        parent_id=row.parent_id,
        created_at=row.created_at,
        expires_at=row.expires_at,
        last_used_at=row.last_used_at,
        revoked_at=row.revoked_at,
    )
