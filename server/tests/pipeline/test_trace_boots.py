"""Traced boots: ordered when a primary metric differs, compared for the report, and never part of the verdict."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from wqlab_contracts import traced_counts
from wqlab_contracts.enums import Arm, ArtifactKind, ErrorKind, JobState, Outcome, RunPurpose, SubmissionState, Verdict
from wqlab_contracts.messages import BlockFinished, BootKey, RunResult
from wqlab_contracts.traced_counts import Row, TracedTopic
from wqlab_report.writers.html import render_html
from wqlab_report.writers.markdown import render_markdown
from wqlab_report.writers.text import LINES, render_text
from wqlab_server.settings import Settings

from ..support.lab import NOW, LabUnderTest, RunSession, failed, passing_run
from ..support.scripted_worker import locks

pytestmark = pytest.mark.integration


@pytest.fixture
def tracing(settings: Settings, request: pytest.FixtureRequest) -> LabUnderTest:
    """A lab whose plans can be traced: their files are there before the lab reads them."""
    for plan in ("locks", "affinity"):
        (settings.data_dir / f"testplans/{plan}/tracer.sh").write_text("#!/bin/sh\n")
    lab: LabUnderTest = request.getfixturevalue("lab")
    lab.mark_all_good()
    lab.worker.on_run = run_with_tables(items={Arm.BASELINE: 5000, Arm.CANDIDATE: 1000})
    return lab


def run_with_tables(items: dict[Arm, int]) -> Callable[[RunSession], RunResult]:
    """Return a handler of runs that uploads a table for each traced boot."""

    def handle(run: RunSession) -> RunResult:
        if run.job.purpose is not RunPurpose.TRACE:
            return passing_run(run)
        lab_worker = run.worker
        lab_worker._fence = (run.job.run_id, run.fence)
        for plan in run.remaining:
            for position, arm in enumerate(plan.arms):
                key = BootKey(block=plan.block, position=position, arm=arm, attempt=plan.first_attempt)
                run.send(*(event for event in run.boot_events(key) if event.type != "samples"))
                table = [
                    Row(scenario=scenario.name, setting=setting, topic=topic, name=name, count=count)
                    for scenario in run.job.plan.scenarios
                    for setting in run.job.profile.settings
                    for topic, name, count in (
                        (TracedTopic.OPERATIONS, "fsync", 1000),
                        (TracedTopic.QUEUED, "xfs_end_io", items[arm] * (2 if setting == "scope=cpu" else 1)),
                    )
                ]
                text = traced_counts.write(table)
                lab_worker.upload(ArtifactKind.TRACED_COUNTS, traced_counts.file_name(key), text.encode())
            run.send(BlockFinished(at=NOW, block=plan.block, attempt=plan.first_attempt))
        return RunResult(outcome=Outcome.PASSED)

    return handle


def traced_sessions(lab: LabUnderTest) -> list[RunSession]:
    return [each for each in lab.worker.runs if each.job.purpose is RunPurpose.TRACE]


def test_a_difference_orders_traced_boots_on_the_same_device(tracing: LabUnderTest) -> None:
    submission_id = tracing.submit("locks@device")
    submission = tracing.finished(submission_id)
    assert (submission.outcome, submission.exit_code) == (Outcome.PASSED, 0)
    measured, traced = tracing.runs(submission_id)
    assert (measured.purpose, traced.purpose) == (RunPurpose.MEASURE, RunPurpose.TRACE)
    assert (traced.state, traced.outcome, traced.boots_done) == (JobState.FINISHED, Outcome.PASSED, 12)
    assert traced.wanted_device == traced.device_name == measured.device_name
    assert (traced.verdict, measured.verdict) == (None, Verdict.IMPROVEMENT)
    (session,) = traced_sessions(tracing)
    assert session.job.profile.repetitions.untraced == 1
    (target,) = tracing.report(submission_id).targets
    assert target.blocks_completed == 2
    assert len({value.block for value in target.values}) == 2
    assert target.explanation is not None
    (explained,) = target.explanation.comparisons
    assert (target.explanation.run_id, explained.metric, explained.boots) == (traced.id, "locks_per_flush", 6)
    assert explained.sentences == ["work items of xfs_end_io: 5 -> 1 per fsync"]


def test_every_format_has_the_differences_and_says_that_they_are_no_causes(tracing: LabUnderTest) -> None:
    submission_id = tracing.submit("locks@device")
    tracing.finished(submission_id)
    report = tracing.report(submission_id)
    for render in (render_text, render_markdown, render_html):
        text = " ".join(render(report).replace("\\", "").replace("-&gt;", "->").split())
        assert "work items of xfs_end_io: 5 -> 1 per fsync" in text
        assert "not its causes" in text
    assert len(render_text(report).splitlines()) <= LINES


def test_traced_boots_are_listed_apart_while_they_run(tracing: LabUnderTest) -> None:
    def wait_in_traced(run: RunSession) -> RunResult | None:
        return None if run.job.purpose is RunPurpose.TRACE else passing_run(run)

    tracing.worker.on_run = wait_in_traced
    submission_id = tracing.submit("locks@device")
    tracing.until_idle()
    measured, traced = tracing.runs(submission_id)
    headers = {"Authorization": f"Bearer {tracing.token}"}
    for resource in ("", "/steps"):
        answer = tracing.client.get(f"/api/v1/submissions/{submission_id}{resource}", headers=headers)
        view = answer.raise_for_status().json()
        assert [each["id"] for each in view["runs"]] == [measured.id]
        assert [each["id"] for each in view["traced_runs"]] == [traced.id]
        assert (view["eta"]["done_boots"], view["eta"]["total_boots"]) == (4, 16), "twelve traced boots are left"


def test_no_difference_orders_no_boots(tracing: LabUnderTest) -> None:
    tracing.worker.value = lambda arm, setting, metric, block: 100.0
    submission_id = tracing.submit("locks@device")
    tracing.finished(submission_id)
    assert [run.purpose for run in tracing.runs(submission_id)] == [RunPurpose.MEASURE]
    assert tracing.report(submission_id).targets[0].explanation is None


def test_a_submission_can_do_without(tracing: LabUnderTest) -> None:
    submission_id = tracing.submit("locks@device", trace=False)
    tracing.finished(submission_id)
    assert len(tracing.runs(submission_id)) == 1
    explanation = tracing.report(submission_id).targets[0].explanation
    assert explanation is not None
    assert explanation.reason == "the submission asks for no traced boots"


def test_a_plan_without_a_tracer_says_so(lab: LabUnderTest) -> None:
    submission_id = lab.submit("locks@device")
    lab.finished(submission_id)
    assert len(lab.runs(submission_id)) == 1
    assert "What else differs: not recorded" in render_text(lab.report(submission_id))


@pytest.mark.parametrize("kind", [ErrorKind.KERNEL, ErrorKind.INFRASTRUCTURE])
def test_failed_traced_boots_leave_the_verdict(tracing: LabUnderTest, kind: ErrorKind) -> None:
    def fail_traced(run: RunSession) -> RunResult:
        if run.job.purpose is not RunPurpose.TRACE:
            return passing_run(run)
        failure = failed(kind, "the tracer broke it")
        run.send_failed_boot(run.remaining[0], run.remaining[0].arms[0], failure)
        return RunResult(outcome=Outcome.FAILED, failure=failure)

    tracing.worker.on_run = fail_traced
    submission_id = tracing.submit("locks@device")
    submission = tracing.finished(submission_id)
    assert (submission.outcome, submission.exit_code, submission.failure) == (Outcome.PASSED, 0, None)
    (target,) = tracing.report(submission_id).targets
    assert target.verdict is Verdict.IMPROVEMENT
    assert target.findings == []
    assert target.discarded == {}
    assert target.explanation is not None
    assert target.explanation.reason == "the traced boots failed: the tracer broke it"
    assert "What else differs: not recorded: the traced boots failed" in render_text(tracing.report(submission_id))


def test_settings_are_compared_within_the_same_traced_boots(tracing: LabUnderTest) -> None:
    shares = {"scope=system": (25.0, 3), "scope=cache": (83.0, 5), "scope=cpu": (97.0, 2)}
    tracing.worker.value = lambda arm, setting, metric, block: shares[setting][0] + block * shares[setting][1] % 7 / 10
    submission_id = tracing.submit("affinity@device", series=None, blocks=8)
    tracing.finished(submission_id)
    (session,) = traced_sessions(tracing)
    assert {arm for plan in session.job.blocks for arm in plan.arms} == {Arm.BASELINE}
    (target,) = tracing.report(submission_id).targets
    assert target.explanation is not None
    found = {each.setting: (each.reference, each.sentences) for each in target.explanation.comparisons}
    assert found["scope=cpu"] == ("scope=system", ["work items of xfs_end_io: 5 -> 10 per fsync"])
    assert found["scope=cache"] == ("scope=system", [])


def test_lists_and_the_page_of_a_submission_have_measured_runs_only(tracing: LabUnderTest) -> None:
    submission_id = tracing.submit("locks@device")
    tracing.finished(submission_id)
    headers = {"Authorization": f"Bearer {tracing.token}"}
    view = tracing.client.get(f"/api/v1/submissions/{submission_id}", headers=headers).json()
    steps = tracing.client.get(f"/api/v1/submissions/{submission_id}/steps", headers=headers).json()
    assert [len(each) for each in (view["runs"], view["targets"], steps["runs"])] == [1, 1, 1]


def test_cancellation_ends_traced_boots(tracing: LabUnderTest) -> None:
    tracing.worker.on_run = lambda run: None if run.job.purpose is RunPurpose.TRACE else passing_run(run)
    submission_id = tracing.submit("locks@device")
    tracing.until_idle()
    assert tracing.submission(submission_id).state is SubmissionState.RUNNING
    tracing.post(f"submissions/{submission_id}/cancel")
    (session,) = traced_sessions(tracing)
    session.finish(RunResult(outcome=Outcome.CANCELED, failure=failed(ErrorKind.CANCELED, "canceled")))
    assert tracing.finished(submission_id).outcome is Outcome.CANCELED


def test_locks_of_the_scripted_worker_differ() -> None:
    """The tests above need a primary metric that differs."""
    assert locks(Arm.BASELINE, "", "locks_per_flush", 0) > locks(Arm.CANDIDATE, "", "locks_per_flush", 0)
