"""API tokens: made, listed and revoked by the user they act for; an administrator sees everyone's. Only hashes are
kept."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, status
from sqlalchemy import func, select

from wqlab_contracts.api.accounts import TokenCreated, TokenRequest, TokenView
from wqlab_contracts.api.submissions import Page
from wqlab_contracts.enums import Scope

from ..http.auth import Principal, SignedIn, create_token
from ..http.deps import Db
from ..http.paging import PAGE_DEFAULT, Before, Id, Limit, encode_cursor, plain_text
from ..http.problems import documented, invalid, not_found
from ..models import Token, User
from ..storage.db import clock

router = APIRouter(prefix="/tokens", tags=["tokens"], responses=documented(401, 403, 422, 429))


@router.get("")
def list_tokens(
    session: Db,
    who: SignedIn,
    before: Before,
    limit: Limit = PAGE_DEFAULT,
    owner: Annotated[str | None, Query(max_length=100, description="Only this user's")] = None,
) -> Page[TokenView]:
    """One's own, an administrator everyone's; newest first, revoked ones too."""
    conditions = [] if who.may(Scope.ADMIN) else [Token.user_id == who.user_id]
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


@router.post("", status_code=status.HTTP_201_CREATED, operation_id="create_token", responses=documented(400))
def make_token(body: TokenRequest, session: Db, who: SignedIn) -> TokenCreated:
    """A new token that acts for its maker; the answer holds its secret, which is shown this once. One made with a token
    ends no later than that one."""
    _check(session, body, who)
    user = session.get_one(User, who.user_id)
    scopes = [Scope(scope) for scope in body.scopes]
    try:
        token, secret = create_token(
            session,
            plain_text("name", body.name, "body"),
            scopes,
            user=None if Scope.WORKER in scopes else user,
            expires_at=body.expires_at or (who.ends_at if who.csrf is None else None),
        )
    except ValueError as error:
        raise invalid([{"pointer": "/scopes", "detail": str(error)}]) from None
    session.refresh(token)
    return TokenCreated(**_view(token, user.name if token.user_id else None).model_dump(), token=secret)


@router.post("/{token_id}/revoke", responses=documented(404))
def revoke_token(token_id: Id, session: Db, who: SignedIn) -> TokenView:
    """It stops working at once, for good. Revoking twice is harmless. Another's is for an administrator, and not there
    for anybody else."""
    row = session.get(Token, token_id, with_for_update=True)
    if row is None or not (row.user_id == who.user_id or who.may(Scope.ADMIN)):
        raise not_found("token", token_id)
    if row.revoked_at is None:
        row.revoked_at = func.now()
        session.flush()
        session.refresh(row)
    owner = None if row.user_id is None else session.get_one(User, row.user_id).name
    return _view(row, owner)


def _check(session: Db, body: TokenRequest, who: Principal) -> None:
    """Nobody gives away more than they have. Raises ApiProblem 422 with every mistake."""
    known = [scope.value for scope in Scope]
    wrong = []
    for index, scope in enumerate(body.scopes):
        if scope not in known:
            detail = f"no scope {scope[:50]!r}; there are: {', '.join(known)}"
        elif scope == Scope.WORKER and not who.may(Scope.ADMIN):
            detail = "a worker's token is made by an administrator"
        elif scope != Scope.WORKER and not who.may(Scope(scope)):
            detail = f"you have {', '.join(who.all_scopes())} yourself, so no token of yours can have {scope}"
        else:
            continue
        wrong.append({"pointer": f"/scopes/{index}", "detail": detail})
    if body.expires_at is not None:
        if body.expires_at <= clock(session):
            wrong.append({"pointer": "/expires_at", "detail": "this time has passed"})
        elif who.csrf is None and who.ends_at is not None and body.expires_at > who.ends_at:
            detail = f"the token that asks ends at {who.ends_at.isoformat()}; one that it makes ends no later"
            wrong.append({"pointer": "/expires_at", "detail": detail})
    if wrong:
        raise invalid(wrong)


def _view(row: Token, owner: str | None) -> TokenView:
    return TokenView(
        id=row.id,
        name=row.name,
        owner=owner,
        scopes=row.scopes,
        created_at=row.created_at,
        expires_at=row.expires_at,
        last_used_at=row.last_used_at,
        revoked_at=row.revoked_at,
    )
