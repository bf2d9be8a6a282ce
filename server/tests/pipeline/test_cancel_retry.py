"""Cancel and retry, from every state."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from wqlab_contracts.celery_names import ADVANCE, APPLY, BUILD, RUN
from wqlab_contracts.enums import JobState, Outcome, SubmissionState
from wqlab_contracts.messages import ApplyResult, BuildResult, RunResult
from wqlab_server.http.problems import ApiProblem
from wqlab_server.jobs.errors import canceled
from wqlab_server.models import Build, Lease
from wqlab_server.submissions import service as submissions

from ..support.lab import SERIES, LabUnderTest, RunSession

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


def test_before_anything_was_claimed(lab: LabUnderTest) -> None:
    submission_id = lab.submit("locks@device")
    cancel(lab, submission_id)
    lab.work(ADVANCE)
    assert_canceled(lab, submission_id)
    assert lab.worker.claim("applies", 1) is None


def test_while_a_worker_applies(lab: LabUnderTest) -> None:
    submission_id = lab.submit("locks@device")
    claim = lab.worker.claim("applies", 1)
    assert claim is not None
    cancel(lab, submission_id)
    lab.work(ADVANCE)
    assert lab.submission(submission_id).state is SubmissionState.APPLYING
    beat = lab.worker.post("applies/1/heartbeat", {"fence": claim["fence"]}, 200).json()
    assert beat["cancel"] is True
    lab.worker.finish("applies", 1, claim["fence"], ApplyResult(outcome=Outcome.CANCELED, failure=canceled()))
    lab.work(ADVANCE)
    assert_canceled(lab, submission_id)


def test_while_builds_wait(lab: LabUnderTest) -> None:
    submission_id = lab.submit("locks@device")
    lab.work(APPLY, ADVANCE)
    cancel(lab, submission_id)
    lab.work(ADVANCE)
    assert_canceled(lab, submission_id)
    with lab.transaction() as session:
        assert set(session.scalars(select(Build.outcome))) == {Outcome.CANCELED}


def test_a_running_build_is_told_and_another_submission_gets_its_own(lab: LabUnderTest) -> None:
    first = lab.submit("locks@device")
    lab.work(APPLY, ADVANCE)
    build_id = next(m.id for m in lab.sent if m.task == BUILD)
    assert build_id is not None
    claim = lab.worker.claim("builds", build_id)
    assert claim is not None
    cancel(lab, first)
    lab.work(ADVANCE)
    second = lab.submit("locks@device")
    lab.work(APPLY, ADVANCE)
    result = BuildResult(outcome=Outcome.CANCELED, failure=canceled())
    lab.worker.finish("builds", build_id, claim["fence"], result)
    lab.until_idle()
    assert_canceled(lab, first)
    assert lab.submission(second).outcome is Outcome.PASSED


def test_a_build_that_others_wait_for_goes_on(lab: LabUnderTest) -> None:
    first, second = lab.submit("locks@device"), lab.submit("locks@device")
    lab.work(APPLY, ADVANCE)
    cancel(lab, first)
    lab.until_idle()
    assert_canceled(lab, first)
    assert lab.submission(second).outcome is Outcome.PASSED


def test_while_a_run_waits_for_a_worker(lab: LabUnderTest) -> None:
    lab.all_good()
    submission_id = lab.submit("locks@single")
    lab.work(APPLY, BUILD, ADVANCE)
    cancel(lab, submission_id)
    lab.work(ADVANCE)
    assert_canceled(lab, submission_id)


def test_while_a_device_measures(lab: LabUnderTest) -> None:
    lab.all_good()
    submission_id = lab.submit("locks@single")
    lab.work(APPLY, BUILD, ADVANCE)
    run = lab.worker.claim_run(lab.runs(submission_id)[0].id)
    assert run is not None
    run.block(run.remaining[0])
    cancel(lab, submission_id)
    lab.work(ADVANCE)
    assert lab.submission(submission_id).outcome is None
    assert run.heartbeat()["cancel"] is True
    run.finish(RunResult(outcome=Outcome.CANCELED, failure=canceled()))
    lab.work(ADVANCE)
    assert_canceled(lab, submission_id)


def test_a_dead_worker_does_not_keep_a_canceled_submission_alive(lab: LabUnderTest) -> None:
    lab.all_good()
    submission_id = lab.submit("locks@single")
    lab.work(APPLY, BUILD, ADVANCE)
    run_id = lab.runs(submission_id)[0].id
    assert lab.worker.claim_run(run_id) is not None
    cancel(lab, submission_id)
    lab.expire("runs", run_id)
    lab.until_idle()
    assert_canceled(lab, submission_id)


def test_a_finished_submission_never_changes(lab: LabUnderTest) -> None:
    submission_id = lab.submit("locks@device")
    lab.until_idle()
    events = len(lab.events(submission_id))
    cancel(lab, submission_id)
    lab.until_idle()
    submission = lab.submission(submission_id)
    assert (submission.outcome, submission.cancel_requested_at) == (Outcome.PASSED, None)
    assert len(lab.events(submission_id)) == events


def test_retry_makes_a_new_submission_and_reuses_its_builds(lab: LabUnderTest) -> None:
    lab.all_good()

    def dies(run: RunSession) -> RunResult:
        raise AssertionError("not reached")

    submission_id = lab.submit("locks@single")
    with pytest.raises(ApiProblem, match="cancel it first"), lab.transaction() as session:
        submissions.retry(session, lab.data, lab.settings, submission_id, "dev")
    lab.work(APPLY, BUILD, ADVANCE)
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


def test_an_idempotency_key_submits_once(lab: LabUnderTest) -> None:
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


def test_queued_jobs_are_not_claimable_once_cancel_was_asked(lab: LabUnderTest) -> None:
    lab.all_good()
    submission_id = lab.submit("locks@single")
    lab.work(APPLY, BUILD, ADVANCE)
    cancel(lab, submission_id)
    lab.work(ADVANCE)
    lab.work(RUN)
    assert lab.worker.runs == []
    assert lab.runs(submission_id)[0].state is JobState.FINISHED


def test_a_run_that_had_passed_is_said_to_be_uncompared(lab: LabUnderTest) -> None:
    submission_id = lab.submit("locks@device", "affinity@device")
    lab.work(APPLY, ADVANCE, BUILD)
    lab.all_good()
    lab.tick()
    lab.worker.run(lab.runs(submission_id)[0].id)
    cancel(lab, submission_id)
    lab.until_idle()
    assert lab.submission(submission_id).outcome is Outcome.CANCELED
    passed = lab.report(submission_id).targets[0]
    assert (passed.outcome, passed.headline) == (
        Outcome.PASSED,
        "not compared: that is done once every run has ended by itself",
    )
