"""Cancel and retry submissions in every state."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from wqlab_contracts.celery_names import ADVANCE
from wqlab_contracts.enums import JobKind, JobState, Outcome, SubmissionState
from wqlab_contracts.messages import ApplyResult, BuildResult, RunResult
from wqlab_server.http.problems import ApiProblem
from wqlab_server.jobs.errors import canceled_failure
from wqlab_server.models import Build, Lease
from wqlab_server.submissions import service as submissions

from ..support.lab import SERIES, LabUnderTest

pytestmark = pytest.mark.integration


def cancel(lab: LabUnderTest, submission_id: int) -> None:
    with lab.transaction() as session:
        submissions.cancel(session, submission_id)


def assert_canceled(lab: LabUnderTest, submission_id: int) -> None:
    submission = lab.submission(submission_id)
    assert (submission.state, submission.outcome, submission.exit_code) == (
        SubmissionState.FINISHED,
        Outcome.CANCELED,
        4,
    )
    assert all(run.outcome is Outcome.CANCELED for run in lab.runs(submission_id))
    with lab.transaction() as session:
        assert (
            session.scalar(select(Lease.run_id).where(Lease.run_id.in_([r.id for r in lab.runs(submission_id)])))
            is None
        )


def test_cancel_ends_an_unclaimed_submission_at_once(lab: LabUnderTest) -> None:
    submission_id = lab.submit("locks@device")
    cancel(lab, submission_id)
    lab.work(ADVANCE)
    assert_canceled(lab, submission_id)
    assert lab.worker.claim(1) is None


def test_cancel_of_a_running_apply_reaches_its_worker(lab: LabUnderTest) -> None:
    submission_id = lab.submit("locks@device")
    claim = lab.worker.claim(1)
    assert claim is not None
    cancel(lab, submission_id)
    lab.work(ADVANCE)
    assert lab.submission(submission_id).state is SubmissionState.APPLYING
    beat = lab.worker.post("jobs/1/heartbeat", {"fence": claim["fence"]}, 200).json()
    assert beat["cancel"] is True
    lab.worker.finish(1, claim["fence"], ApplyResult(outcome=Outcome.CANCELED, failure=canceled_failure()))
    lab.work(ADVANCE)
    assert_canceled(lab, submission_id)


def test_cancel_ends_queued_builds(lab: LabUnderTest) -> None:
    submission_id = lab.submit("locks@device")
    lab.work(JobKind.APPLY, ADVANCE)
    cancel(lab, submission_id)
    lab.work(ADVANCE)
    assert_canceled(lab, submission_id)
    with lab.transaction() as session:
        assert set(session.scalars(select(Build.outcome))) == {Outcome.CANCELED}


def test_canceled_build_is_replaced_for_another_submission(lab: LabUnderTest) -> None:
    first = lab.submit("locks@device")
    lab.work(JobKind.APPLY, ADVANCE)
    build_id = next(m.id for m in lab.sent if m.task == JobKind.BUILD)
    assert build_id is not None
    claim = lab.worker.claim(build_id)
    assert claim is not None
    cancel(lab, first)
    lab.work(ADVANCE)
    second = lab.submit("locks@device")
    lab.work(JobKind.APPLY, ADVANCE)
    result = BuildResult(outcome=Outcome.CANCELED, failure=canceled_failure())
    lab.worker.finish(build_id, claim["fence"], result)
    lab.until_idle()
    assert_canceled(lab, first)
    assert lab.submission(second).outcome is Outcome.PASSED


def test_cancel_keeps_a_build_that_another_submission_uses(lab: LabUnderTest) -> None:
    first, second = lab.submit("locks@device"), lab.submit("locks@device")
    lab.work(JobKind.APPLY, ADVANCE)
    cancel(lab, first)
    lab.until_idle()
    assert_canceled(lab, first)
    assert lab.submission(second).outcome is Outcome.PASSED


def test_cancel_ends_an_offered_run(lab: LabUnderTest) -> None:
    lab.mark_all_good()
    submission_id = lab.submit("locks@single")
    lab.work(JobKind.APPLY, JobKind.BUILD, ADVANCE)
    cancel(lab, submission_id)
    lab.work(ADVANCE)
    assert_canceled(lab, submission_id)


def test_cancel_of_a_running_run_reaches_its_worker(lab: LabUnderTest) -> None:
    lab.mark_all_good()
    submission_id = lab.submit("locks@single")
    lab.work(JobKind.APPLY, JobKind.BUILD, ADVANCE)
    run = lab.worker.claim_run(lab.runs(submission_id)[0].id)
    assert run is not None
    run.send_block(run.remaining[0])
    cancel(lab, submission_id)
    lab.work(ADVANCE)
    assert lab.submission(submission_id).outcome is None
    assert run.heartbeat()["cancel"] is True
    run.finish(RunResult(outcome=Outcome.CANCELED, failure=canceled_failure()))
    lab.work(ADVANCE)
    assert_canceled(lab, submission_id)


def test_canceled_submission_ends_when_its_worker_is_lost(lab: LabUnderTest) -> None:
    lab.mark_all_good()
    submission_id = lab.submit("locks@single")
    lab.work(JobKind.APPLY, JobKind.BUILD, ADVANCE)
    run_id = lab.runs(submission_id)[0].id
    assert lab.worker.claim_run(run_id) is not None
    cancel(lab, submission_id)
    lab.expire(run_id)
    lab.until_idle()
    assert_canceled(lab, submission_id)


def test_cancel_does_not_change_a_finished_submission(lab: LabUnderTest) -> None:
    submission_id = lab.submit("locks@device")
    lab.until_idle()
    events = len(lab.events(submission_id))
    cancel(lab, submission_id)
    submission = lab.finished(submission_id)
    assert (submission.outcome, submission.cancel_requested_at) == (Outcome.PASSED, None)
    assert len(lab.events(submission_id)) == events


def test_retry_creates_a_submission_and_reuses_builds(lab: LabUnderTest) -> None:
    lab.mark_all_good()

    submission_id = lab.submit("locks@single")
    with pytest.raises(ApiProblem, match="cancel it first"), lab.transaction() as session:
        submissions.retry(session, lab.data, lab.settings, submission_id, "dev")
    lab.work(JobKind.APPLY, JobKind.BUILD, ADVANCE)
    cancel(lab, submission_id)
    lab.work(ADVANCE)
    built = len(lab.worker.builds)
    with lab.transaction() as session:
        again = submissions.retry(session, lab.data, lab.settings, submission_id, "other")
    lab.until_idle()
    new = lab.submission(again.id)
    assert (new.outcome, new.retry_of, new.owner) == (Outcome.PASSED, submission_id, "other")
    assert new.request.series == SERIES
    assert len(lab.worker.builds) == built
    assert lab.submission(submission_id).outcome is Outcome.CANCELED


def test_idempotency_key_creates_one_submission(lab: LabUnderTest) -> None:
    request = lab.submission(lab.submit("locks@device")).request
    with lab.transaction() as session:
        one = submissions.create(session, lab.data, lab.settings, request, "ci", idempotency_key="job-7")
    with lab.transaction() as session:
        two = submissions.create(session, lab.data, lab.settings, request, "ci", idempotency_key="job-7")
        other = submissions.create(session, lab.data, lab.settings, request, "dev", idempotency_key="job-7")
    assert one.id == two.id != other.id
    changed = request.model_copy(update={"priority": 99})
    with pytest.raises(ApiProblem, match="another request"), lab.transaction() as session:
        submissions.create(session, lab.data, lab.settings, changed, "ci", idempotency_key="job-7")


def test_canceled_run_cannot_be_claimed(lab: LabUnderTest) -> None:
    lab.mark_all_good()
    submission_id = lab.submit("locks@single")
    lab.work(JobKind.APPLY, JobKind.BUILD, ADVANCE)
    cancel(lab, submission_id)
    lab.work(ADVANCE)
    lab.work(JobKind.RUN)
    assert lab.worker.runs == []
    assert lab.runs(submission_id)[0].state is JobState.FINISHED


def test_report_of_a_canceled_submission_marks_runs_uncompared(lab: LabUnderTest) -> None:
    submission_id = lab.submit("locks@device", "affinity@device")
    lab.work(JobKind.APPLY, ADVANCE, JobKind.BUILD)
    lab.mark_all_good()
    lab.tick()
    lab.worker.run(lab.runs(submission_id)[0].id)
    cancel(lab, submission_id)
    assert lab.finished(submission_id).outcome is Outcome.CANCELED
    passed = lab.report(submission_id).targets[0]
    assert (passed.outcome, passed.headline) == (
        Outcome.PASSED,
        "not compared: figures are compared once every run has ended without cancellation",
    )
