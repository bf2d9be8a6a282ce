"""Store the replies of a watched list that are about mails of the lab, until somebody has acted on them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy.orm import Session

from wqlab_contracts.celery_names import LIST_REPLY, OUTBOX_QUEUE
from wqlab_contracts.messages.list_mails import ArchivedReply

from ...models import ListReply
from ...storage.db import Message, post
from . import commands
from .read_mail import read_mail


def store(session: Session, archive: str, found: Sequence[ArchivedReply], now: datetime) -> None:
    """Store what replies to a mail of the lab, and let a worker act on it; anything else is dropped.

    A mail that a repeated read returns again is stored again, and acting on it changes nothing.
    """
    for each in found:
        try:
            data = each.data
            mail = read_mail(data, from_list=True)
        except ValueError:
            continue  # not base64, or too large: not written by a worker that follows the contract
        if not mail.commands or mail.is_automatic or commands.target(session, mail) is None:
            continue
        row = ListReply(archive=archive, raw=data, nudged_at=now)
        session.add(row)
        session.flush()
        post(session, Message(LIST_REPLY, row.id, OUTBOX_QUEUE))
