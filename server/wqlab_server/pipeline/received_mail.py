"""Act on a mail to the lab: record a bounce, or follow a command of the author of a series."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from wqlab_contracts.api.deliveries import MailBounceView
from wqlab_contracts.data_folder import DataFolder
from wqlab_contracts.enums import AuditAction, CommandState, DeliveryState, MailCommand, SubmissionState

from ..http.problems import ApiProblem
from ..intake.mailbox import commands
from ..intake.mailbox.check_signature import Unsigned
from ..intake.mailbox.commands import Target
from ..intake.mailbox.read_mail import ReceivedMail, read_mail
from ..models import ReceivedCommand, Run
from ..outbox import bounces, deliveries, mails
from ..settings import Settings
from ..storage.audit import Actor, record
from ..storage.db import SessionFactory, clock, transaction
from ..submissions import service

BLOCKS_LIMIT = 100
Check = Callable[[bytes, ReceivedMail], str]
"""Return the domain that has signed a mail, or raise Unsigned or CannotCheck."""


def receive(
    factory: SessionFactory,
    settings: Settings,
    data: DataFolder,
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
        row.reason = against or _follow(_Follower(session, settings, data, about, now), row)
        return f"{row.state}: {row.reason}"


def _follow(follower: _Follower, row: ReceivedCommand) -> str:
    """Follow a command; return what was done, or why nothing was."""
    session, about = follower.session, follower.about
    assert row.command is not None  # noqa: S101 - the caller has refused other texts
    try:
        with session.begin_nested():
            done, number = _DO[row.command](follower)
    except ApiProblem as problem:
        return str(problem)
    row.state, row.submission_id = CommandState.DONE, number
    action = AuditAction.CANCEL_SUBMISSION if row.command is MailCommand.STOP else AuditAction.RETRY_SUBMISSION
    created = number if number != about.submission_id else None
    record(session, Actor(name=f"mail:{row.sender}"), action, f"submission/{about.submission_id}", created=created)
    return done


@dataclass(frozen=True)
class _Follower:
    """Does what a command asks for. Each method returns what it has done, and the submission that it is about."""

    session: Session
    settings: Settings
    data: DataFolder
    about: Target
    now: datetime

    def retry(self) -> tuple[str, int]:
        created = self._submit(None)
        return f"submission {created} measures the series again", created

    def more_blocks(self) -> tuple[str, int]:
        number = self.about.submission_id
        rows = select(func.max(func.jsonb_array_length(Run.blocks))).where(Run.submission_id == number)
        before = self.session.scalar(rows) or 1
        blocks = min(2 * before, BLOCKS_LIMIT)
        if blocks <= before:
            raise ApiProblem(409, f"submission {number} has {before} blocks already, the most that a run may have")
        created = self._submit(blocks)
        return f"submission {created} measures the series again with {blocks} blocks", created

    def _submit(self, blocks: int | None) -> int:
        """Create a submission like the last one, owned by the same person, within that person's quota."""
        old = service.lock(self.session, self.about.submission_id)
        again = service.retry(self.session, self.data, self.settings, old.id, old.owner, blocks=blocks, limited=True)
        return again.id

    def stop(self) -> tuple[str, int]:
        submission = service.lock(self.session, self.about.submission_id)
        said = "no more mails about this revision"
        if submission.state is not SubmissionState.FINISHED:
            service.cancel(self.session, submission.id)
            said = f"submission {submission.id} is canceled; {said}"
        for each in mails.of_thread(self.session, self.about.thread):
            is_being_sent = each.claimed_until is not None and each.claimed_until > self.now
            if each.state in {DeliveryState.WAITING_FOR_REVIEW, DeliveryState.WAITING} and not is_being_sent:
                deliveries.drop(self.session, each.id, "the lab", self.now, "somebody replied `wqlab: stop`")
        return said, submission.id


_DO: dict[MailCommand, Callable[[_Follower], tuple[str, int]]] = {
    MailCommand.RETRY: _Follower.retry,
    MailCommand.MORE_BLOCKS: _Follower.more_blocks,
    MailCommand.STOP: _Follower.stop,
}
