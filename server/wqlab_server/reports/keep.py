"""The report that is linked for ever: assembled when its submission finishes, and from then on read, never made again.

Rows stay, but what is made of them would change with the code: headlines, what counts as a finding, which artifacts the
store still has. A finished report is what its readers were told.
"""

from __future__ import annotations

import structlog
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from wqlab_contracts.api import report as api_report
from wqlab_contracts.enums import SubmissionState

from ..models import KeptReport, Submission
from ..storage.artifacts import ArtifactStore
from .assemble import assemble

log = structlog.get_logger(__name__)


def report_of(session: Session, submission: Submission, store: ArtifactStore, public_url: str) -> api_report.Report:
    """The kept report, or of an unfinished submission what there is so far. The lab's own address is today's."""
    kept = session.get(KeptReport, submission.id)
    if kept is not None:
        report = api_report.Report.model_validate_json(kept.document)
        return report.model_copy(update={"lab_url": public_url})
    report = assemble(session, submission, store, public_url)
    if submission.state is SubmissionState.FINISHED:
        _write(session, submission, report)
    return report


def keep(session: Session, submission: Submission, store: ArtifactStore, public_url: str) -> None:
    """Keeps the report of a submission that has just finished. One that cannot be assembled must not hold up its end:
    the log says why, and the first reader tries again."""
    session.flush()
    try:
        with session.begin_nested():
            _write(session, submission, assemble(session, submission, store, public_url))
    except DBAPIError:
        raise
    except Exception:
        log.exception("report_not_kept", submission=submission.id)


def _write(session: Session, submission: Submission, report: api_report.Report) -> None:
    """The first one stays."""
    session.execute(
        insert(KeptReport)
        .values(submission_id=submission.id, document=report.model_dump_json(by_alias=True))
        .on_conflict_do_nothing()
    )
