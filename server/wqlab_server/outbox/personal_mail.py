"""Mails to one account: write them as deliveries, sign their links, and prepare them to be sent.

A link proves that its holder has read a mail. So it is not stored in the delivery, which the account can read over the
API: it is derived from the account's secret when the mail is sent, the same in every attempt.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, and_
from sqlalchemy.orm import Session

from wqlab_contracts.enums import DeliveryKind, DeliveryState
from wqlab_contracts.mail import OutgoingMail, address_of, recipients

from ..http.paging import MAX_ID
from ..models import Delivery, MailAddress, User
from ..settings import Settings
from . import deliveries

RESULT, CONFIRM = "result", "confirm"
CONFIRM_PATH = "/api/v1/mail-address/confirm"
UNSUBSCRIBE_PATH = "/api/v1/unsubscribe"
LINK = "(the link is only in the mail itself)"
"""Line of a confirmation that is replaced by its link when the mail is sent."""
LINK_LIFE = timedelta(hours=48)
TOKEN_PATTERN = r"^[1-9][0-9]{0,9}-[0-9a-f]{64}$"  # noqa: S105
SIGNATURE = ("-- ", "wqlab measures kernels automatically; it does not review patches.")


@dataclass(frozen=True)
class Ready:
    """A personal mail as it is sent."""

    mail: OutgoingMail
    unsubscribe: str | None
    """URL for the header; None for a confirmation, which is sent once."""


def is_active() -> ColumnElement[bool]:
    """Match accounts that get mails and events: those that may still read the lab."""
    return and_(User.disabled_at.is_(None), User.without_role_since.is_(None))


def may_see(user: User) -> bool:
    """Return True if the account may read submissions: every active account may read all of them."""
    return user.disabled_at is None and user.without_role_since is None


def message_id_of(settings: Settings, key: str, name: object) -> str:
    """Return the Message-ID of a mail, derived from its key so that every attempt is the same mail."""
    host = address_of(settings.mail_from).rpartition("@")[2]
    return f"wqlab-{name}-{deliveries.id_of(key, settings.public_url)[:16]}@{host}"


def write(
    session: Session,
    mail: OutgoingMail,
    *,
    key: str,
    event: str,
    user_id: int,
    submission_id: int | None,
    now: datetime,
) -> int | None:
    """Write a personal mail as a delivery and return its id; None if there is one of this key already.

    It waits for no review: nobody but the account gets it, at an address that the account has confirmed.
    """
    return deliveries.write(
        session,
        DeliveryKind.PERSONAL_MAIL,
        key,
        event=event,
        destination=", ".join(recipients(mail)),
        message_id=mail.message_id,
        submission_id=submission_id,
        user_id=user_id,
        mail=mail,
        state=DeliveryState.WAITING,
        next_at=now,
    )


# --- links ------------------------------------------------------------------------------------------------------


def confirm_token(address: MailAddress) -> str:
    """Return the token in the link that confirms the address which was asked for last."""
    asked_at = address.asked_at.timestamp() if address.asked_at is not None else 0
    said = f"confirm\n{address.user_id}\n{address.asked_address or address.address}\n{asked_at:.6f}"
    return _token(address, said)


def unsubscribe_token(address: MailAddress) -> str:
    """Return the token in the link that switches the account's mails with results off. It is valid for good."""
    return _token(address, f"unsubscribe\n{address.user_id}")


def account_of(token: str) -> int:
    """Return the id of the account that a token begins with. A larger one than ids can be is the largest, whose token
    is another."""
    return min(int(token.partition("-")[0]), MAX_ID)


def is_token(text: str, token: str) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(text.encode(), token.encode())


def _token(address: MailAddress, said: str) -> str:
    return f"{address.user_id}-{hmac.new(address.secret.encode(), said.encode(), hashlib.sha256).hexdigest()}"


# --- sending ----------------------------------------------------------------------------------------------------


def prepare(session: Session, settings: Settings, delivery: Delivery) -> Ready | str:
    """Return a personal mail with its links, to the account's address as it is now; else why it is not sent."""
    mail, address = delivery.mail, session.get(MailAddress, delivery.user_id)
    user = session.get(User, delivery.user_id)
    if mail is None or address is None or user is None:
        return "it has no account"
    if not may_see(user):
        return f"the account {user.name} is disabled or has no role"
    if delivery.event == CONFIRM:
        if address.asked_address is None or [address.asked_address] != mail.to or not _is_newest(address, delivery):
            return "this address is not to be confirmed any more"
        link = f"{settings.public_url}{CONFIRM_PATH}/{confirm_token(address)}"
        return Ready(mail.model_copy(update={"body": mail.body.replace(LINK, link)}), None)
    if address.address is None:
        return f"the account {user.name} has no confirmed mail address"
    if not address.mail_results:
        return f"the account {user.name} has switched its mails with results off"
    link = f"{settings.public_url}{UNSUBSCRIBE_PATH}/{unsubscribe_token(address)}"
    return Ready(mail.model_copy(update={"to": [address.address]}), link)


def confirm_key(address: MailAddress) -> str:
    """Return the key of the mail with the link to the address that was asked for last."""
    assert address.asked_at is not None  # noqa: S101 - set with the address
    return deliveries.key_of("personal", address.user_id, CONFIRM, f"{address.asked_at.timestamp():.6f}")


def _is_newest(address: MailAddress, delivery: Delivery) -> bool:
    return address.asked_at is not None and delivery.key == confirm_key(address)
