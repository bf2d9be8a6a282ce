"""Endpoints for administrators to create, list and change users."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, status
from sqlalchemy import func, select

from wqlab_contracts.api.accounts import UserChange, UserPassword, UserRequest, UserView
from wqlab_contracts.api.base import Page
from wqlab_contracts.enums import AuditAction

from ..http.audit import Audit
from ..http.auth import Admin, sign_in_method
from ..http.deps import Db
from ..http.paging import PAGE_DEFAULT, Before, Limit, encode_cursor, plain_text
from ..http.problems import documented
from ..models import User
from . import service

router = APIRouter(prefix="/users", tags=["users"], responses=documented(401, 403, 422, 429))

Name = Annotated[str, Path(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]


@router.get("")
def list_users(
    session: Db,
    _: Admin,
    before: Before,
    limit: Limit = PAGE_DEFAULT,
    q: Annotated[str | None, Query(max_length=100, description="Part of a name")] = None,
) -> Page[UserView]:
    """List users, newest first, disabled ones included."""
    conditions = [] if q is None else [User.name.contains(plain_text("q", q).lower(), autoescape=True)]
    total = session.scalar(select(func.count(User.id)).where(*conditions)) or 0
    query = select(User).where(*conditions).order_by(User.id.desc()).limit(limit + 1)
    rows = session.scalars(query if before is None else query.where(User.id < before)).all()
    return Page[UserView](
        items=[_view(row) for row in rows[:limit]],
        total=total,
        next=encode_cursor(rows[limit - 1].id) if len(rows) > limit else None,
    )


@router.post("", status_code=status.HTTP_201_CREATED, responses=documented(400, 409))
def create_user(body: UserRequest, session: Db, _: Admin, audit: Audit) -> UserPassword:
    """Create a user. The response contains the generated password, which is shown only once; the user should change
    it."""
    user, password = service.create_user(session, body.name, body.role)
    audit.record(session, AuditAction.CREATE_USER, f"user/{user.name}", role=user.role)
    return _with_password(user, password)


@router.patch("/{name}", responses=documented(400, 404, 409))
def update_user(name: Name, body: UserChange, session: Db, _: Admin, audit: Audit) -> UserView:
    """Change a user's role, or disable or enable the user. Takes effect at once, in browser sessions and for tokens.
    The role of a user of the OpenID provider follows the provider's groups and cannot be changed here (409)."""
    user = service.change_user(session, name, role=body.role, disabled=body.disabled)
    audit.record(session, AuditAction.CHANGE_USER, f"user/{name}", role=body.role, disabled=body.disabled)
    return _view(user)


@router.post("/{name}/password", responses=documented(404, 409))
def reset_password(name: Name, session: Db, _: Admin, audit: Audit) -> UserPassword:
    """Set a new generated password, which is shown only once. Signs out the user's browsers; API tokens stay valid."""
    user, password = service.reset_password(session, name)
    audit.record(session, AuditAction.RESET_PASSWORD, f"user/{name}")
    return _with_password(user, password)


def _view(row: User) -> UserView:
    return UserView(
        name=row.name,
        role=row.role,
        sign_in=sign_in_method(row),
        issuer=row.issuer,
        subject=row.subject,
        without_role_since=row.without_role_since,
        created_at=row.created_at,
        last_sign_in_at=row.last_sign_in_at,
        disabled_at=row.disabled_at,
    )


def _with_password(row: User, password: str) -> UserPassword:
    return UserPassword(**_view(row).model_dump(), password=password)
