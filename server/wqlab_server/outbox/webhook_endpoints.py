"""Endpoints to create, list, test, pause, rotate and remove webhooks: users their own, administrators everyone's."""

from __future__ import annotations

from fastapi import APIRouter, status
from sqlalchemy import func, select, true

from wqlab_contracts.api.base import Page
from wqlab_contracts.api.deliveries import DeliveryDetail
from wqlab_contracts.api.webhooks import WebhookRequest, WebhookSecret, WebhookView
from wqlab_contracts.enums import AuditAction, OutboxEvent, Scope

from ..http.audit import Audit
from ..http.auth import SignedIn, Submitter
from ..http.deps import AppSettings, Db
from ..http.paging import PAGE_DEFAULT, Before, Id, Limit, encode_cursor
from ..http.problems import documented
from ..models import Webhook
from ..storage.db import clock
from . import queries, webhooks

router = APIRouter(prefix="/webhooks", tags=["webhooks"], responses=documented(401, 403, 422, 429))


@router.get("")
def list_webhooks(session: Db, principal: SignedIn, before: Before, limit: Limit = PAGE_DEFAULT) -> Page[WebhookView]:
    """List one's own webhooks, administrators everyone's; newest first, without removed ones."""
    own = true() if principal.may(Scope.ADMIN) else Webhook.owner == principal.owner
    conditions = [Webhook.removed_at.is_(None), own]
    total = session.scalar(select(func.count(Webhook.id)).where(*conditions)) or 0
    query = select(Webhook).where(*conditions).order_by(Webhook.id.desc()).limit(limit + 1)
    rows = session.scalars(query if before is None else query.where(Webhook.id < before)).all()
    return Page[WebhookView](
        items=[_view(row) for row in rows[:limit]],
        total=total,
        next=encode_cursor(rows[limit - 1].id) if len(rows) > limit else None,
    )


@router.post(
    "",
    status_code=status.HTTP_201_CREATED,
    responses=documented(400, 409, rules="`url` is not https, contains credentials or a fragment, or is no URL"),
)
def create_webhook(
    body: WebhookRequest, session: Db, settings: AppSettings, principal: Submitter, audit: Audit
) -> WebhookSecret:
    """Create a webhook of the caller, who gets the events from now on. The response contains the secret of its
    signatures, which is shown only once. Without a filter a webhook gets the events of the whole lab; only
    administrators may create one."""
    webhook = webhooks.create(session, settings, body, principal)
    audit.record(
        session,
        AuditAction.CREATE_WEBHOOK,
        f"webhook/{webhook.id}",
        url=webhook.url,
        events=webhook.events,
        filter=webhook.filter.model_dump(mode="json", exclude_defaults=True),
    )
    return _with_secret(webhook)


@router.get("/{webhook_id}", responses=documented(404))
def get_webhook(webhook_id: Id, session: Db, principal: SignedIn) -> WebhookView:
    """One webhook."""
    return _view(webhooks.get(session, webhook_id, principal))


@router.post("/{webhook_id}/rotate", responses=documented(404, 409))
def rotate_webhook(webhook_id: Id, session: Db, principal: Submitter, audit: Audit) -> WebhookSecret:
    """Give a webhook a new secret, which is shown only once. For a day deliveries are signed with the previous secret
    too."""
    webhook = webhooks.rotate(session, webhook_id, principal, clock(session))
    audit.record(session, AuditAction.ROTATE_WEBHOOK, f"webhook/{webhook_id}", url=webhook.url)
    return _with_secret(webhook)


@router.post("/{webhook_id}/test", status_code=status.HTTP_201_CREATED, responses=documented(404, 409))
def test_webhook(
    webhook_id: Id, session: Db, settings: AppSettings, principal: Submitter, audit: Audit
) -> DeliveryDetail:
    """Send the event `webhook.test` to a webhook, whatever events it gets, and return its delivery. A webhook has at
    most one test that waits."""
    number = webhooks.send_test(session, settings, webhook_id, principal, clock(session))
    audit.record(session, AuditAction.TEST_WEBHOOK, f"webhook/{webhook_id}", delivery=number)
    session.flush()
    return queries.detail(session, queries.get(session, number, principal))


@router.put("/{webhook_id}/pause", responses=documented(404, 409))
def pause_webhook(webhook_id: Id, session: Db, principal: Submitter, audit: Audit) -> WebhookView:
    """Let a webhook get no events until it is resumed; what waits for it already is sent. Pausing it again changes
    nothing."""
    webhook = webhooks.pause(session, webhook_id, principal, clock(session))
    audit.record(session, AuditAction.PAUSE_WEBHOOK, f"webhook/{webhook_id}")
    return _view(webhook)


@router.delete("/{webhook_id}/pause", responses=documented(404, 409))
def resume_webhook(webhook_id: Id, session: Db, principal: Submitter, audit: Audit) -> WebhookView:
    """Let a paused webhook get events again, from now on. Resuming it again changes nothing."""
    webhook = webhooks.resume(session, webhook_id, principal)
    audit.record(session, AuditAction.RESUME_WEBHOOK, f"webhook/{webhook_id}")
    return _view(webhook)


@router.delete("/{webhook_id}", responses=documented(404))
def remove_webhook(webhook_id: Id, session: Db, principal: Submitter, audit: Audit) -> WebhookView:
    """Remove a webhook, and drop the deliveries that wait for it. Removing it again changes nothing."""
    was_removed = webhooks.get(session, webhook_id, principal).removed_at is not None
    webhook = webhooks.remove(session, webhook_id, principal, clock(session))
    if not was_removed:
        audit.record(session, AuditAction.REMOVE_WEBHOOK, f"webhook/{webhook_id}", url=webhook.url)
    return _view(webhook)


def _view(row: Webhook) -> WebhookView:
    return WebhookView(
        id=row.id,
        owner=row.owner,
        url=row.url,
        events=[OutboxEvent(event) for event in row.events],
        filter=row.filter,
        created_at=row.created_at,
        paused_at=row.paused_at,
        removed_at=row.removed_at,
        rotating_until=row.previous_until if row.previous_secret else None,
    )


def _with_secret(row: Webhook) -> WebhookSecret:
    return WebhookSecret(**dict(_view(row)), secret=row.secret)
