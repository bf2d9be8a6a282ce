"""REST resources of subscriptions: which results an account is told about, and the mail address it is told at."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from ..enums import SubscriptionKind
from ..messages import Message
from ..messages.source_mail import ADDRESS_LIMIT
from ..specs import Name


class SubscriptionRequest(Message):
    """Body of a request to subscribe."""

    kind: SubscriptionKind
    device_type: Name | None = None
    """Required for `device_type`, optional for `regressions`, null for `my_series`."""
    plan: Name | None = None
    """Required for `regressions`, null otherwise."""
    webhook_id: int | None = Field(default=None, ge=1, le=2**31 - 1)
    """One of the caller's webhooks; null: by mail to the caller's confirmed address."""


class SubscriptionView(Message):
    """A subscription."""

    id: int
    kind: SubscriptionKind
    device_type: str | None
    plan: str | None
    webhook_id: int | None
    """null: by mail."""
    webhook_url: str | None
    text: str
    """What it is about, in words, as the mails say it: `regressions of xfs-fsync on xeon-2s`."""
    created_at: datetime
    removed_at: datetime | None


class MailAddressRequest(Message):
    """Body of a request to get mail at an address."""

    address: str = Field(min_length=3, max_length=ADDRESS_LIMIT)
    """`user@host`, without a name."""


class MailAddressView(Message):
    """The mail address of an account. Before an address is confirmed, nothing is sent to it but the mail with the link
    that confirms it."""

    address: str | None
    """The confirmed address; null without one. It stays in use while another one is being confirmed."""
    confirmed_at: datetime | None
    asked_address: str | None
    """Address that waits to be confirmed."""
    asked_until: datetime | None
    """Time until which the link in its mail is valid."""
    problem: str | None
    """Why the last mail with a link did not arrive, as far as the lab knows; null if it knows of nothing."""
    sends_mail: bool
    """False if the lab has no mail server: then no address can be confirmed."""
    mails_a_day: int
    """Most results that are mailed one by one on one day (UTC); those after them are collected in one mail the next
    day."""
