"""Endpoints of deliveries: list them with their attempts, and replay one."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from sqlalchemy import func, select

from wqlab_contracts.api.base import Page
from wqlab_contracts.api.deliveries import DeliveryDetail, DeliveryView
from wqlab_contracts.enums import AuditAction, DeliveryKind, DeliveryState

from ..http.audit import Audit
from ..http.auth import SignedIn, Submitter
from ..http.deps import Db
from ..http.paging import MAX_ID, PAGE_DEFAULT, Before, Id, Limit, encode_cursor
from ..http.problems import documented
from ..models import Delivery
from ..storage.db import clock
from . import deliveries, queries

router = APIRouter(prefix="/deliveries", tags=["deliveries"], responses=documented(401, 403, 422, 429))

_Number = Query(ge=1, le=MAX_ID)


@router.get("")
def list_deliveries(
    *,
    session: Db,
    principal: SignedIn,
    before: Before,
    limit: Limit = PAGE_DEFAULT,
    kind: DeliveryKind | None = None,
    state: DeliveryState | None = None,
    webhook: Annotated[int | None, _Number] = None,
    submission: Annotated[int | None, _Number] = None,
) -> Page[DeliveryView]:
    """List deliveries that match every filter, newest first: those of one's own webhooks and the mails to one's own
    account; for maintainers also answers to series and what is sent to forges and to KCIDB; for administrators all."""
    conditions = [queries.visible(principal)]
    if kind is not None:
        conditions.append(Delivery.kind == kind)
    if state is not None:
        conditions.append(Delivery.state == state)
    if webhook is not None:
        conditions.append(Delivery.webhook_id == webhook)
    if submission is not None:
        conditions.append(Delivery.submission_id == submission)
    total = session.scalar(select(func.count(Delivery.id)).where(*conditions)) or 0
    query = select(Delivery).where(*conditions).order_by(Delivery.id.desc()).limit(limit + 1)
    rows = session.scalars(query if before is None else query.where(Delivery.id < before)).all()
    return Page[DeliveryView](
        items=[queries.view(row) for row in rows[:limit]],
        total=total,
        next=encode_cursor(rows[limit - 1].id) if len(rows) > limit else None,
    )


@router.get("/{delivery_id}", responses=documented(404))
def get_delivery(delivery_id: Id, session: Db, principal: SignedIn) -> DeliveryDetail:
    """One delivery: what it says, and every attempt with its answer."""
    return queries.detail(session, queries.get(session, delivery_id, principal))


@router.post("/{delivery_id}/replay", responses=documented(404, 409))
def replay_delivery(delivery_id: Id, session: Db, principal: Submitter, audit: Audit) -> DeliveryDetail:
    """Send a delivery that has ended again, with its old id, by a new schedule. A mail that was delivered is not sent
    again."""
    queries.get(session, delivery_id, principal)
    row = deliveries.replay(session, delivery_id, principal.owner, clock(session))
    audit.record(session, AuditAction.REPLAY_DELIVERY, f"delivery/{delivery_id}", destination=row.destination)
    session.flush()
    return queries.detail(session, queries.get(session, delivery_id, principal))
