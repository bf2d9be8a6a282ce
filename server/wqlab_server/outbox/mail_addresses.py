"""The mail address of an account: ask for one, confirm it by the link in its mail, remove it, and switch the mails with
results on or off."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import false, func, or_, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from wqlab_contracts.api.mail_address import MailAddressView
from wqlab_contracts.data_folder import DataFolder
from wqlab_contracts.enums import DeliveryKind, DeliveryState
from wqlab_contracts.mail import OutgoingMail, address_of, is_address
from wqlab_contracts.text import control_character

from ..http.problems import ApiProblem, invalid, not_found
from ..models import Delivery, MailAddress, MailBounce, User
from ..settings import Settings
from . import personal_mail
from .personal_mail import CONFIRM, LINK, LINK_LIFE, SIGNATURE

ASKS_PER_ACCOUNT = 5
ASKS_PER_ADDRESS = 3
"""Mails with a link in 24 hours: of one account, and to one address from all accounts."""
ASK_WINDOW = timedelta(hours=24)
_LIST_HOSTS = frozenset({"kvack.org", "googlegroups.com", "groups.io"})
_LIST_LABELS = frozenset({"vger", "list", "lists"})
"""First parts of the names of hosts that have mailing lists."""


def of_account(session: Session, user_id: int, *, lock: bool = False) -> MailAddress | None:
    """Return the row of an account; None if it never had an address."""
    query = select(MailAddress).where(MailAddress.user_id == user_id)
    return session.scalar(query.with_for_update() if lock else query)


def ask(
    session: Session, settings: Settings, data: DataFolder, user: User, wanted: str, *, now: datetime
) -> tuple[MailAddress, bool]:
    """Write the mail with the link that confirms an address. Return the row, and False if the address is confirmed
    already. A confirmed address stays in use until the new one is confirmed.

    Raises ApiProblem 409 if the lab sends no mail, 422 for what is no address of a person, 429 for too many mails.
    """
    if not settings.smtp_host:
        raise ApiProblem(409, "this lab sends no mail: the operator has set no WQLAB_SMTP_HOST; use a webhook")
    if mistake := _mistake(settings, data, wanted):
        raise invalid([{"pointer": "/address", "detail": mistake}])
    session.execute(
        insert(MailAddress).values(user_id=user.id, secret=secrets.token_urlsafe(32)).on_conflict_do_nothing()
    )
    row = of_account(session, user.id, lock=True)
    assert row is not None  # noqa: S101 - inserted above, and never deleted
    if row.address == wanted:
        row.asked_address = None
        return row, False
    _check_rate(session, user, wanted, now)
    row.asked_address, row.asked_at = wanted, now
    key = personal_mail.confirm_key(row)
    mail = _compose(settings, user, wanted, key, now)
    personal_mail.write(session, mail, key=key, event=CONFIRM, user_id=user.id, submission_id=None, now=now)
    return row, True


def _mistake(settings: Settings, data: DataFolder, wanted: str) -> str | None:
    if control_character(wanted) or not is_address(wanted):
        return "not a mail address: write user@host, without a name"
    local, host = wanted.lower().rpartition("@")[::2]
    lists = {archive.list.lower() for archive in data.archives if archive.list}
    is_list = wanted.lower() in lists or host in _LIST_HOSTS or host.partition(".")[0] in _LIST_LABELS
    if is_list or local.endswith("-request"):
        return "this looks like a mailing list; results are mailed to one person"
    if wanted.lower() == address_of(settings.mail_from).lower():
        return "this is the lab's own address"
    return None


def _check_rate(session: Session, user: User, wanted: str, now: datetime) -> None:
    """Raise ApiProblem 429 if the account, or the address, has got too many mails with a link."""
    for condition, most, what in (
        (Delivery.user_id == user.id, ASKS_PER_ACCOUNT, "you have asked for"),
        (func.lower(Delivery.destination) == wanted.lower(), ASKS_PER_ADDRESS, "this address was sent"),
    ):
        oldest_first = (
            select(Delivery.created_at)
            .where(
                Delivery.kind == DeliveryKind.PERSONAL_MAIL,
                Delivery.event == CONFIRM,
                Delivery.created_at > now - ASK_WINDOW,
                condition,
            )
            .order_by(Delivery.created_at)
        )
        found = session.scalars(oldest_first).all()
        if len(found) >= most:
            wait_s = max(int((found[-most] + ASK_WINDOW - now).total_seconds()), 1)
            detail = f"{what} {most} mails with a link within a day; wait {-(-wait_s // 3600)} h"
            raise ApiProblem(429, detail, headers={"Retry-After": str(wait_s)})


def _compose(settings: Settings, user: User, address: str, key: str, now: datetime) -> OutgoingMail:
    hours = LINK_LIFE // timedelta(hours=1)
    lines = [
        f"The account {user.name} of the lab",
        "",
        f"    {settings.public_url}",
        "",
        "asks for its results, and those of the series that this address has sent, at",
        f"this address. If you want them, open this link within {hours} hours, and confirm:",
        "",
        LINK,
        "",
        "If you do not, ignore this mail: without the confirmation the lab sends",
        "nothing else to this address.",
        *SIGNATURE,
    ]
    return OutgoingMail(
        message_id=personal_mail.message_id_of(settings, key, CONFIRM),
        in_reply_to=None,
        references=[],
        sender=settings.mail_from,
        to=[address],
        cc=[],
        subject=f"[wqlab] Confirm this address for the account {user.name}",
        date=now,
        body="".join(f"{line}\n" for line in lines),
    )


def find_asked(session: Session, token: str, now: datetime) -> tuple[MailAddress, User]:
    """Lock and return the address that a token confirms, or has confirmed, and its account.

    Raises ApiProblem 404 for a token that is not valid, 409 for a disabled account, and 410 for an expired token.
    """
    row = of_account(session, personal_mail.account_of(token), lock=True)
    if row is None or row.asked_at is None or not personal_mail.is_token(token, personal_mail.confirm_token(row)):
        raise not_found("address", "for this link", "it is not the newest one, or the address was removed")
    user = session.get_one(User, row.user_id)
    if not personal_mail.may_see(user):
        raise ApiProblem(409, f"the account {user.name} is disabled or has no role")
    if row.asked_address is not None and now > row.asked_at + LINK_LIFE:
        raise ApiProblem(410, "the link has expired; ask for a new one on the account page", slug="link-expired")
    return row, user


def confirm(session: Session, token: str, now: datetime) -> tuple[MailAddress, User, bool]:
    """Confirm an address. Return the row, its account, and False if it was confirmed before. Raises as `find_asked`."""
    row, user = find_asked(session, token, now)
    if row.asked_address is None:
        return row, user, False
    row.address, row.confirmed_at, row.asked_address = row.asked_address, now, None
    row.mail_results = True
    return row, user, True


def remove(session: Session, user_id: int) -> bool:
    """Forget the addresses of an account; return False if it has none."""
    row = of_account(session, user_id, lock=True)
    if row is None or (row.address is None and row.asked_address is None):
        return False
    row.address = row.confirmed_at = row.asked_address = row.asked_at = None
    row.mail_results = False
    return True


def switch(session: Session, user_id: int, *, on: bool) -> bool:
    """Switch the mails with results of an account on or off; return False if that changes nothing.

    Raises ApiProblem 409 without a confirmed address.
    """
    row = of_account(session, user_id, lock=True)
    if row is None or row.address is None:
        raise ApiProblem(409, "you have no confirmed mail address; enter one first")
    changed = row.mail_results is not on
    row.mail_results = on
    return changed


def find_unsubscribed(session: Session, token: str) -> tuple[MailAddress, User]:
    """Lock and return the address whose mails with results a token switches off, and its account.

    Raises ApiProblem 404 for a token that is not valid.
    """
    row = of_account(session, personal_mail.account_of(token), lock=True)
    if row is None or not personal_mail.is_token(token, personal_mail.unsubscribe_token(row)):
        raise not_found("mail", "with this link")
    return row, session.get_one(User, row.user_id)


def wanting_results(session: Session, owner: str, author: str) -> Sequence[MailAddress]:
    """Return the addresses to which a finished submission is mailed: of the account that owns it, and of accounts
    whose confirmed address is the author's. Accounts that may not read the lab any more are left out.

    `author`: of the first patch, `Ada <ada@example.org>`.
    """
    address = address_of(author).lower()
    is_author = func.lower(MailAddress.address) == address if address else false()
    return session.scalars(
        select(MailAddress)
        .join(User, User.id == MailAddress.user_id)
        .where(
            MailAddress.address.is_not(None),
            MailAddress.mail_results,
            or_(User.name == owner, is_author),
            personal_mail.is_active(),
        )
        .order_by(MailAddress.user_id)
    ).all()


def view(session: Session, settings: Settings, user_id: int) -> MailAddressView:
    row = of_account(session, user_id)
    asked = row is not None and row.asked_address is not None and row.asked_at is not None
    return MailAddressView(
        address=row.address if row is not None else None,
        confirmed_at=row.confirmed_at if row is not None else None,
        mail_results=row is not None and row.mail_results,
        asked_address=row.asked_address if row is not None else None,
        asked_until=row.asked_at + LINK_LIFE if row is not None and asked and row.asked_at is not None else None,
        problem=_problem(session, row) if row is not None and asked else None,
        sends_mail=bool(settings.smtp_host),
    )


def _problem(session: Session, row: MailAddress) -> str | None:
    """Return why the mail with the link did not arrive, as far as the lab knows."""
    delivery = session.scalar(select(Delivery).where(Delivery.key == personal_mail.confirm_key(row)))
    if delivery is None:
        return None
    bounce = session.scalar(
        select(MailBounce)
        .where(MailBounce.delivery_id == delivery.id, MailBounce.action == "failed")
        .order_by(MailBounce.id.desc())
    )
    if bounce is not None:
        return f"another server has reported: {bounce.status} {bounce.text}".strip()
    return (delivery.reason or None) if delivery.state is not DeliveryState.DELIVERED else None
