"""Mail the result of a finished submission to the accounts that own it or have written its first patch."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy.orm import Session

from wqlab_contracts.enums import Outcome
from wqlab_report import personal_mail as texts

from ..models import Submission
from ..outbox import deliveries, mail_addresses, personal_mail
from ..outbox.personal_mail import RESULT
from ..reports.stored_report import load_or_assemble
from ..settings import Settings
from ..storage import source_mails
from ..storage.artifacts import ArtifactStore


def write_results(session: Session, settings: Settings, submission: Submission, now: datetime) -> int:
    """Write the mails about a finished submission, and return their number.

    The key of a delivery makes it one mail for each account and submission. Nobody is told of a canceled submission.
    """
    if not settings.smtp_host or submission.outcome in {None, Outcome.CANCELED}:
        return 0
    addresses = mail_addresses.wanting_results(session, submission.owner, submission.author)
    if not addresses:
        return 0
    report = load_or_assemble(session, submission, ArtifactStore.of(settings), settings.public_url)
    source, written = source_mails.find(session, submission.id), 0
    for row in addresses:
        key = deliveries.key_of("personal", row.user_id, submission.id)
        mail = texts.compose(
            report,
            source,
            to=row.address or "",
            account_url=f"{settings.public_url}/account#mail",
            sender=settings.mail_from,
            message_id=personal_mail.message_id_of(settings, key, submission.id),
            date=now,
        )
        number = personal_mail.write(
            session, mail, key=key, event=RESULT, user_id=row.user_id, submission_id=submission.id, now=now
        )
        written += number is not None
    return written
