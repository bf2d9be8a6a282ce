"""Answer a finished submission by mail: once for each revision, and again if a mailed verdict has changed."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy.orm import Session

from wqlab_contracts.api.report import Report
from wqlab_contracts.enums import ErrorKind, Outcome
from wqlab_contracts.mail import OutgoingMail, of_commit
from wqlab_contracts.messages.source_mail import SourceMail
from wqlab_report import mail as report_mail

from ..intake.mailbox.commands import is_stopped
from ..models import Submission
from ..outbox import mails
from ..reports.responses import mail_sender
from ..reports.stored_report import load_or_assemble
from ..settings import Settings
from ..storage import source_mails
from ..storage.artifacts import ArtifactStore


def write_answer(session: Session, settings: Settings, submission: Submission, now: datetime) -> int | None:
    """Write the mail about a finished submission, if there is one to write, and return the delivery's id.

    A canceled submission and one that the lab has failed say nothing about the series, so nobody is told by mail. A
    result that is not decided is told only if it corrects what was mailed.
    """
    source = source_mails.find(session, submission.id)
    if not is_answered(settings, submission, source):
        return None
    report = load_or_assemble(session, submission, ArtifactStore.of(settings), settings.public_url)
    says = report_mail.says(report)
    thread = report_mail.thread_of(source, submission.id, submission.owner)
    if is_stopped(session, thread):
        return None
    earlier = mails.of_thread(session, thread)
    changed = mails.changes(mails.said(earlier), report_mail.verdicts(report))
    if not changed and (earlier or not says):
        return None
    sent = mails.supersede(session, earlier, submission.id, now)
    if not sent and not says:
        return None  # nothing is decided
    event, correction = mails.REPLY, None
    if sent and sent[0].mail is not None:
        event = mails.CORRECTION
        now_said = mails.changes(mails.said(sent), report_mail.verdicts(report))
        correction = report_mail.Correction(sent[0].mail, now_said or changed)
        says |= {target: verdict for target, (_, verdict) in correction.changes.items()}
    key = report_mail.key_of(thread, event, submission.id)
    mail = report_mail.compose(report, source, mail_sender(settings), now, key=key, correction=correction)
    if not mail.to:
        return None
    return mails.write(
        session,
        mail,
        key=key,
        event=event,
        submission_id=submission.id,
        thread=thread,
        says=mails.said(sent) | says,
        review=needs_review(settings, mail, source, report),
        now=now,
    )


def is_answered(settings: Settings, submission: Submission, source: SourceMail | None) -> bool:
    """Return True if the result of the submission is mailed."""
    if not settings.smtp_host or submission.outcome in {None, Outcome.CANCELED} or submission.request.series is None:
        return False
    if submission.failure is not None and submission.failure.kind is ErrorKind.INFRASTRUCTURE:
        return False
    return source is not None or (settings.mail_to_authors and bool(of_commit(submission.author)))


def needs_review(settings: Settings, mail: OutgoingMail, source: SourceMail | None, report: Report) -> bool:
    """Return True if a maintainer has to approve the mail.

    Whoever uploads a series writes its senders and recipients, and whoever mails to a list that does not check senders
    writes any From. So only a mail to the author of a mail that the lab has read itself, from an archive that checks
    them, goes out without a person.
    """
    if settings.mail_review != "lists":
        return settings.mail_review == "all"
    verified = source is not None and source.verified and source.sender_checked
    return not (verified and report_mail.is_to_author_only(mail, source, report))
