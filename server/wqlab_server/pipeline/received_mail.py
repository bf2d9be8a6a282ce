"""Act on a mail to the lab: record a bounce, or follow the command `wqlab: stop` of the author of a series."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from sqlalchemy.orm import Session

from wqlab_contracts.api.deliveries import MailBounceView
from wqlab_contracts.enums import AuditAction, CommandState, DeliveryState, SubmissionState

from ..intake.mailbox import commands
from ..intake.mailbox.check_signature import Unsigned
from ..intake.mailbox.commands import Target
from ..intake.mailbox.read_mail import ReceivedMail, read_mail
from ..models import ReceivedCommand
from ..outbox import bounces, deliveries, mails
from ..settings import Settings
from ..storage.audit import Actor, record
from ..storage.db import SessionFactory, clock, transaction
from ..submissions import service

Check = Callable[[bytes, ReceivedMail], str]
"""Return the domain that has signed a mail, or raise Unsigned or CannotCheck."""


def receive(
    factory: SessionFactory,
    settings: Settings,
    mail: bytes,
    check: Check,
    *,
    from_list: bool = False,
) -> str:
    """Act on a mail (RFC 5322), and return in words what was done. The same mail again changes nothing.

    `from_list`: it is from the archive of a mailing list. Raises ValueError for a mail that is too large, and
    CannotCheck if it has to be received again later.
    """
    read = read_mail(mail, from_list=from_list)
    if not from_list and read.bounces and read.bounced:
        with transaction(factory) as session:
            reports = [
                MailBounceView(recipient=each.recipient, action=each.action, status=each.status, text=each.text)
                for each in read.bounces
            ]
            return f"bounces recorded: {bounces.record(session, read.bounced, reports)}"
    if read.is_automatic or not read.commands:
        return "ignored: neither a bounce nor a command"
    with transaction(factory) as session:
        about = commands.target(session, read)
    if about is None:
        return "ignored: not a reply to a mail of this lab"
    try:
        check(mail, read)
        unsigned = ""
    except Unsigned as error:
        unsigned = str(error)
    with transaction(factory) as session:
        now = clock(session)
        against = unsigned or commands.objection(session, settings, read, about, now) or commands.mistake(read)
        if against and not commands.has_room(session, about):
            return "ignored: too many commands about this mail were refused"
        row = commands.remember(session, read, about, signed=not unsigned)
        if row is None:
            return "ignored: this mail was received before"
        row.reason = against or _stop(session, about, row, now)
        return f"{row.state}: {row.reason}"


def _stop(session: Session, about: Target, row: ReceivedCommand, now: datetime) -> str:
    """Cancel the submission if it is being measured, and drop the mails that wait; return what was done."""
    submission = service.cancel(session, about.submission_id)
    said = "no more mails about this revision"
    if submission.state is not SubmissionState.FINISHED:
        said = f"submission {submission.id} is canceled; {said}"
    for each in mails.of_thread(session, about.thread):
        is_being_sent = each.claimed_until is not None and each.claimed_until > now
        if each.state in {DeliveryState.WAITING_FOR_REVIEW, DeliveryState.WAITING} and not is_being_sent:
            deliveries.drop(session, each.id, "the lab", now, "somebody replied `wqlab: stop`")
    row.state, row.submission_id = CommandState.DONE, submission.id
    record(session, Actor(name=f"mail:{row.sender}"), AuditAction.CANCEL_SUBMISSION, f"submission/{submission.id}")
    return said
