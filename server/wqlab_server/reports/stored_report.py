"""Stored report: assembled once when its submission finishes, and only read afterwards.

A report assembled again later could differ with the code and the store: headlines, what counts as a finding, which
artifacts still exist. A stored report stays what its readers saw.
"""

from __future__ import annotations

import structlog
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from wqlab_contracts.api.report import Report
from wqlab_contracts.enums import SubmissionState

from ..models import KeptReport, Submission
from ..storage.artifacts import ArtifactStore
from .assemble import assemble

log = structlog.get_logger(__name__)


def load_or_assemble(session: Session, submission: Submission, store: ArtifactStore, public_url: str) -> Report:
    """Return the stored report, or assemble it: for an unfinished submission from the results so far.

    The report of a finished submission that is not stored yet is stored. `lab_url` is always the current address.
    """
    stored = session.get(KeptReport, submission.id)
    if stored is not None:
        report = Report.model_validate_json(stored.document)
        return report.model_copy(update={"lab_url": public_url})
    report = assemble(session, submission, store, public_url)
    if submission.state is SubmissionState.FINISHED:
        _insert(session, submission, report)
    return report


def store_report(session: Session, submission: Submission, store: ArtifactStore, public_url: str) -> None:
    """Assemble and store the report of a submission that has just finished.

    If it cannot be assembled, the error is logged and the submission finishes nevertheless; the first reader's request
    tries again.
    """
    session.flush()
    try:
        with session.begin_nested():
            _insert(session, submission, assemble(session, submission, store, public_url))
    except DBAPIError:
        raise
    except Exception:
        log.exception("report_not_stored", submission=submission.id)


def _insert(session: Session, submission: Submission, report: Report) -> None:
    """Store a report unless one is stored already."""
    session.execute(
        insert(KeptReport)
        .values(submission_id=submission.id, document=report.model_dump_json(by_alias=True))
        .on_conflict_do_nothing()
    )
