"""Stored report: assembled once when its submission finishes, and only read afterwards.

A report assembled again later could differ with the code and the store: headlines, what counts as a finding, which
artifacts still exist. A stored report stays what its readers saw.
"""

from __future__ import annotations

import structlog
from sqlalchemy import or_, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from wqlab_contracts.api.report import Report
from wqlab_contracts.enums import SubmissionState

from ..models import Apply, Build, KeptReport, Run, Submission
from ..storage.artifacts import ArtifactStore
from ..storage.db import fetch_dict
from .assemble import assemble

log = structlog.get_logger(__name__)


def load_or_assemble(session: Session, submission: Submission, store: ArtifactStore, public_url: str) -> Report:
    """Return the stored report, or assemble it: for an unfinished submission from the results so far.

    The report of a finished submission that is not stored yet is stored. `lab_url` is always the current address.
    """
    stored = session.get(KeptReport, submission.id)
    if stored is not None:
        report = Report.model_validate_json(stored.document)
        return _with_deletions(session, report).model_copy(update={"lab_url": public_url})
    report = assemble(session, submission, store, public_url)
    if submission.state is SubmissionState.FINISHED:
        _insert(session, submission, report)
    return report


def _with_deletions(session: Session, report: Report) -> Report:
    """Add what retention has deleted since; nothing else of a stored report changes."""
    submission = report.submission
    builds = fetch_dict(
        session,
        select(Build.id, Build.files_deleted_at).where(
            Build.id.in_([build.id for build in submission.builds]), Build.files_deleted_at.is_not(None)
        ),
    )
    runs = {
        run_id: {"files_deleted_at": files, "consoles_deleted_at": consoles}
        for run_id, files, consoles in session.execute(
            select(Run.id, Run.files_deleted_at, Run.consoles_deleted_at).where(
                Run.submission_id == submission.id,
                or_(Run.files_deleted_at.is_not(None), Run.consoles_deleted_at.is_not(None)),
            )
        )
    }
    applied = session.scalar(select(Apply.files_deleted_at).where(Apply.submission_id == submission.id))
    if not builds and not runs and applied is None:
        return report
    changed = submission.model_copy(
        update={
            "apply": submission.apply.model_copy(update={"files_deleted_at": applied}),
            "builds": [
                build.model_copy(update={"files_deleted_at": builds.get(build.id)}) for build in submission.builds
            ],
            "runs": [run.model_copy(update=runs.get(run.id, {})) for run in submission.runs],
        }
    )
    return report.model_copy(update={"submission": changed})


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
