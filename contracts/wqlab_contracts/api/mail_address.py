"""REST resources of the mail address of an account, and of the switch that mails its results to it."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from ..jsontypes import JsonBool
from ..messages import Message
from ..messages.source_mail import ADDRESS_LIMIT


class MailAddressRequest(Message):
    """Body of a request to get mail at an address."""

    address: str = Field(min_length=3, max_length=ADDRESS_LIMIT)
    """`user@host`, without a name."""


class MailAddressChange(Message):
    """Body of a request to switch the mails with results on or off."""

    mail_results: JsonBool


class MailAddressView(Message):
    """The mail address of an account. Before an address is confirmed, nothing is sent to it but the mail with the link
    that confirms it."""

    address: str | None
    """The confirmed address; null without one. It stays in use while another one is being confirmed."""
    confirmed_at: datetime | None
    mail_results: bool
    """True if the account's results are mailed to the confirmed address. Confirming an address switches it on."""
    asked_address: str | None
    """Address that waits to be confirmed."""
    asked_until: datetime | None
    """Time until which the link in its mail is valid."""
    problem: str | None
    """Why the last mail with a link did not arrive, as far as the lab knows; null if it knows of nothing."""
    sends_mail: bool
    """False if the lab has no mail server: then no address can be confirmed."""
