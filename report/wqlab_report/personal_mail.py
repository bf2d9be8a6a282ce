"""Compose the mail with a result to an account that owns the submission or has written its series. Pure."""

from __future__ import annotations

from datetime import datetime

from wqlab_contracts.api.report import Report
from wqlab_contracts.mail import OutgoingMail, reply_subject
from wqlab_contracts.messages.source_mail import SUBJECT_LIMIT, SourceMail

from . import mail as answers
from . import plain_text
from .letters.audience import Audience
from .mail import SIGNATURE


def compose(
    report: Report,
    source: SourceMail | None,
    *,
    to: str,
    account_url: str,
    sender: str,
    message_id: str,
    date: datetime,
) -> OutgoingMail:
    """Compose the mail with a report, in at most 60 lines; in the thread of the series if it came by mail.

    `account_url`: page on which the account can switch these mails off.
    """
    subject, references = f"[wqlab] {report.submission.title}", list[str]()
    if source is not None:
        subject, references = reply_subject(source.subject), [*source.references, source.message_id]
    signature = [*SIGNATURE, "You own this submission, or wrote its series. Switch these mails off:", account_url]
    return OutgoingMail(
        message_id=message_id,
        in_reply_to=references[-1] if references else None,
        references=references,
        sender=sender,
        to=[to],
        cc=[],
        subject=plain_text.printable(subject)[:SUBJECT_LIMIT],
        date=date,
        body=answers.body(report, Audience.OWNER, signature=signature),
    )
