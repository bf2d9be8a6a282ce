"""Endpoints of one's own subscriptions, and of the mail address that results are sent to."""

from __future__ import annotations

from fastapi import APIRouter, status
from sqlalchemy import func, select

from wqlab_contracts.api.base import Page
from wqlab_contracts.api.subscriptions import (
    MailAddressRequest,
    MailAddressView,
    SubscriptionRequest,
    SubscriptionView,
)
from wqlab_contracts.enums import AuditAction

from ..http.audit import Audit
from ..http.auth import Principal, SignedIn
from ..http.deps import AppSettings, Data, Db
from ..http.paging import PAGE_DEFAULT, Before, Id, Limit, encode_cursor, plain_text
from ..http.problems import documented
from ..models import Subscription, User
from ..storage.db import clock
from . import mail_addresses, subscriptions

router = APIRouter(tags=["subscriptions"], responses=documented(401, 403, 422, 429))


@router.get("/subscriptions")
def list_subscriptions(
    session: Db, principal: SignedIn, before: Before, limit: Limit = PAGE_DEFAULT
) -> Page[SubscriptionView]:
    """List one's own subscriptions, newest first, without removed ones. Nobody sees those of others."""
    conditions = [Subscription.removed_at.is_(None), Subscription.user_id == _account(principal)]
    total = session.scalar(select(func.count(Subscription.id)).where(*conditions)) or 0
    query = select(Subscription).where(*conditions).order_by(Subscription.id.desc()).limit(limit + 1)
    rows = session.scalars(query if before is None else query.where(Subscription.id < before)).all()
    return Page[SubscriptionView](
        items=[subscriptions.view(session, row) for row in rows[:limit]],
        total=total,
        next=encode_cursor(rows[limit - 1].id) if len(rows) > limit else None,
    )


@router.post(
    "/subscriptions",
    status_code=status.HTTP_201_CREATED,
    responses=documented(400, 409, rules="`device_type`, `plan` or `webhook_id` is unknown, or does not fit `kind`"),
)
def create_subscription(
    body: SubscriptionRequest, session: Db, data: Data, principal: SignedIn, audit: Audit
) -> SubscriptionView:
    """Subscribe to results from now on. They are mailed to the caller's confirmed address, or posted to one of the
    caller's webhooks. A subscription that the caller has already is returned as it is."""
    row, is_made = subscriptions.create(session, data.current(), _account(principal), body)
    if is_made:
        wanted = body.model_dump(mode="json", exclude_none=True)
        audit.record(session, AuditAction.CREATE_SUBSCRIPTION, f"subscription/{row.id}", **wanted)
    return subscriptions.view(session, row)


@router.delete("/subscriptions/{subscription_id}", responses=documented(404))
def remove_subscription(subscription_id: Id, session: Db, principal: SignedIn, audit: Audit) -> SubscriptionView:
    """End one of one's own subscriptions; mails that wait because of it alone are dropped. Ending it again changes
    nothing."""
    row = subscriptions.get(session, subscription_id, _account(principal))
    if subscriptions.end(session, [row], principal.owner, clock(session)):
        audit.record(session, AuditAction.REMOVE_SUBSCRIPTION, f"subscription/{row.id}")
    return subscriptions.view(session, row)


@router.get("/mail-address")
def get_mail_address(session: Db, settings: AppSettings, principal: SignedIn) -> MailAddressView:
    """One's own mail address, and the one that waits to be confirmed."""
    return mail_addresses.view(session, settings, _account(principal))


@router.put(
    "/mail-address",
    responses=documented(400, 409, rules="`address` is no mail address, a mailing list, or the lab's own"),
)
def ask_mail_address(
    *, body: MailAddressRequest, session: Db, settings: AppSettings, data: Data, principal: SignedIn, audit: Audit
) -> MailAddressView:
    """Enter one's mail address. It gets a mail with a link, and nothing else until the address is confirmed by that
    link; an address that was confirmed before stays in use until then. An account can ask for 5 links a day,
    and an address gets at most 3 a day (429)."""
    wanted = plain_text("address", body.address, "body")
    account = _account(principal)
    user = session.get_one(User, account)
    _, asked = mail_addresses.ask(session, settings, data.current(), user, wanted, now=clock(session))
    if asked:
        audit.record(session, AuditAction.ASK_MAIL_ADDRESS, f"user/{user.name}", address=wanted)
    session.flush()
    return mail_addresses.view(session, settings, account)


@router.delete("/mail-address")
def remove_mail_address(session: Db, settings: AppSettings, principal: SignedIn, audit: Audit) -> MailAddressView:
    """Forget one's mail address, confirmed or not. Subscriptions by mail stay, and send nothing until another address
    is confirmed."""
    account = _account(principal)
    if mail_addresses.remove(session, account):
        audit.record(session, AuditAction.REMOVE_MAIL_ADDRESS, f"user/{principal.owner}")
    session.flush()
    return mail_addresses.view(session, settings, account)


def _account(principal: Principal) -> int:
    """Return the id of the caller's account, which everyone with the scope `read` has but visitors."""
    assert principal.user_id is not None  # noqa: S101 - `SignedIn` lets in neither workers nor visitors
    return principal.user_id
