"""Read deliveries for the API."""

from __future__ import annotations

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session, selectinload

from wqlab_contracts.api.deliveries import DeliveryAttemptView, DeliveryDetail, DeliveryView
from wqlab_contracts.enums import DeliveryKind, Scope

from ..http.auth import Principal
from ..http.problems import not_found
from ..models import Delivery, DeliveryAttempt, Webhook
from . import bounces
from .deliveries import MAILS

_OF_ONE_ACCOUNT = (DeliveryKind.WEBHOOK, DeliveryKind.PERSONAL_MAIL)


def visible(principal: Principal) -> ColumnElement[bool]:
    """Match what the principal may see: administrators everything, maintainers answers to series and what is sent to
    forges and to KCIDB, and everyone the deliveries of their own webhooks and the mails to their account."""
    if principal.may(Scope.ADMIN):
        return Delivery.id.is_not(None)
    own: ColumnElement[bool] = Delivery.webhook_id.in_(select(Webhook.id).where(Webhook.owner == principal.owner))
    if principal.user_id is not None:
        own = own | (Delivery.user_id == principal.user_id)
    return own | Delivery.kind.not_in(_OF_ONE_ACCOUNT) if principal.may(Scope.MAINTAIN) else own


def get(session: Session, delivery_id: int, principal: Principal) -> Delivery:
    """Return a delivery with its attempts. Raises ApiProblem 404."""
    row = session.scalar(
        select(Delivery)
        .where(Delivery.id == delivery_id, visible(principal))
        .options(selectinload(Delivery.attempts))
        .execution_options(populate_existing=True)
    )
    if row is None:
        raise not_found("delivery", delivery_id)
    return row


def view(row: Delivery) -> DeliveryView:
    return DeliveryView(
        id=row.id,
        kind=row.kind,
        event=row.event,
        destination=row.destination,
        subject=row.mail.subject if row.mail is not None else None,
        message_id=row.message_id,
        webhook_id=row.webhook_id,
        submission_id=row.submission_id,
        state=row.state,
        reason=row.reason,
        decided_by=row.decided_by,
        tries=row.tries,
        next_at=row.next_at,
        created_at=row.created_at,
        finished_at=row.finished_at,
    )


def detail(session: Session, row: Delivery) -> DeliveryDetail:
    """Return a delivery that was loaded with its attempts, and its bounces."""
    return DeliveryDetail(
        **dict(view(row)),
        body=row.mail.body if row.mail is not None else row.body or "",
        mail=row.mail,
        attempts=[_attempt(each) for each in row.attempts],
        bounces=bounces.of_delivery(session, row.id) if row.kind in MAILS else [],
    )


def _attempt(row: DeliveryAttempt) -> DeliveryAttemptView:
    return DeliveryAttemptView(
        number=row.number,
        started_at=row.started_at,
        finished_at=row.finished_at,
        outcome=row.outcome,
        status=row.status,
        answer=row.answer,
        problem=row.problem,
    )
