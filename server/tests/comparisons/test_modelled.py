"""Modelled verdicts in a lab: withheld without validation, and never a regression of a kernel."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from wqlab_contracts.enums import Evidence, ExitCode, OutboxEvent, Role, Verdict
from wqlab_server.models import Comparison, PendingEvent, Run
from wqlab_server.views.load import deciding_verdicts, target_summaries

from ..support.lab import LabUnderTest
from ..support.modelled import HASH, add_modelled_device

ROW = f"""\
validations:
- {{profile: ryzen-3900x, sha256: {HASH}, plan: locks, validated: %s,
   cells: {{right: 9, of: 10}}, reason: a mail of May}}
"""

pytestmark = pytest.mark.integration


@pytest.fixture
def modelling(lab: LabUnderTest) -> LabUnderTest:
    """Return a lab with a modelled device whose candidate has 7 % less throughput, and more instructions."""
    add_modelled_device(lab)
    return lab


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
        counts = deciding_verdicts(session, [submission_id])[submission_id]
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
    submission_id = modelling.submit("locks@model", "locks@single")
    modelling.until_idle()
    report = modelling.report(submission_id)
    assert "Verdict withheld on model (modelled)" in report.summary
    assert "single (emulated)" in report.summary
    assert {target.plan.is_modelled for target in report.targets if target.device_type == "single"} == {False}
