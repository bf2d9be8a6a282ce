"""Create, rotate and remove webhooks, and write a delivery for each webhook that an event is for."""

from __future__ import annotations

import base64
import secrets
from datetime import datetime, timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from wqlab_contracts.api.webhooks import (
    WEBHOOK_TEST,
    CulpritNotice,
    Notice,
    SubmissionNotice,
    WebhookFilter,
    WebhookRequest,
    WebhookTested,
    WebhookTestNotice,
)
from wqlab_contracts.enums import DeliveryKind, DeliveryState, OutboxEvent, Scope, UserRole

from ..http.auth import Principal
from ..http.problems import ApiProblem, invalid, not_found
from ..models import Delivery, PendingEvent, User, Webhook
from ..settings import Settings
from . import deliveries, post_webhook
from .personal_mail import is_active

SECRET_PREFIX = "whsec_"  # noqa: S105 - the prefix of Standard Webhooks
SECRET_BYTES = 32
ROTATION = timedelta(hours=24)
"""Time for which deliveries are signed with the previous secret too: the receiver's operator replaces it meanwhile."""
WEBHOOKS_PER_USER = 20


def create(session: Session, settings: Settings, request: WebhookRequest, principal: Principal) -> Webhook:
    """Create a webhook of the principal with a new secret.

    Raises ApiProblem 403 if the filter is empty and the principal no administrator, 409 if the principal has too many
    webhooks, and 422 for a URL that cannot be posted to.
    """
    hosts = settings.private_webhook_host_set
    mistake = post_webhook.mistake(request.url, hosts)
    if mistake is not None:
        raise invalid([{"pointer": "/url", "detail": mistake}])
    if request.filter.is_empty and not principal.may(Scope.ADMIN):
        raise ApiProblem(
            403, "only an administrator gets the events of the whole lab: filter by mine, device_types or plans"
        )
    owned = select(func.count(Webhook.id)).where(Webhook.owner == principal.owner, Webhook.removed_at.is_(None))
    if (session.scalar(owned) or 0) >= WEBHOOKS_PER_USER:
        raise ApiProblem(409, f"you have {WEBHOOKS_PER_USER} webhooks; remove one first")
    webhook = Webhook(
        owner=principal.owner,
        url=request.url,
        events=sorted({event.value for event in request.events}),
        filter=request.filter,
        secret=new_secret(),
    )
    session.add(webhook)
    session.flush()
    session.refresh(webhook)
    return webhook


def new_secret() -> str:
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def get(session: Session, webhook_id: int, principal: Principal, *, lock: bool = False) -> Webhook:
    """Return a webhook that the principal may see: an own one, administrators any. Raises ApiProblem 404."""
    query = select(Webhook).where(Webhook.id == webhook_id)
    webhook = session.scalar(query.with_for_update() if lock else query)
    if webhook is None or not (principal.may(Scope.ADMIN) or webhook.owner == principal.owner):
        raise not_found("webhook", webhook_id)
    return webhook


def rotate(session: Session, webhook_id: int, principal: Principal, now: datetime) -> Webhook:
    """Give a webhook a new secret; the old one signs too for a day. Raises ApiProblem 404, 409 if it is removed."""
    webhook = _get_active(session, webhook_id, principal)
    webhook.previous_secret, webhook.previous_until = webhook.secret, now + ROTATION
    webhook.secret = new_secret()
    return webhook


def pause(session: Session, webhook_id: int, principal: Principal, now: datetime) -> Webhook:
    """Let a webhook get no events until it is resumed; what already waits is sent. Pausing it again changes nothing.

    Raises ApiProblem 404, 409 if it is removed.
    """
    webhook = _get_active(session, webhook_id, principal)
    webhook.paused_at = webhook.paused_at or now
    return webhook


def resume(session: Session, webhook_id: int, principal: Principal) -> Webhook:
    """Let a webhook get events again, from now on. Raises ApiProblem 404, 409 if it is removed."""
    webhook = _get_active(session, webhook_id, principal)
    webhook.paused_at = None
    return webhook


def _get_active(session: Session, webhook_id: int, principal: Principal) -> Webhook:
    """Lock and return a webhook. Raises ApiProblem 404, 409 if it is removed."""
    webhook = get(session, webhook_id, principal, lock=True)
    if webhook.removed_at is not None:
        raise ApiProblem(409, f"webhook {webhook_id} is removed")
    return webhook


def remove(session: Session, webhook_id: int, principal: Principal, now: datetime) -> Webhook:
    """Remove a webhook, and drop what waits for it. Removing it again changes nothing.

    Raises ApiProblem 404.
    """
    webhook = get(session, webhook_id, principal, lock=True)
    if webhook.removed_at is None:
        webhook.removed_at = now
        webhook.secret, webhook.previous_secret, webhook.previous_until = "", None, None
        deliveries.drop_waiting(session, [webhook.id], principal.owner, now, "the webhook was removed")
    return webhook


def send_test(session: Session, settings: Settings, webhook_id: int, principal: Principal, now: datetime) -> int:
    """Write a delivery that tests a webhook, whatever its events and its filter; return the delivery's id.

    Raises ApiProblem 404, 409 if the webhook is removed or an earlier test still waits.
    """
    webhook = _get_active(session, webhook_id, principal)
    waiting = session.scalar(
        select(Delivery.id).where(
            Delivery.webhook_id == webhook_id, Delivery.event == WEBHOOK_TEST, Delivery.state == DeliveryState.WAITING
        )
    )
    if waiting is not None:
        raise ApiProblem(409, f"delivery {waiting}, a test of this webhook, still waits; its attempts say why")
    notice = WebhookTestNotice(
        type=WEBHOOK_TEST,
        timestamp=now,
        data=WebhookTested(webhook=webhook_id, by=principal.owner, url=settings.public_url),
    )
    key = deliveries.key_of("webhook", webhook_id, WEBHOOK_TEST, now.isoformat())
    number = deliveries.write(
        session,
        DeliveryKind.WEBHOOK,
        key,
        event=WEBHOOK_TEST,
        destination=webhook.url,
        message_id=f"msg_{deliveries.id_of(key, settings.public_url)}",
        webhook_id=webhook_id,
        body=notice.model_dump_json(),
        state=DeliveryState.WAITING,
        next_at=now,
    )
    assert number is not None  # noqa: S101 - the webhook is locked, so no other test has this time
    return number


# --- events -----------------------------------------------------------------------------------------------------


def write_deliveries(session: Session, settings: Settings, event: PendingEvent, notice: Notice, now: datetime) -> int:
    """Write a delivery of `notice` for each webhook that gets the event; return their number.

    A webhook gets no event from before it was created, and none while it is paused or its owner may not read the lab.
    """
    found = session.execute(
        select(Webhook, User.role)
        .join(User, User.name == Webhook.owner)
        .where(
            Webhook.removed_at.is_(None),
            Webhook.paused_at.is_(None),
            Webhook.events.contains([event.event.value]),
            Webhook.created_at <= event.at,
            is_active(),
        )
        .order_by(Webhook.id)
    )
    body = notice.model_dump_json()
    written = 0
    for webhook, role in found:
        if not is_for(webhook, UserRole(role), notice):
            continue
        key = deliveries.key_of("webhook", webhook.id, event.key)
        number = deliveries.write(
            session,
            DeliveryKind.WEBHOOK,
            key,
            event=event.event.value,
            destination=webhook.url,
            message_id=f"msg_{deliveries.id_of(key, settings.public_url)}",
            webhook_id=webhook.id,
            submission_id=event.submission_id,
            body=body,
            state=DeliveryState.WAITING,
            next_at=now,
        )
        written += number is not None
    return written


def is_for(webhook: Webhook, role: UserRole, notice: Notice) -> bool:
    """Return True if the webhook's filter matches. Without a filter the owner must still be an administrator."""
    return role is UserRole.ADMIN if webhook.filter.is_empty else matches(webhook.filter, webhook.owner, notice)


def matches(wanted: WebhookFilter, owner: str, notice: Notice) -> bool:
    """Return True if every given filter matches. One target must be of a wanted plan on a wanted device type. A filter
    that does not apply to the event, such as a plan to a device, does not match."""
    if isinstance(notice, SubmissionNotice):
        targets = [
            target
            for target in notice.data.targets
            if (not wanted.device_types or target.device_type in wanted.device_types)
            and (not wanted.plans or target.plan in wanted.plans)
        ]
        return bool(targets) and (not wanted.mine or notice.data.owner == owner)
    if isinstance(notice, CulpritNotice):
        return (
            (not wanted.mine or notice.data.owner == owner)
            and (not wanted.device_types or notice.data.device_type in wanted.device_types)
            and (not wanted.plans or notice.data.plan in wanted.plans)
        )
    if wanted.mine or wanted.plans or notice.type is OutboxEvent.LAB_LOST:
        return False
    return notice.data.device_type in wanted.device_types
