"""Looks at runs: stop early or go on, with the families of the submission, failures and cancellation."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from wqlab_contracts.api.steps import BlockState, SubmissionSteps
from wqlab_contracts.enums import Arm, EventKind, JobState, Outcome, SubmissionState, Verdict
from wqlab_contracts.messages import RunResult
from wqlab_contracts.messages.looks import LookReason
from wqlab_report.writers.html import render_html
from wqlab_report.writers.markdown import render_markdown
from wqlab_report.writers.text import render_text

from ..support.lab import LabUnderTest, RunSession, infrastructure_result, passing_run

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("good_devices")]

LOOKS = [6, 10, 16]
WITH_COUNTS = [2, *LOOKS]
"""On emulated devices the primary metric is counted, so that two blocks may be a result."""
NOISE = [0.4, -0.7, 1.1, -0.2, 0.6, -1.0, 0.1, 0.9, -0.5, 0.3, -0.8, 0.7, 1.2, -0.4, -0.1, 0.5]


def locks(effect: float, spread: float) -> Callable[[Arm, str, str, int], float]:
    """Return values of a metric around 100 with the candidate `effect` higher; blocks differ by `spread`."""

    def value(arm: Arm, setting: str, metric: str, block: int) -> float:
        return 100.25 + block + (effect + spread * NOISE[block % len(NOISE)] if arm is Arm.CANDIDATE else 0.0)

    return value


def steps(lab: LabUnderTest, submission_id: int) -> SubmissionSteps:
    answer = lab.client.get(
        f"/api/v1/submissions/{submission_id}/steps", headers={"Authorization": f"Bearer {lab.token}"}
    )
    return SubmissionSteps.model_validate_json(answer.raise_for_status().content)


def test_equal_counts_stop_a_run_after_two_blocks(lab: LabUnderTest) -> None:
    submission_id = lab.submit("locks@device", looks=LOOKS)
    assert lab.finished(submission_id).outcome is Outcome.PASSED
    (run,) = lab.runs(submission_id)
    assert (run.looks, len(run.blocks), run.boots_done) == (WITH_COUNTS, 16, 4)
    (look,) = run.looked
    assert (look.blocks, look.reason, look.text) == (2, LookReason.EFFECT, "effect found")
    assert (run.verdict, run.boots_planned) == (Verdict.IMPROVEMENT, 4)
    (step,) = steps(lab, submission_id).runs
    assert [block.state for block in step.blocks] == [BlockState.COMPLETED] * 2 + [BlockState.NOT_NEEDED] * 14
    assert (step.done_boots, step.total_boots) == (4, 4)
    report = lab.report(submission_id)
    for render in (render_text, render_markdown, render_html):
        assert "stopped at 2 of 16 blocks: effect found" in " ".join(render(report).split())
    assert "Each look has a share" in report.method


def test_large_effect_stops_a_run_after_six_blocks(lab: LabUnderTest) -> None:
    lab.worker.value = locks(-8, 1)
    submission_id = lab.submit("locks@device", looks=LOOKS)
    assert lab.finished(submission_id).outcome is Outcome.PASSED
    (run,) = lab.runs(submission_id)
    assert [(look.blocks, look.reason) for look in run.looked] == [(2, LookReason.OPEN), (6, LookReason.EFFECT)]
    assert (run.attempts, run.verdict) == (2, Verdict.IMPROVEMENT)
    (session,) = [each for each in lab.worker.runs if len(each.completed) == 2 and each.job.run_id == run.id]
    assert [plan.block for plan in session.remaining] == [2, 3, 4, 5], "only the blocks up to the next look"
    states = [event.data["state"] for event in lab.events(submission_id) if event.kind is EventKind.RUN_STATE]
    assert states.count(JobState.FINISHED) == 1
    looks = [event.data["look"] for event in lab.events(submission_id) if "look" in event.data]
    assert looks[-1]["text"] == "effect found"


def test_undecided_run_measures_all_blocks(lab: LabUnderTest) -> None:
    lab.worker.value = locks(-0.45, 1.2)
    submission_id = lab.submit("locks@device", looks=LOOKS)
    assert lab.finished(submission_id).outcome is Outcome.PASSED
    (run,) = lab.runs(submission_id)
    assert [look.blocks for look in run.looked] == WITH_COUNTS
    assert run.looked[-1].stops
    assert run.boots_done == 32
    assert all(step.state is BlockState.COMPLETED for step in steps(lab, submission_id).runs[0].blocks)


def test_run_that_would_not_be_decided_is_given_up(lab: LabUnderTest) -> None:
    lab.worker.value = locks(0.5, 40)
    submission_id = lab.submit("locks@device", looks=LOOKS)
    lab.finished(submission_id)
    (run,) = lab.runs(submission_id)
    assert [(look.blocks, look.reason) for look in run.looked] == [(2, LookReason.OPEN), (6, LookReason.FUTILE)]
    assert run.verdict is Verdict.INCONCLUSIVE


@pytest.mark.nightly
def test_fixed_size_takes_no_looks(lab: LabUnderTest) -> None:
    lab.worker.value = locks(-8, 1)
    submission_id = lab.submit("locks@device", blocks=8)
    lab.finished(submission_id)
    (run,) = lab.runs(submission_id)
    assert (run.looks, run.looked, run.boots_done, run.attempts) == ([], [], 16, 1)


def test_half_of_the_blocks_between_looks_boot_the_baseline_first(lab: LabUnderTest) -> None:
    (run,) = lab.runs(lab.submit("locks@device", looks=LOOKS))
    for start, end in ((0, 2), (2, 6), (6, 10), (10, 16)):
        first = [block[0] for block in run.blocks[start:end]]
        assert first.count(Arm.BASELINE) == (end - start) / 2


def test_lost_attempt_does_not_count_as_a_look(lab: LabUnderTest) -> None:
    """A failure of the lab in the middle is retried; the looks are those that were planned."""
    lab.worker.value = locks(-8, 1)
    failures = iter([True])

    def fail_once(run: RunSession) -> RunResult:
        if len(run.completed) == 2 and next(failures, False):
            run.send_block(run.remaining[0])
            return infrastructure_result()
        return passing_run(run)

    lab.worker.on_run = fail_once
    submission_id = lab.submit("locks@device", looks=LOOKS)
    assert lab.finished(submission_id).outcome is Outcome.PASSED
    (run,) = lab.runs(submission_id)
    assert [look.blocks for look in run.looked] == [2, 6]
    assert run.attempts == 3


def test_failure_after_the_due_blocks_is_a_look(lab: LabUnderTest) -> None:
    lab.worker.value = locks(-8, 1)

    def fail_at_the_end(run: RunSession) -> RunResult:
        passing_run(run)
        return infrastructure_result()

    lab.worker.on_run = fail_at_the_end
    submission_id = lab.submit("locks@device", looks=LOOKS)
    assert lab.finished(submission_id).outcome is Outcome.PASSED
    assert [look.blocks for look in lab.runs(submission_id)[0].looked] == [2, 6]


@pytest.mark.nightly
def test_looks_do_not_use_up_the_attempts_of_a_run(lab: LabUnderTest) -> None:
    lab.worker.value = locks(-0.45, 1.2)

    def fail_in_each_last_stage(run: RunSession) -> RunResult:
        return infrastructure_result() if len(run.completed) == 10 else passing_run(run)

    lab.worker.on_run = fail_in_each_last_stage
    submission_id = lab.submit("locks@device", looks=LOOKS)
    assert lab.finished(submission_id).outcome is Outcome.FAILED
    (run,) = lab.runs(submission_id)
    assert run.attempts == 3 + lab.settings.run_attempts


def test_canceled_submission_gets_no_further_blocks(lab: LabUnderTest) -> None:
    lab.worker.value = locks(-0.45, 1.2)
    submission_id = lab.submit("locks@device", looks=LOOKS)

    def cancel_while_running(run: RunSession) -> RunResult:
        lab.post(f"submissions/{submission_id}/cancel")
        return passing_run(run)

    lab.worker.on_run = cancel_while_running
    submission = lab.finished(submission_id)
    assert (submission.state, submission.outcome) == (SubmissionState.FINISHED, Outcome.CANCELED)
    assert lab.runs(submission_id)[0].boots_done == 4


def test_other_targets_count_in_the_family_before_they_have_figures(lab: LabUnderTest) -> None:
    """The first run to look must leave room for the claims of the others."""
    lab.worker.value = locks(-3.3, 1)
    submission_id = lab.submit("locks@device", "locks@single", looks=LOOKS)
    lab.finished(submission_id)
    for run in lab.runs(submission_id):
        assert run.looked[-1].stops
    cells = [cell for target in lab.report(submission_id).targets for cell in target.comparisons]
    judged = [cell for cell in cells if cell.metric == "locks_per_flush"]
    assert all(cell.p_adjusted is not None and cell.p is not None and cell.p_adjusted >= cell.p for cell in judged)
    assert {cell.verdict for cell in judged} == {Verdict.IMPROVEMENT}


def test_settings_study_is_looked_at_too(lab: LabUnderTest) -> None:
    shares = {"scope=system": 25.0, "scope=cache": 83.0, "scope=cpu": 95.0}
    lab.worker.value = lambda _, setting, __, block: shares[setting] + NOISE[block % len(NOISE)] * len(setting) / 10
    submission_id = lab.submit("affinity@device", series=None, looks=LOOKS)
    assert lab.finished(submission_id).outcome is Outcome.PASSED
    (run,) = lab.runs(submission_id)
    assert run.looked[-1].stops
    assert run.looked[-1].reason is LookReason.EFFECT


@pytest.mark.parametrize(
    ("more", "detail"),
    [
        ({"looks": [10, 6]}, "ascending"),
        ({"looks": [6, 10], "blocks": 8}, "either looks or a fixed number of blocks"),
    ],
)
def test_mistakes_in_looks(lab: LabUnderTest, more: dict[str, object], detail: str) -> None:
    body = {"series": None, "tree": "lab-tree", "targets": [{"plan": "locks", "device_type": "device"}], **more}
    answer = lab.client.post("/api/v1/submissions", json=body, headers={"Authorization": f"Bearer {lab.token}"})
    assert answer.status_code == 422
    details = {error["pointer"]: error["detail"] for error in answer.json()["errors"]}
    assert detail in details["/looks"]
