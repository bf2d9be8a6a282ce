"""Tables of subscriptions, of the accounts' mail addresses, and of the results that subscribers are told about."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, Index, Integer, UniqueConstraint, func, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from wqlab_contracts.enums import SubscriptionKind

from .base import Base


class MailAddress(Base):
    """The mail address of an account. The row stays when the address is removed: old mails have links signed with its
    secret."""

    __tablename__ = "mail_addresses"

    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), primary_key=True)
    secret: Mapped[str]
    """Key of the links in the account's mails. It cannot be hashed, because each link is signed with it."""
    address: Mapped[str | None]
    """The confirmed address."""
    confirmed_at: Mapped[datetime | None]
    asked_address: Mapped[str | None]
    """Address that has got a mail with a link and is not confirmed."""
    asked_at: Mapped[datetime | None]


class Subscription(Base):
    """Results that an account wants to be told about. The row is kept after its removal: results refer to it."""

    __tablename__ = "subscriptions"
    __table_args__ = (
        Index("ix_subscriptions_active", "kind", "user_id", postgresql_where=text("removed_at IS NULL")),
        Index("ix_subscriptions_user_id", "user_id", "id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    kind: Mapped[SubscriptionKind]
    device_type: Mapped[str | None]
    plan: Mapped[str | None]
    webhook_id: Mapped[int | None] = mapped_column(ForeignKey("webhooks.id"))
    """null: by mail."""
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    removed_at: Mapped[datetime | None]


class SubscribedResult(Base):
    """A result that an account is told about by mail: one row for each account and submission."""

    __tablename__ = "subscribed_results"
    __table_args__ = (
        UniqueConstraint("user_id", "submission_id"),
        Index("ix_subscribed_results_thread", "thread", "id"),
        Index("ix_subscribed_results_delivery_id", "delivery_id"),
        Index("ix_subscribed_results_uncollected", "user_id", postgresql_where=text("delivery_id IS NULL")),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    submission_id: Mapped[int] = mapped_column(ForeignKey("submissions.id"))
    thread: Mapped[str]
    """What the results of one revision of a series have in common."""
    subscription_ids: Mapped[list[int]] = mapped_column(ARRAY(Integer))
    """The subscriptions that it matched."""
    says: Mapped[dict[str, str]]
    """Target -> verdict, to notice when a verdict changes. Empty if the lab has failed."""
    at: Mapped[datetime]
    delivery_id: Mapped[int | None] = mapped_column(ForeignKey("deliveries.id"))
    """The mail that tells it; null until the day's remaining results are collected in one."""
