"""Record what other servers report about a mail after the lab's server had accepted it.

Anybody can write such a report, so that it is shown beside the delivery and changes nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from wqlab_contracts.api.deliveries import MailBounceView
from wqlab_contracts.mail import recipients

from ..models import Delivery, MailBounce
from .deliveries import MAILS


def record(session: Session, message_ids: Sequence[str], reported: Iterable[MailBounceView]) -> int:
    """Record the reports about recipients of the mails with these Message-IDs; return the number of new ones."""
    found = list(reported)
    mails = session.scalars(select(Delivery).where(Delivery.kind.in_(MAILS), Delivery.message_id.in_(message_ids)))
    new = 0
    for delivery in mails:
        known = {address.lower() for address in recipients(delivery.mail)} if delivery.mail is not None else set()
        for each in found:
            if each.recipient not in known:
                continue
            row = session.scalar(
                insert(MailBounce)
                .values(delivery_id=delivery.id, **each.model_dump(exclude={"at"}))
                .on_conflict_do_nothing()
                .returning(MailBounce.id)
            )
            new += row is not None
    return new


def of_delivery(session: Session, delivery_id: int) -> list[MailBounceView]:
    """Return the reports about a mail, oldest first."""
    rows = session.scalars(select(MailBounce).where(MailBounce.delivery_id == delivery_id).order_by(MailBounce.id))
    return [
        MailBounceView(recipient=row.recipient, action=row.action, status=row.status, text=row.text, at=row.at)
        for row in rows
    ]
