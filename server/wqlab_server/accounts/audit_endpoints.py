"""Endpoint for administrators to read the audit log."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from sqlalchemy import func, or_, select

from wqlab_contracts.api.audit import AuditEntry
from wqlab_contracts.api.base import Page
from wqlab_contracts.enums import AuditAction, AuditOutcome
from wqlab_contracts.jsontypes import JsonTime

from ..http.auth import Admin
from ..http.deps import Db
from ..http.paging import PAGE_DEFAULT, Before, Limit, encode_cursor, plain_text
from ..http.problems import documented
from ..models import AuditEntry as Row

router = APIRouter(prefix="/audit", tags=["audit"], responses=documented(401, 403, 422, 429))


@router.get("")
def list_audit_entries(
    *,
    session: Db,
    _: Admin,
    before: Before,
    limit: Limit = PAGE_DEFAULT,
    actor: Annotated[str | None, Query(max_length=200, description="Name of the user or of the worker's token")] = None,
    action: AuditAction | None = None,
    resource: Annotated[
        str | None, Query(max_length=200, description="Type, such as `device`, or type and id, such as `device/tiny-1`")
    ] = None,
    address: Annotated[str | None, Query(max_length=100, description="IP address of the request")] = None,
    outcome: AuditOutcome | None = None,
    since: Annotated[JsonTime | None, Query(description="At or after this time")] = None,
    until: Annotated[JsonTime | None, Query(description="Before this time")] = None,
) -> Page[AuditEntry]:
    """List the entries of the audit log that match every filter, newest first: who did what to which resource, when and
    from where. Entries are never changed, and are kept for at least a year."""
    conditions = []
    if actor is not None:
        conditions.append(Row.actor == plain_text("actor", actor))
    if action is not None:
        conditions.append(Row.action == action)
    if resource is not None:
        name = plain_text("resource", resource)
        types = or_(Row.resource == name, Row.resource.startswith(f"{name}/", autoescape=True))
        conditions.append(Row.resource == name if "/" in name else types)
    if address is not None:
        conditions.append(Row.address == plain_text("address", address))
    if outcome is not None:
        conditions.append(Row.outcome == outcome)
    if since is not None:
        conditions.append(Row.at >= since)
    if until is not None:
        conditions.append(Row.at < until)
    total = session.scalar(select(func.count(Row.id)).where(*conditions)) or 0
    query = select(Row).where(*conditions).order_by(Row.id.desc()).limit(limit + 1)
    rows = session.scalars(query if before is None else query.where(Row.id < before)).all()
    return Page[AuditEntry](
        items=[_view(row) for row in rows[:limit]],
        total=total,
        next=encode_cursor(rows[limit - 1].id) if len(rows) > limit else None,
    )


def _view(row: Row) -> AuditEntry:
    return AuditEntry(
        id=row.id,
        at=row.at,
        actor=row.actor,
        token_id=row.token_id,
        token_name=row.token_name,
        address=row.address,
        action=row.action,
        resource=row.resource,
        outcome=row.outcome,
        detail=row.detail,
    )
