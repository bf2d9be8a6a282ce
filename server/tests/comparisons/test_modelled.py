"""Modelled verdicts in a lab: withheld without validation, and never a regression of a kernel."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from wqlab_contracts.enums import Arm, Evidence, ExitCode, OutboxEvent, Outcome, Role, Verdict
from wqlab_contracts.messages import BlockFinished, BootKey, RunResult, Samples
from wqlab_server.models import Comparison, PendingEvent, Run
from wqlab_server.views.load import primary_verdicts, target_summaries

from ..support.datafolder import add_modelled
from ..support.lab import NOW, LabUnderTest, RunSession, fill_pool

HASH = "ab" * 32
ROW = f"""\
validations:
- {{profile: ryzen-3900x, sha256: {HASH}, plan: locks, validated: %s,
   cells: {{right: 9, of: 10}}, reason: a mail of May}}
"""

pytestmark = pytest.mark.integration


@pytest.fixture
def modelling(lab: LabUnderTest) -> LabUnderTest:
    """Return a lab with a modelled device whose candidate has 7 % less throughput, and more instructions."""
    add_modelled(lab.settings.data_dir)
    lab.app.state.data._checked_at = float("-inf")
    with lab.transaction() as session:
        fill_pool(session, lab.data)
    lab.mark_all_good()
    lab.worker.value = lambda arm, setting, metric, block: (100 + block) * (0.93 if arm is Arm.CANDIDATE else 1)
    lab.worker.on_run = with_costs
    return lab


def with_costs(run: RunSession) -> RunResult:
    """Run all boots, which report the costs of their virtual time."""
    for plan in run.remaining:
        for position, arm in enumerate(plan.arms):
            key = BootKey(block=plan.block, position=position, arm=arm, attempt=plan.first_attempt)
            costs = Samples(at=NOW, boot=key, samples=[], facts={"cost profile": f"ryzen-3900x sha256:{HASH}"})
            *events, finished = run.boot_events(key)
            run.send(*events, costs, finished)
        run.send(BlockFinished(at=NOW, block=plan.block, attempt=plan.first_attempt))
    return RunResult(outcome=Outcome.PASSED)


@pytest.mark.parametrize(
    ("validated", "verdict", "why"),
    [
        (None, Verdict.WITHHELD, "was compared with no published figure"),
        ("false", Verdict.WITHHELD, "9 of 10 cells right; a mail of May"),
        ("true", Verdict.REGRESSION, "at least 1 %"),
    ],
)
def test_a_verdict_is_stated_for_what_is_validated(
    modelling: LabUnderTest, validated: str | None, verdict: Verdict, why: str
) -> None:
    if validated is not None:
        (modelling.settings.data_dir / "testplans/validation.yaml").write_text(ROW % validated)
    submission_id = modelling.submit("locks@model")
    modelling.until_idle()
    with modelling.transaction() as session:
        primary = session.scalars(
            select(Comparison).join(Run, Run.id == Comparison.run_id).where(Comparison.role == Role.PRIMARY)
        ).one()
        counts = primary_verdicts(session, [submission_id])[submission_id]
        (summary,) = target_summaries(session, [submission_id])[submission_id]
        told = session.scalars(select(PendingEvent).where(PendingEvent.event == OutboxEvent.REGRESSION_FOUND)).all()
    assert (primary.data.metric, primary.data.evidence) == ("throughput", Evidence.MODELLED)
    assert primary.verdict is verdict
    assert why in primary.data.reason
    assert primary.data.effect == pytest.approx(-7)
    # A model's regression changes no exit code, is counted apart, and nobody is told of it.
    assert modelling.submission(submission_id).exit_code == ExitCode.DONE
    assert (dict(counts.measured), dict(counts.modelled)) == ({}, {verdict: 1})
    assert told == []
    assert (summary.modelled, summary.emulated) == (True, True)
    assert summary.headline.startswith("modelled on a ryzen-3900x-like machine: ")


def test_the_report_says_which_targets_are_modelled(modelling: LabUnderTest) -> None:
    modelling.worker.on_run = with_costs
    submission_id = modelling.submit("locks@model", "locks@single")
    modelling.until_idle()
    report = modelling.report(submission_id)
    assert "verdict withheld on model (modelled)" in report.summary
    assert "single (emulated)" in report.summary
    assert {target.plan.is_modelled for target in report.targets if target.device_type == "single"} == {False}
