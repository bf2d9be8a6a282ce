"""Verdicts by the changed lines that ran: a series in dead code is not exercised, a series that ran is judged."""

from __future__ import annotations

import pytest

from wqlab_contracts.enums import Arm, ExitCode, Outcome, Ran, Verdict
from wqlab_contracts.messages import (
    ApplyJob,
    ApplyResult,
    BlockFinished,
    BootKey,
    BootVerified,
    ChangedLines,
    RanLines,
    RunResult,
)

from ..support.lab import NOW, LabUnderTest, RunSession
from ..support.scripted_worker import ScriptedWorker, passing_apply

pytestmark = pytest.mark.integration
FILE = "kernel/workqueue.c"
DIFF = f"--- a/{FILE}\n+++ b/{FILE}\n@@ -10,1 +10,2 @@\n-a\n+b\n+c\n"
CHANGED = [
    ChangedLines(file=FILE, function="f", arm=Arm.BASELINE, first=10, last=10),
    ChangedLines(file=FILE, function="f", arm=Arm.CANDIDATE, first=10, last=11),
]


def changing(job: ApplyJob, worker: ScriptedWorker) -> ApplyResult:
    return passing_apply(job, worker).model_copy(update={"changed": CHANGED, "touched": ["f"], "diff": DIFF})


def submit(lab: LabUnderTest, ran: dict[Arm, Ran]) -> int:
    """Measure a series. `ran`: kernel -> state of the changed lines in its boots; without it they report no lines."""

    def run_boots(run: RunSession) -> RunResult:
        for plan in run.remaining:
            for position, arm in enumerate(plan.arms):
                key = BootKey(block=plan.block, position=position, arm=arm, attempt=plan.first_attempt)
                own = [line for each in CHANGED if each.arm is arm for line in range(each.first, each.last + 1)]
                lines = [RanLines(file=FILE, function="f", arm=arm, ran=ran[arm], lines=own)] if arm in ran else []
                run.send(*(
                    event.model_copy(update={"ran": lines}) if isinstance(event, BootVerified) else event
                    for event in run.boot_events(key)
                ))  # fmt: skip
            run.send(BlockFinished(at=NOW, block=plan.block, attempt=plan.first_attempt))
        return RunResult(outcome=Outcome.PASSED)

    lab.worker.on_apply, lab.worker.on_run = changing, run_boots
    submission_id = lab.submit("locks@single")
    lab.until_idle()
    return submission_id


@pytest.mark.parametrize("candidate", [5.0, 33.0, 60.0])
def test_series_that_did_not_run_is_not_exercised(lab: LabUnderTest, candidate: float) -> None:
    lab.worker.value = lambda arm, *_: 33.0 if arm is Arm.BASELINE else candidate
    submission_id = submit(lab, dict.fromkeys((Arm.BASELINE, Arm.CANDIDATE), Ran.NEVER))
    (target,) = lab.report(submission_id).targets
    assert target.verdict is Verdict.NOT_EXERCISED
    assert "none of the 3 changed lines with code ran" in target.headline
    assert target.ran is not None
    assert (target.ran.never, target.ran.measured) == (3, 0)
    assert lab.submission(submission_id).exit_code == ExitCode.DONE


@pytest.mark.parametrize("ran", [{Arm.BASELINE: Ran.MEASURED, Arm.CANDIDATE: Ran.NEVER}, {Arm.CANDIDATE: Ran.NEVER}])
def test_series_is_judged_if_a_line_ran_or_may_have_run(lab: LabUnderTest, ran: dict[Arm, Ran]) -> None:
    lab.worker.value = lambda *_: 33.0
    report = lab.report(submit(lab, ran))
    assert report.targets[0].verdict is Verdict.EQUIVALENT
    assert report.diff == DIFF


def test_report_has_no_diff_if_boots_report_no_lines(lab: LabUnderTest) -> None:
    lab.worker.value = lambda *_: 33.0
    report = lab.report(submit(lab, {}))
    assert report.targets[0].ran is None
    assert report.diff == ""
