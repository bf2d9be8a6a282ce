"""Results for the accounts that subscribe to them by mail: new ones, corrections, and those no longer subscribed to.

There is one row for each account and submission, so that several subscriptions, several servers and a repeated event
make one mail.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from sqlalchemy import and_, any_, func, or_, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from wqlab_contracts.enums import DeliveryKind, DeliveryState

from ..models import Delivery, MailAddress, SubscribedResult, Subscription, User
from . import deliveries
from .personal_mail import CONFIRM, CORRECTION, RESULT, has_subscription, is_active


def day_of(now: datetime) -> datetime:
    """Return the beginning of the day in UTC."""
    return now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def lock_account(session: Session, user_id: int) -> MailAddress | None:
    """Lock the address of an account, so that one process at a time writes its mails; None without a confirmed one."""
    row = session.scalar(
        select(MailAddress)
        .where(MailAddress.user_id == user_id)
        .with_for_update()
        .execution_options(populate_existing=True)
    )
    return row if row is not None and row.address is not None else None


def told(session: Session, user_id: int, thread: str) -> Sequence[SubscribedResult]:
    """Return what an account was told about a thread, or is going to be told; oldest first."""
    of_thread = SubscribedResult.user_id == user_id, SubscribedResult.thread == thread
    return session.scalars(select(SubscribedResult).where(*of_thread).order_by(SubscribedResult.id)).all()


def told_accounts(session: Session, thread: str) -> dict[int, list[Subscription]]:
    """Return account -> its active subscriptions by mail that results of a thread have matched."""
    rows = session.execute(
        select(SubscribedResult.user_id, Subscription)
        .join(Subscription, Subscription.id == any_(SubscribedResult.subscription_ids))
        .join(User, User.id == SubscribedResult.user_id)
        .join(MailAddress, MailAddress.user_id == User.id)
        .where(
            SubscribedResult.thread == thread,
            Subscription.removed_at.is_(None),
            MailAddress.address.is_not(None),
            is_active(),
        )
        .order_by(SubscribedResult.user_id, Subscription.id)
    )
    found: dict[int, dict[int, Subscription]] = {}
    for user_id, subscription in rows:
        found.setdefault(user_id, {})[subscription.id] = subscription
    return {user_id: list(each.values()) for user_id, each in found.items()}


def record(
    session: Session,
    user_id: int,
    submission_id: int,
    *,
    thread: str,
    subscriptions: Sequence[Subscription],
    says: Mapping[str, str],
    now: datetime,
) -> SubscribedResult | None:
    """Record that an account has to be told about a submission; None if it is recorded already."""
    number = session.scalar(
        insert(SubscribedResult)
        .values(
            user_id=user_id,
            submission_id=submission_id,
            thread=thread,
            subscription_ids=[each.id for each in subscriptions],
            says=dict(says),
            at=now,
        )
        .on_conflict_do_nothing()
        .returning(SubscribedResult.id)
    )
    return session.get_one(SubscribedResult, number) if number is not None else None


def has_room(session: Session, user_id: int, most: int, now: datetime) -> bool:
    """Return True if the account has got less than `most` results by mails of their own today."""
    sent = select(func.count(Delivery.id)).where(
        Delivery.user_id == user_id,
        Delivery.kind == DeliveryKind.PERSONAL_MAIL,
        Delivery.event.in_([RESULT, CORRECTION]),
        Delivery.created_at >= day_of(now),
    )
    return (session.scalar(sent) or 0) < most


# --- collected in one mail ----------------------------------------------------------------------------------------


def accounts_to_collect(session: Session, now: datetime) -> Sequence[int]:
    """Return the accounts that have results of earlier days which no mail tells."""
    waiting = (
        select(SubscribedResult.user_id)
        .join(User, User.id == SubscribedResult.user_id)
        .join(MailAddress, MailAddress.user_id == User.id)
        .where(
            SubscribedResult.delivery_id.is_(None),
            SubscribedResult.at < day_of(now),
            MailAddress.address.is_not(None),
            is_active(),
        )
        .distinct()
        .order_by(SubscribedResult.user_id)
    )
    return session.scalars(waiting).all()


def to_collect(session: Session, user_id: int, most: int, now: datetime) -> Sequence[SubscribedResult]:
    """Return the first `most` results of earlier days that no mail has yet, oldest first.

    The caller must hold the lock of the account's row.
    """
    return session.scalars(
        select(SubscribedResult)
        .where(
            SubscribedResult.user_id == user_id,
            SubscribedResult.delivery_id.is_(None),
            SubscribedResult.at < day_of(now),
        )
        .order_by(SubscribedResult.id)
        .limit(most)
    ).all()


def days_of(rows: Sequence[SubscribedResult]) -> str:
    """Return the days of some results in words."""
    first, last = (day_of(find(row.at for row in rows)) for find in (min, max))
    return f"of {first:%Y-%m-%d} (UTC)" if first == last else f"of {first:%Y-%m-%d} to {last:%Y-%m-%d} (UTC)"


# --- the end of subscriptions -----------------------------------------------------------------------------------


def subscriptions_behind(session: Session, delivery_id: int) -> Sequence[Subscription]:
    """Lock and return the subscriptions behind a mail, removed ones too."""
    behind = (
        select(Subscription.id)
        .join(SubscribedResult, Subscription.id == any_(SubscribedResult.subscription_ids))
        .where(SubscribedResult.delivery_id == delivery_id)
    )
    return session.scalars(
        select(Subscription).where(Subscription.id.in_(behind)).order_by(Subscription.id).with_for_update()
    ).all()


def drop_unwanted(session: Session, user_id: int, by: str, now: datetime) -> None:
    """Drop the mails and results of an account that wait and have no active subscription any more.

    A mail that is being sent ends as it ends.
    """
    waiting = session.scalars(
        select(Delivery)
        .where(
            Delivery.user_id == user_id,
            Delivery.state == DeliveryState.WAITING,
            Delivery.event != CONFIRM,
            or_(Delivery.claimed_until.is_(None), Delivery.claimed_until <= now),
        )
        .order_by(Delivery.id)
        .with_for_update(skip_locked=True)
    ).all()
    for each in waiting:
        if not has_subscription(session, each.id):
            deliveries.drop(session, each.id, by, now, "the subscription was removed")
    active = select(Subscription.id).where(Subscription.user_id == user_id, Subscription.removed_at.is_(None))
    kept = set(session.scalars(active))
    uncollected = and_(SubscribedResult.user_id == user_id, SubscribedResult.delivery_id.is_(None))
    for row in session.scalars(select(SubscribedResult).where(uncollected).order_by(SubscribedResult.id)).all():
        if not kept & set(row.subscription_ids):
            session.delete(row)
