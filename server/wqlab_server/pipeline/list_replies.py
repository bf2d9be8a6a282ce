"""Follow commands in replies to the lab's mails that the archive of a watched list has.

Runs in the workers of the queue `outbox`, because DNS is asked for keys.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import structlog
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from wqlab_contracts.celery_names import LIST_REPLY, OUTBOX_QUEUE
from wqlab_contracts.data_folder import DataFolder

from ..intake.mailbox.check_signature import CannotCheck, Unsigned, check_signature
from ..intake.mailbox.read_mail import ReceivedMail
from ..models import ListReply
from ..settings import Settings
from ..storage.db import Message, SessionFactory, clock, post, transaction
from .received_mail import Check, receive

NUDGE_AGAIN = timedelta(minutes=2)
NUDGES = 50
FIRST_RETRY = timedelta(minutes=1)
ATTEMPTS = 10
"""Attempts to ask DNS for a key, in about 17 hours."""

log = structlog.get_logger(__name__)


def nudge_due(session: Session, now: datetime) -> None:
    """Send messages for the replies that are due: a message may be lost, and DNS may answer later."""
    due = (
        select(ListReply.id)
        .where(ListReply.due_at <= now, ListReply.nudged_at.is_(None) | (ListReply.nudged_at <= now - NUDGE_AGAIN))
        .order_by(ListReply.id)
        .limit(NUDGES)
    )
    nudged = update(ListReply).where(ListReply.id.in_(due)).values(nudged_at=now).returning(ListReply.id)
    for number in sorted(session.scalars(nudged.execution_options(synchronize_session=False)).all()):
        post(session, Message(LIST_REPLY, number, OUTBOX_QUEUE))


def handle(
    factory: SessionFactory, settings: Settings, data: DataFolder, reply_id: int, check: Check = check_signature
) -> str:
    """Act on a reply, and return in words what was done. The row is deleted once it was handled.

    The archive's `dkim_checked` says whether its mail server has checked the sender.
    """
    with transaction(factory) as session:
        row = session.get(ListReply, reply_id)
        if row is None or row.due_at > clock(session):
            return "ignored: it is not due"
        session.expunge(row)
    archive = data.archive(row.archive)
    if archive is None:
        said = f"ignored: archive {row.archive} is no longer configured"
    else:
        try:
            said = receive(
                factory, settings, row.raw, _trust_archive if archive.dkim_checked else check, from_list=True
            )
        except CannotCheck as error:
            return _later(factory, row, str(error))
        except ValueError as error:
            said = f"ignored: {error}"
    log.info("list_reply", archive=row.archive, result=said)
    _forget(factory, reply_id)
    return said


def _trust_archive(_: bytes, mail: ReceivedMail) -> str:
    """Return the sender's domain, since the archive's mail server has checked the signature. Raises Unsigned if that
    server may have read the mail differently."""
    if mail.ambiguous:
        raise Unsigned(mail.ambiguous)
    return mail.sender.rpartition("@")[2]


def _later(factory: SessionFactory, row: ListReply, problem: str) -> str:
    if row.attempts + 1 >= ATTEMPTS:
        log.warning("list_reply_given_up", archive=row.archive, problem=problem)
        _forget(factory, row.id)
        return f"given up: {problem}"
    with transaction(factory) as session:
        due_at = clock(session) + FIRST_RETRY * 2**row.attempts
        values = {"attempts": row.attempts + 1, "due_at": due_at, "nudged_at": None}
        session.execute(update(ListReply).where(ListReply.id == row.id).values(**values))
    return f"later: {problem}"


def _forget(factory: SessionFactory, reply_id: int) -> None:
    with transaction(factory) as session:
        row = session.get(ListReply, reply_id)
        if row is not None:
            session.delete(row)
