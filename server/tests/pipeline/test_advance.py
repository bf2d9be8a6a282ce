"""Series and settings studies from the request to the verdicts, through the real application."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from wqlab_contracts.enums import PAIR, Arm, EventKind, Outcome, Question, SubmissionState, Verdict
from wqlab_contracts.messages import BuildJob, BuildResult
from wqlab_report.writers.html import render_html
from wqlab_report.writers.junit import render_junit
from wqlab_report.writers.markdown import render_markdown
from wqlab_report.writers.text import render_text
from wqlab_server.models import Boot, BootValue, Comparison, RunAttempt, SubmissionBuild

from ..support.lab import LabUnderTest, ScriptedWorker, passing_build

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("good_devices")]


def test_series_is_applied_built_measured_and_compared(lab: LabUnderTest) -> None:
    submission_id = lab.submit("locks@device")
    submission = lab.finished(submission_id)
    assert (submission.state, submission.outcome, submission.exit_code) == (SubmissionState.FINISHED, Outcome.PASSED, 0)
    assert submission.title == "workqueue: take fewer locks"
    with lab.transaction() as session:
        verdicts = {
            row.data.metric: (row.verdict, row.data.effect, row.data.exact)
            for row in session.scalars(select(Comparison))
        }
        assert verdicts["locks_per_flush"] == (Verdict.IMPROVEMENT, -28.0, True)
        assert verdicts["throughput"] == (Verdict.NO_EVIDENCE, None, False)
        boots = session.scalars(select(Boot).where(Boot.run_id == lab.runs(submission_id)[0].id)).all()
        assert len(boots) == 4
        assert all(boot.valid and boot.kernel_boot_id and boot.token and boot.build_id_gnu for boot in boots)
        values = session.scalars(select(BootValue).where(BootValue.metric == "locks_per_flush")).all()
        assert sorted(value.value for value in values) == [5.0, 5.0, 33.0, 33.0]
    assert lab.runs(submission_id)[0].boots_done == 4


def identical_build(job: BuildJob, worker: ScriptedWorker) -> BuildResult:
    """A build whose kernel does not depend on the source: a series that changes a comment."""
    passed = passing_build(job, worker)
    return passed.model_copy(update={"content_sha256": "c" * 64})


def test_byte_identical_kernels_use_no_device(lab: LabUnderTest) -> None:
    lab.worker.on_build = identical_build
    submission_id = lab.submit("locks@device")
    submission = lab.finished(submission_id)
    assert (submission.outcome, submission.exit_code) == (Outcome.PASSED, 0)
    with lab.transaction() as session:
        run_id = lab.runs(submission_id)[0].id
        assert session.scalars(select(Boot).where(Boot.run_id == run_id)).all() == []
        assert session.scalars(select(RunAttempt).where(RunAttempt.run_id == run_id)).all() == []
    report = lab.report(submission_id)
    (target,) = report.targets
    assert (target.byte_identical, target.verdict) == (True, Verdict.EQUIVALENT)
    assert target.headline == "the kernels are byte-identical: nothing to measure"
    assert target.comparisons == []
    for render in (render_text, render_markdown, render_html):
        assert "byte-identical" in render(report)
        assert "0 of" not in render(report), "no block was to be completed"
    assert '<skipped message="the kernels are byte-identical: nothing to measure"' in render_junit(report)


def test_byte_identical_kernels_are_measured_if_the_submitter_asks(lab: LabUnderTest) -> None:
    lab.worker.on_build = identical_build
    submission_id = lab.submit("locks@device", force=True)
    assert lab.finished(submission_id).outcome is Outcome.PASSED
    (target,) = lab.report(submission_id).targets
    assert (target.byte_identical, target.blocks_completed) == (False, 2)


def test_build_without_a_digest_is_equal_to_no_other(lab: LabUnderTest) -> None:
    submission_id = lab.submit("locks@device")
    assert lab.finished(submission_id).outcome is Outcome.PASSED
    assert lab.report(submission_id).targets[0].blocks_completed == 2


def test_half_of_the_blocks_boot_the_baseline_first(lab: LabUnderTest) -> None:
    submission_id = lab.submit("locks@device", blocks=10)
    blocks = lab.runs(submission_id)[0].blocks
    assert sorted(arms[0] for arms in blocks) == [Arm.BASELINE] * 5 + [Arm.CANDIDATE] * 5
    assert all(set(arms) == set(PAIR) for arms in blocks)


def test_settings_study_boots_only_the_baseline(lab: LabUnderTest) -> None:
    submission_id = lab.submit("affinity@device", series=None)
    assert lab.finished(submission_id).exit_code == 0
    assert lab.runs(submission_id)[0].blocks == [[Arm.BASELINE]] * 3
    with lab.transaction() as session:
        rows = session.scalars(select(Comparison)).all()
        assert {(row.question, row.data.reference) for row in rows} == {(Question.SETTING, "scope=system")}
        assert {row.data.setting for row in rows} == {"scope=cache", "scope=cpu"}
        assert {row.data.baseline.n for row in rows if row.data.baseline} == {3}


def test_debug_kernel_without_findings_gives_no_evidence(lab: LabUnderTest) -> None:
    submission_id = lab.submit("locks@device", recipe="debug")
    assert lab.finished(submission_id).exit_code == 0
    (target,) = lab.report(submission_id).targets
    assert (target.verdict, target.comparisons) == (Verdict.NO_EVIDENCE, [])
    assert target.headline == (
        "no problem found in 2 boots of the baseline and 2 boots of the candidate; the recipe debug gives no figures"
    )


def test_events_have_no_gaps_and_end_with_the_outcome(lab: LabUnderTest) -> None:
    submission_id = lab.submit("locks@device")
    lab.until_idle()

    events = lab.events(submission_id)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert [event.kind for event in events[-2:]] == [EventKind.REPORT_READY, EventKind.SUBMISSION_STATE]
    assert events[-1].data == {"state": "finished", "outcome": "passed", "exit_code": 0}
    states = [e.data["state"] for e in events if e.kind is EventKind.SUBMISSION_STATE]
    assert states == ["applying", "building", "running", "comparing", "finished"]


def test_equal_content_is_built_once(lab: LabUnderTest) -> None:
    lab.sql("UPDATE devices SET health = 'unknown'")
    first = lab.submit("locks@device")
    second = lab.submit("locks@device", "affinity@single")
    lab.until_idle()

    keys = [job.key for job in lab.worker.builds]
    assert len(keys) == len(set(keys)) == 2  # one baseline (also used for the health check), one candidate
    with lab.transaction() as session:
        links = session.scalars(select(SubmissionBuild)).all()
        assert {link.submission_id for link in links} == {first, second}
        assert len({link.build_id for link in links}) == 2
    assert lab.submission(second).outcome is Outcome.PASSED


def test_only_builds_of_operator_commits_are_trusted(lab: LabUnderTest) -> None:
    lab.submit("locks@device")
    lab.until_idle()
    trusted = {job.source.bundle is None: job.trusted for job in lab.worker.builds}
    assert trusted == {True: True, False: False}


def test_edited_data_folder_does_not_change_a_submission(lab: LabUnderTest) -> None:
    submission_id = lab.submit("locks@device")
    script = lab.settings.data_dir / "testplans/locks/run.sh"
    script.write_text("#!/bin/sh\nexit 1\n")
    lab.until_idle()

    run = next(run for run in lab.worker.runs if run.job.purpose == "measure")
    assert run.job.files["run.sh"] == "#!/bin/sh\n"
    assert lab.submission(submission_id).outcome is Outcome.PASSED


def test_primary_regression_sets_exit_code_1(lab: LabUnderTest) -> None:
    lab.worker.value = lambda arm, _setting, _metric, _block: 10.0 if arm is Arm.BASELINE else 30.0
    submission_id = lab.submit("locks@device")
    submission = lab.finished(submission_id)
    assert (submission.outcome, submission.exit_code) == (Outcome.PASSED, 1)
