"""Remember the mail that a submission's series came in, so that the result can be answered in its thread.

Whoever makes a submission from a mail calls `remember` in the transaction that creates it.
"""

from __future__ import annotations

from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from wqlab_contracts.messages.source_mail import SourceMail

from ..models import SubmissionMail


def remember(session: Session, submission_id: int, source: SourceMail) -> None:
    """Store the source mail of a submission, in place of an earlier one."""
    session.flush()
    values = {"message_id": source.message_id, "source": source}
    session.execute(
        insert(SubmissionMail)
        .values(submission_id=submission_id, **values)
        .on_conflict_do_update(index_elements=[SubmissionMail.submission_id], set_=values)
    )


def find(session: Session, submission_id: int) -> SourceMail | None:
    """Return the source mail of a submission; None if its series did not come by mail."""
    row = session.get(SubmissionMail, submission_id, populate_existing=True)
    return row.source if row is not None else None
