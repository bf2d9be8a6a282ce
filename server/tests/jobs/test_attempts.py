"""The list of failed attempts of a submission."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from wqlab_contracts.enums import Arm, ErrorKind, Outcome
from wqlab_contracts.messages import ApplyResult, RunResult
from wqlab_server.jobs.attempts import failed_job_attempts, failed_run_attempts
from wqlab_server.models import BlockAttempt, Boot, Run, RunAttempt

from ..support.lab import LabUnderTest, RunSession, failed, infrastructure_result, passing_apply, passing_run, results

pytestmark = pytest.mark.integration


def test_retried_apply_is_listed_before_the_final_failure(lab: LabUnderTest) -> None:
    first = failed(ErrorKind.INFRASTRUCTURE, "the mirror does not answer")
    last = failed(ErrorKind.USER, "patch 1/1 does not apply")
    answers = [ApplyResult(outcome=Outcome.FAILED, failure=each) for each in (last, first)]
    lab.worker.on_apply = lambda job, worker: answers.pop() if job.series else passing_apply(job, worker)
    submission_id = lab.submit("locks@single")
    lab.finished(submission_id)
    with lab.transaction() as session:
        attempts = failed_job_attempts(session, submission_id)
    assert [(each.what, each.attempt, each.failure) for each in attempts] == [("apply", 1, first), ("apply", 2, last)]


def test_boot_whose_block_gives_the_failure_is_listed_once(lab: LabUnderTest) -> None:
    oops = failed(ErrorKind.KERNEL, "oops: NULL pointer")

    def fail_one_boot(run: RunSession) -> RunResult:
        run.send_failed_boot(run.remaining[0], Arm.CANDIDATE, oops)
        return infrastructure_result()

    lab.mark_all_good()
    lab.worker.on_run = results(fail_one_boot, passing_run)
    submission_id = lab.submit("locks@single")
    lab.until_idle()
    run_id = lab.runs(submission_id)[0].id
    with lab.transaction() as session:
        attempts = failed_run_attempts(
            session.get_one(Run, run_id),
            session.scalars(select(Boot).where(Boot.run_id == run_id)).all(),
            session.scalars(select(BlockAttempt).where(BlockAttempt.run_id == run_id)).all(),
            session.scalars(select(RunAttempt).where(RunAttempt.run_id == run_id)).all(),
        )
    summaries = [each.failure.summary for each in attempts]
    assert summaries.count("oops: NULL pointer") == 1
    assert summaries.count("power switch does not answer") == 1
