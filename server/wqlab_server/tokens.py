"""API tokens: made, listed and revoked by an admin. Only hashes are kept."""

from __future__ import annotations

from fastapi import APIRouter, status
from sqlalchemy import func, select

from wqlab_contracts.accounts import TokenCreated, TokenRequest, TokenView
from wqlab_contracts.enums import Scope

from .auth import Admin, create_token
from .deps import Db
from .models import Token
from .paging import Id, plain_text
from .problems import documented, invalid, not_found
from .views import token_view

router = APIRouter(prefix="/tokens", tags=["tokens"], responses=documented(401, 403, 422, 429))


@router.get("")
def list_tokens(session: Db, _: Admin) -> list[TokenView]:
    """Every token, revoked ones too; newest first."""
    return [token_view(row) for row in session.scalars(select(Token).order_by(Token.id.desc()))]


@router.post("", status_code=status.HTTP_201_CREATED, operation_id="create_token", responses=documented(400))
def make_token(body: TokenRequest, session: Db, _: Admin) -> TokenCreated:
    """A new token; the answer holds its secret, which is shown this once."""
    known = [scope.value for scope in Scope]
    wrong = [
        {"pointer": f"/scopes/{index}", "detail": f"no scope {scope[:50]!r}; there are: {', '.join(known)}"}
        for index, scope in enumerate(body.scopes)
        if scope not in known
    ]
    if wrong:
        raise invalid(wrong)
    try:
        token, secret = create_token(session, plain_text("name", body.name, "body"), [Scope(s) for s in body.scopes])
    except ValueError as error:
        raise invalid([{"pointer": "/scopes", "detail": str(error)}]) from None
    session.refresh(token)
    return TokenCreated(**token_view(token).model_dump(), token=secret)


@router.post("/{token_id}/revoke", responses=documented(404))
def revoke_token(token_id: Id, session: Db, _: Admin) -> TokenView:
    """It stops working at once, for good. Revoking twice is harmless."""
    row = session.get(Token, token_id, with_for_update=True)
    if row is None:
        raise not_found("token", token_id)
    if row.revoked_at is None:
        row.revoked_at = func.now()
        session.flush()
        session.refresh(row)
    return token_view(row)
