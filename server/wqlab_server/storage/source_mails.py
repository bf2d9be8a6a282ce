"""Remember the mail that a submission's series came in, so that the result can be answered in its thread.

Whoever makes a submission from a mail calls `remember` in the transaction that creates it.
"""

from __future__ import annotations

from sqlalchemy import false, func, select, type_coerce
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlalchemy.orm import Session

from wqlab_contracts.messages.source_mail import SourceMail

from ..models import Submission, SubmissionMail


def remember(session: Session, submission_id: int, source: SourceMail) -> None:
    """Store the source mail of a submission, in place of an earlier one."""
    session.flush()
    values = {"message_id": source.message_id, "source": source}
    session.execute(
        insert(SubmissionMail)
        .values(submission_id=submission_id, **values)
        .on_conflict_do_update(index_elements=[SubmissionMail.submission_id], set_=values)
    )


def newest_of_revision(session: Session, submission_id: int) -> int:
    """Return the newest submission with the source mail of this one, and itself without one.

    The rule is that of `wqlab_report.mail.thread_of`: a mail that the lab has read itself is the same in all
    submissions, and an uploaded one only in those of one owner, who has written its Message-ID.
    """
    source = find(session, submission_id)
    if source is None:
        return submission_id
    verified = type_coerce(SubmissionMail.source, JSONB)["verified"].as_boolean()
    same = select(func.max(SubmissionMail.submission_id)).where(
        SubmissionMail.message_id == source.message_id, func.coalesce(verified, false()) == source.verified
    )
    if not source.verified:
        owner = select(Submission.owner).where(Submission.id == submission_id).scalar_subquery()
        same = same.join(Submission, Submission.id == SubmissionMail.submission_id).where(Submission.owner == owner)
    return session.scalar(same) or submission_id


def find(session: Session, submission_id: int) -> SourceMail | None:
    """Return the source mail of a submission; None if its series did not come by mail."""
    row = session.get(SubmissionMail, submission_id, populate_existing=True)
    return row.source if row is not None else None
