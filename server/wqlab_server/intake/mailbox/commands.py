"""Decide about the command `wqlab: stop` in replies to the lab's mails, and remember each to follow it once."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from wqlab_contracts.enums import CommandState, DeliveryKind
from wqlab_contracts.mail import address_of
from wqlab_contracts.specs import ListWatch

from ...models import Delivery, ReceivedCommand, Submission, SubmissionMail, Watch, WatchDecisionRow
from ...settings import Settings
from ...storage import source_mails
from .read_mail import ReceivedMail, is_stop

AGE_LIMIT = timedelta(days=7)
"""Older mails are not followed: somebody may have found them in an archive and sent them again."""
AHEAD_LIMIT = timedelta(days=1)
REPEATS_LIMIT = 100
"""Repetitions of a submission through which the watch that made the first one is looked for."""
REFUSED_LIMIT = 50
"""Refused commands that are recorded for one mail of the lab, so that nobody fills the database."""


@dataclass(frozen=True)
class Target:
    """The mail of the lab that a command is about."""

    delivery_id: int
    thread: str
    submission_id: int
    """The newest submission of the thread."""


def target(session: Session, mail: ReceivedMail) -> Target | None:
    """Return the mail of the lab that was replied to; None if the reply is to something else."""
    parents = mail.parents[:1]
    row = session.scalar(
        select(Delivery).where(
            Delivery.kind == DeliveryKind.MAIL, Delivery.message_id.in_(parents), Delivery.thread.is_not(None)
        )
    )
    if row is None or row.thread is None or row.submission_id is None:
        return None
    return Target(row.id, row.thread, source_mails.newest_of_revision(session, row.submission_id))


def objection(session: Session, settings: Settings, mail: ReceivedMail, about: Target, now: datetime) -> str | None:
    """Return why a command is refused; None if it is recent, and its sender is the author, in WQLAB_MAIL_COMMANDERS, or
    among `commanders` of the watch that took the series.

    The caller has checked the signature of the sender.
    """
    if mail.date is None or not now - AGE_LIMIT <= mail.date <= now + AHEAD_LIMIT:
        return f"the mail is dated {mail.date or 'wrongly'}; one of the last {AGE_LIMIT.days} days is followed"
    row = session.get(SubmissionMail, about.submission_id)
    author = address_of(row.source.sender).lower() if row is not None else ""
    if mail.sender in {author, *settings.mail_commander_set, *watch_commanders(session, about)} - {""}:
        return None
    return f"{mail.sender} is neither the author of the series nor named by its watch or WQLAB_MAIL_COMMANDERS"


def watch_commanders(session: Session, about: Target) -> set[str]:
    """Return the addresses, in lower case, that the watch names by which the submission, or the one that it repeats,
    was made; empty if no watch made it."""
    number: int | None = about.submission_id
    for _ in range(REPEATS_LIMIT):
        watch = session.scalar(
            select(Watch)
            .join(WatchDecisionRow, WatchDecisionRow.watch == Watch.name)
            .where(WatchDecisionRow.submission_id == number, Watch.removed_at.is_(None))
        )
        if watch is not None:
            return (
                {address.lower() for address in watch.spec.commanders} if isinstance(watch.spec, ListWatch) else set()
            )
        number = session.scalar(select(Submission.retry_of).where(Submission.id == number))
        if number is None:
            break
    return set()


def wanted(mail: ReceivedMail) -> str:
    """Return what the lines `wqlab: ...` of a mail ask for."""
    return "; ".join(dict.fromkeys(mail.commands))[:500]


def mistake(mail: ReceivedMail) -> str | None:
    """Return why a mail does not ask the lab to stop; None if it does."""
    text = wanted(mail)
    return None if is_stop(text) else f"{text[:100]!r} is no command; the lab knows only `wqlab: stop`"


def has_room(session: Session, about: Target) -> bool:
    """Return False if REFUSED_LIMIT refused commands are recorded for the mail of the lab."""
    refused = select(func.count(ReceivedCommand.id)).where(
        ReceivedCommand.delivery_id == about.delivery_id, ReceivedCommand.state == CommandState.REFUSED
    )
    return (session.scalar(refused) or 0) < REFUSED_LIMIT


def remember(session: Session, mail: ReceivedMail, about: Target, *, signed: bool) -> ReceivedCommand | None:
    """Record a command as refused until it is followed; return None if the same mail is recorded already.

    The key is computed from what a signature covers, because not every domain signs the Message-ID. A mail without a
    valid signature has another key, so that a copy of a signed mail does not take its place.
    """
    covered = "\n".join([str(signed), mail.sender, str(mail.date), *mail.parents[:1], *mail.commands])
    if not signed and _is_followed(session, mail):
        return None
    number = session.scalar(
        insert(ReceivedCommand)
        .values(
            key=hashlib.sha256(covered.encode()).hexdigest(),
            message_id=mail.message_id,
            sender=mail.sender,
            text=wanted(mail),
            state=CommandState.REFUSED,
            reason="",
            delivery_id=about.delivery_id,
            thread=about.thread,
        )
        .on_conflict_do_nothing()
        .returning(ReceivedCommand.id)
    )
    return session.get_one(ReceivedCommand, number) if number is not None else None


def _is_followed(session: Session, mail: ReceivedMail) -> bool:
    """Return True if a mail of this Message-ID was followed: a list's footer breaks the signature of its copy."""
    followed = select(ReceivedCommand.id).where(
        ReceivedCommand.message_id == mail.message_id, ReceivedCommand.state == CommandState.DONE
    )
    return bool(mail.message_id) and session.scalar(followed.limit(1)) is not None


def is_stopped(session: Session, thread: str) -> bool:
    """Return True if somebody has stopped the mails of a thread."""
    stopped = select(ReceivedCommand.id).where(
        ReceivedCommand.thread == thread,
        ReceivedCommand.state == CommandState.DONE,
    )
    return session.scalar(stopped.limit(1)) is not None
