"""Write the letter about a regression that a bisection has found and confirmed on hardware: once for each commit."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy.orm import Session

from wqlab_contracts.api.bisections import Bisection as BisectionView
from wqlab_contracts.api.report import Report
from wqlab_report import mail as report_mail
from wqlab_report.letters.regression import Lab, not_told

from ..bisections.views import bisections_of
from ..models import Bisection, PendingEvent, Submission
from ..outbox import mails
from ..reports.stored_report import load_or_assemble
from ..settings import Settings
from ..storage.artifacts import ArtifactStore


def write_culprit_letter(session: Session, settings: Settings, event: PendingEvent, now: datetime) -> int | None:
    """Write the letter about the commit of an event `culprit.found`, if there is one, and return the delivery's id."""
    if not settings.smtp_host or not settings.mail_operator:
        return None
    (found,) = bisections_of(session, [session.get_one(Bisection, event.detail["bisection"])])
    submission = session.get_one(Submission, event.detail["confirmed_by"])
    report = load_or_assemble(session, submission, ArtifactStore.of(settings), settings.public_url)
    return write(session, settings, found, report, now)


def write(session: Session, settings: Settings, found: BisectionView, report: Report, now: datetime) -> int | None:
    """Write the letter about a bisection, and return the delivery's id. `report` compares the commit with its parent.

    Return None if no letter is due, or if the commit has one already. A maintainer must approve it, whatever the
    settings say of other mails.
    """
    if not_told(found, report) or found.culprit is None:
        return None
    key = f"mail/culprit/{found.culprit.commit}"
    lab = Lab(settings.mail_from, settings.mail_operator, settings.mail_regzbot)
    also = settings.mail_regressions_to.split(",")
    mail = report_mail.culprit_mail(found, report, lab, also, now, key=key)
    if not mail.to:
        return None
    return mails.write(
        session,
        mail,
        key=key,
        event=mails.CULPRIT,
        submission_id=report.submission.id,
        thread=f"culprit {found.culprit.commit}",
        says={},
        review=True,
        now=now,
    )
