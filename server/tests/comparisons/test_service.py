"""Comparing a submission's stored samples, and which samples are left out."""

from __future__ import annotations

import pytest
from sqlalchemy import select, text

from wqlab_contracts.enums import Arm, ErrorKind, Evidence, NotMeasuredCause, Outcome, Role, Verdict
from wqlab_contracts.messages import BootKey, RunResult, Unsupported
from wqlab_server.comparisons import service
from wqlab_server.models import Comparison, Run

from ..support.lab import NOW, LabUnderTest, RunSession, failed, passing_run

pytestmark = pytest.mark.integration


def measured_run(lab: LabUnderTest, target: str = "locks@device", **more: object) -> int:
    lab.mark_all_good()
    submission_id = lab.submit(target, **more)  # type: ignore[arg-type]
    lab.until_idle()
    return lab.runs(submission_id)[0].id


def test_sample_columns_follow_the_plan(lab: LabUnderTest) -> None:
    run_id = measured_run(lab)
    with lab.transaction() as session:
        samples = service.samples_of(session, session.get_one(Run, run_id))
    assert samples is not None
    assert len(samples) == 4 * 2 * 2  # boots x metrics x (warm-up and one)
    assert set(samples.arm.words) == {"baseline", "candidate"}
    assert set(samples.role.words) == {Role.PRIMARY, Role.SECONDARY}
    assert set(samples.evidence.words) == {Evidence.MECHANISM, Evidence.NONE}
    assert samples.warmup.sum() == 8


def test_boots_of_discarded_blocks_are_not_compared(lab: LabUnderTest) -> None:
    lab.mark_all_good()

    def fail_once(run: RunSession) -> RunResult:
        run.send_failed_boot(run.remaining[0], Arm.CANDIDATE, failed(ErrorKind.KERNEL, "oops"))
        again = [plan.model_copy(update={"first_attempt": 1}) for plan in run.remaining]
        for plan in again:
            run.send_block(plan)
        return RunResult(outcome=Outcome.PASSED)

    lab.worker.on_run = fail_once
    run_id = measured_run(lab)
    with lab.transaction() as session:
        facts = service.target_facts(session, session.get_one(Run, run_id))
        rows = session.scalars(select(Comparison).where(Comparison.run_id == run_id)).all()
    assert facts.discarded == {Arm.CANDIDATE: 1}
    assert facts.blocks_discarded == 1
    assert {row.data.blocks_discarded for row in rows} == {1}
    assert {row.data.candidate.n for row in rows if row.data.candidate} == {2}


@pytest.mark.parametrize(
    ("loser", "value", "alone"),
    [(Arm.CANDIDATE, 5.0, "improvement"), (Arm.CANDIDATE, 33.0, "equivalent"), (Arm.BASELINE, 99.0, "regression")],
)
def test_imbalanced_discards_withhold_the_verdict(lab: LabUnderTest, loser: Arm, value: float, alone: str) -> None:
    """Two blocks are discarded after failed boots of one arm, and repeated; the remaining blocks agree."""

    def fail_each_block_once(run: RunSession) -> RunResult:
        for number, plan in enumerate(run.remaining):
            broken = failed(ErrorKind.INFRASTRUCTURE, f"the connection broke, way {number}")
            run.send_failed_boot(plan, loser, broken.model_copy(update={"of_variant": True}))
            run.send_block(plan.model_copy(update={"first_attempt": 1}))
        return RunResult(outcome=Outcome.PASSED)

    lab.worker.on_run = fail_each_block_once
    lab.worker.value = lambda arm, setting, metric, block: value if arm is Arm.CANDIDATE else 33.0
    run_id = measured_run(lab)
    with lab.transaction() as session:
        facts = service.target_facts(session, session.get_one(Run, run_id))
        row = session.scalars(
            select(Comparison).where(Comparison.run_id == run_id, Comparison.role == Role.PRIMARY)
        ).one()
    assert (facts.discarded, facts.blocks_discarded) == ({loser: 2}, 2)
    assert row.verdict is Verdict.INCONCLUSIVE
    assert f"discards are imbalanced against the {loser}: 2 blocks discarded for its boots" in row.data.reason
    assert f"which alone would give {alone}: exactly 33" in row.data.reason
    (target,) = lab.report(1).targets
    assert (target.verdict, target.discarded) == (Verdict.INCONCLUSIVE, {loser: 2})
    assert "discards are imbalanced against" in target.headline
    assert lab.submission(1).exit_code == 0


def test_unsupported_setting_gets_the_verdict_unsupported(lab: LabUnderTest) -> None:
    def report_unsupported_scope(run: RunSession) -> RunResult:
        for plan in run.remaining:
            run.send_block(plan)
        for boot in [(plan.block, arm) for plan in run.remaining for arm in plan.arms]:
            run.send(
                Unsupported(
                    at=NOW,
                    boot=BootKey(block=boot[0], position=0, arm=boot[1], attempt=0),
                    scenario="high",
                    setting="scope=cpu",
                    cause=NotMeasuredCause.LACKING,
                    reason="no such scope",
                )
            )
        return RunResult(outcome=Outcome.PASSED)

    lab.worker.on_run = report_unsupported_scope
    lab.worker.value = lambda arm, setting, metric, block: 50.0
    run_id = measured_run(lab, "affinity@device", series=None)
    lab.sql("DELETE FROM samples WHERE run_id = :id AND setting = 'scope=cpu'", id=run_id)
    with lab.transaction() as session:
        service.store(session, lab.runs(1)[0].submission_id or 0)
        verdicts = {row.data.setting: (row.verdict, row.data.reason) for row in session.scalars(select(Comparison))}
    assert verdicts["scope=cpu"] == (Verdict.UNSUPPORTED, "no such scope")


def test_second_comparison_replaces_the_first(lab: LabUnderTest) -> None:
    run_id = measured_run(lab)
    with lab.transaction() as session:
        before = [row.data for row in session.scalars(select(Comparison).order_by(Comparison.position))]
    with lab.transaction() as session:
        service.store(session, 1)
    with lab.transaction() as session:
        after = [row.data for row in session.scalars(select(Comparison).order_by(Comparison.position))]
        assert session.scalar(text("SELECT count(*) FROM boot_values WHERE run_id = :id"), {"id": run_id}) == 8
    assert before == after


def test_inconsistent_samples_fail_the_submission_with_the_reason(lab: LabUnderTest) -> None:
    """The API refuses two valid boots of one arm in a block; a damaged database must not make every tick fail."""
    lab.mark_all_good()

    def duplicate(run: RunSession) -> RunResult:
        result = passing_run(run)
        lab.sql(
            "UPDATE boots SET arm = 'candidate', position = 9 WHERE run_id = :id AND arm = 'baseline'",
            id=run.job.run_id,
        )
        return result

    lab.worker.on_run = duplicate
    submission_id = lab.submit("locks@single")
    submission = lab.finished(submission_id)
    assert (submission.outcome, submission.exit_code) == (Outcome.FAILED, 4)
    assert submission.failure is not None
    assert "could not be compared" in submission.failure.summary
