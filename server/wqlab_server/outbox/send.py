"""Send one delivery: claim it, send it outside of any transaction, and record what came of it.

Runs in the workers of the queue `outbox`, never in the API.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import structlog
from sqlalchemy.orm import Session

from wqlab_contracts.enums import AttemptOutcome, DeliveryKind
from wqlab_contracts.mail import unreachable

from ..models import Delivery, Webhook
from ..settings import Settings
from ..storage.db import SessionFactory, clock, transaction
from . import deliveries, forge_messages, kcidb, patchwork, personal_mail, post_webhook, schedule, send_forge, send_mail
from .post_webhook import Letter, Result

log = structlog.get_logger(__name__)

Clock = Callable[[Session], datetime]
Send = Callable[[], Result]
Prepare = Callable[[Session, Settings, Delivery, datetime], Send]


def deliver(factory: SessionFactory, settings: Settings, delivery_id: int, *, now: Clock = clock) -> Result | None:
    """Make one attempt at a delivery that is due; return its result, or None if there is nothing to do."""
    with transaction(factory) as session:
        at = now(session)
        claimed = deliveries.claim(session, delivery_id, at)
        if claimed is None:
            return None
        send = _PREPARE[claimed.delivery.kind](session, settings, claimed.delivery, at)
    try:
        result = send()
    except Exception as error:  # a bug: the delivery must not wait for its claim to expire, and nothing may be lost
        log.exception("delivery_crashed", delivery=delivery_id)
        problem = f"the lab could not send it: {type(error).__name__}; its log has the details"
        result = Result(AttemptOutcome.UNKNOWN, problem=problem)
    with transaction(factory) as session:
        recorded = deliveries.finish(session, claimed, now(session), result)
        if recorded and result.reference:
            forge_messages.remember_comment(session, claimed.delivery, result.reference)
    log.info(
        "delivery_attempted",
        delivery=delivery_id,
        outcome=result.outcome.value,
        status=result.status,
        problem=result.problem,
        recorded=recorded,
    )
    return result


def _prepare_webhook(session: Session, settings: Settings, delivery: Delivery, at: datetime) -> Send:
    webhook = session.get_one(Webhook, delivery.webhook_id)
    if webhook.removed_at is not None:
        return lambda: Result(AttemptOutcome.REFUSED, problem="the webhook was removed")
    secrets = [webhook.secret]
    if webhook.previous_secret is not None and webhook.previous_until is not None and webhook.previous_until > at:
        secrets.append(webhook.previous_secret)
    letter = Letter(webhook.url, delivery.message_id, delivery.body or "", secrets)
    hosts = settings.private_webhook_host_set
    return lambda: post_webhook.post(letter, at.astimezone(UTC), hosts)


def _prepare_mail(_: Session, settings: Settings, delivery: Delivery, at: datetime) -> Send:
    mail = delivery.mail
    if mail is None or not settings.smtp_host:
        return lambda: Result(AttemptOutcome.FAILED, problem="no SMTP server is configured (WQLAB_SMTP_HOST)")
    if reason := unreachable(mail.body):
        return lambda: Result(AttemptOutcome.REFUSED, problem=reason)
    server, last = send_mail.Server.of(settings), schedule.next_attempt(delivery.tries, at) is None
    return lambda: send_mail.send(server, mail, last=last)


def _prepare_personal_mail(session: Session, settings: Settings, delivery: Delivery, at: datetime) -> Send:
    if not settings.smtp_host:
        return _prepare_mail(session, settings, delivery, at)
    ready = personal_mail.prepare(session, settings, delivery)
    reason = ready if isinstance(ready, str) else unreachable(ready.mail.body)
    if isinstance(ready, str) or reason:
        return lambda: Result(AttemptOutcome.REFUSED, problem=reason)
    server, last = send_mail.Server.of(settings), schedule.next_attempt(delivery.tries, at) is None
    return lambda: send_mail.send(server, ready.mail, unsubscribe=ready.unsubscribe, last=last)


def _prepare_kcidb(_: Session, settings: Settings, delivery: Delivery, __: datetime) -> Send:
    document = (delivery.body or "").encode()
    return lambda: kcidb.send(document, settings)


def _prepare_forge(session: Session, settings: Settings, delivery: Delivery, at: datetime) -> Send:
    if reason := forge_messages.is_replaced(session, delivery):
        return lambda: Result(AttemptOutcome.REFUSED, problem=reason)
    if forge_messages.is_behind(session, delivery, at):
        return lambda: Result(AttemptOutcome.FAILED, problem="the one before is being sent")
    if delivery.kind is DeliveryKind.PATCHWORK_CHECK:
        return lambda: patchwork.send(delivery.body or "", settings.data_dir)
    comment_id = forge_messages.known_comment(session, delivery)
    return lambda: send_forge.send(delivery.kind, delivery.body or "", comment_id, settings.data_dir)


_PREPARE: Mapping[DeliveryKind, Prepare] = {
    DeliveryKind.WEBHOOK: _prepare_webhook,
    DeliveryKind.MAIL: _prepare_mail,
    DeliveryKind.PERSONAL_MAIL: _prepare_personal_mail,
    DeliveryKind.KCIDB: _prepare_kcidb,
    DeliveryKind.FORGE_STATUS: _prepare_forge,
    DeliveryKind.FORGE_COMMENT: _prepare_forge,
    DeliveryKind.PATCHWORK_CHECK: _prepare_forge,
}
