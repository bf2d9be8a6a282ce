"""A finished submission has a stored report, however it ended."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select

from wqlab_contracts.api.report import Report
from wqlab_contracts.enums import EventKind, Outcome, SubmissionState, Verdict
from wqlab_server.models import Event, KeptReport
from wqlab_server.reports import stored_report
from wqlab_server.submissions import service as submissions

from ..support.lab import LabUnderTest

pytestmark = pytest.mark.integration


def kept(lab: LabUnderTest, submission_id: int) -> Report | None:
    with lab.transaction() as session:
        row = session.get(KeptReport, submission_id)
        return None if row is None else Report.model_validate_json(row.document)


def test_report_is_stored_at_the_end_and_equals_the_api_report(lab: LabUnderTest) -> None:
    submission_id = lab.submit("locks@device")
    assert kept(lab, submission_id) is None
    lab.until_idle()
    report = kept(lab, submission_id)
    assert report is not None
    assert report.submission.state is SubmissionState.FINISHED
    assert report.submission.finished_at is not None
    assert report.submission.exit_code == 0
    assert report.submission.verdicts == {Verdict.IMPROVEMENT: 1}
    assert report.targets[0].values
    assert report.method
    assert report == lab.report(submission_id)


def test_canceled_submission_has_a_stored_report(lab: LabUnderTest) -> None:
    submission_id = lab.submit("locks@device")
    with lab.transaction() as session:
        submissions.cancel(session, submission_id)
    lab.until_idle()
    report = kept(lab, submission_id)
    assert report is not None
    assert report.submission.outcome is Outcome.CANCELED


def test_error_in_the_report_does_not_prevent_the_end(lab: LabUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise ZeroDivisionError("a bug in the report")

    submission_id = lab.submit("locks@device")
    with monkeypatch.context() as patched:
        patched.setattr(stored_report, "assemble", broken)
        assert lab.finished(submission_id).outcome is Outcome.PASSED
    assert kept(lab, submission_id) is None
    with lab.transaction() as session:
        kinds = session.scalars(select(Event.kind).where(Event.submission_id == submission_id)).all()
    assert EventKind.REPORT_READY in kinds
    assert lab.report(submission_id) == kept(lab, submission_id)
