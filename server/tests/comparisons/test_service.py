"""From rows to the pure package's columns, and what stays out of them."""

from __future__ import annotations

import pytest
from sqlalchemy import select, text

from wqlab_contracts.enums import Arm, ErrorKind, Evidence, Outcome, Role, Verdict
from wqlab_contracts.messages import BootKey, RunResult, Unsupported
from wqlab_server.comparisons import service
from wqlab_server.models import Comparison, Run

from ..support.lab import NOW, LabUnderTest, RunSession, failed, passing_run

pytestmark = pytest.mark.integration


def measured_run(lab: LabUnderTest, target: str = "locks@device", **more: object) -> int:
    lab.all_good()
    submission_id = lab.submit(target, **more)  # type: ignore[arg-type]
    lab.until_idle()
    return lab.runs(submission_id)[0].id


def test_columns_say_what_the_plan_says(lab: LabUnderTest) -> None:
    run_id = measured_run(lab)
    with lab.transaction() as session:
        samples = service.samples_of(session, session.get_one(Run, run_id))
    assert samples is not None
    assert len(samples) == 4 * 2 * 2  # boots x metrics x (warm-up and one)
    assert set(samples.arm.words) == {"baseline", "candidate"}
    assert set(samples.role.words) == {Role.PRIMARY, Role.SECONDARY}
    assert set(samples.evidence.words) == {Evidence.MECHANISM, Evidence.NONE}
    assert samples.warmup.sum() == 8


def test_boots_of_discarded_blocks_are_no_figures(lab: LabUnderTest) -> None:
    lab.all_good()

    def one_death(run: RunSession) -> RunResult:
        run.dead_boot(run.remaining[0], Arm.CANDIDATE, failed(ErrorKind.KERNEL, "oops"))
        again = [plan.model_copy(update={"first_attempt": 1}) for plan in run.remaining]
        for plan in again:
            run.block(plan)
        return RunResult(outcome=Outcome.PASSED)

    lab.worker.on_run = one_death
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
def test_discards_that_follow_one_arm_withhold_what_they_flatter(
    lab: LabUnderTest, loser: Arm, value: float, alone: str
) -> None:
    """Two blocks are lost to boots of one arm by failures of the lab, and repeated; all that is left agrees."""

    def loses_two(run: RunSession) -> RunResult:
        for number, plan in enumerate(run.remaining):
            run.dead_boot(plan, loser, failed(ErrorKind.INFRASTRUCTURE, f"the connection broke, way {number}"))
            run.block(plan.model_copy(update={"first_attempt": 1}))
        return RunResult(outcome=Outcome.PASSED)

    lab.worker.on_run = loses_two
    lab.worker.value = lambda arm, setting, metric, block: value if arm is Arm.CANDIDATE else 33.0
    run_id = measured_run(lab)
    with lab.transaction() as session:
        facts = service.target_facts(session, session.get_one(Run, run_id))
        row = session.scalars(
            select(Comparison).where(Comparison.run_id == run_id, Comparison.role == Role.PRIMARY)
        ).one()
    assert (facts.discarded, facts.blocks_discarded) == ({loser: 2}, 2)
    assert row.verdict is Verdict.INCONCLUSIVE
    assert f"discards lean to the {loser}: 2 blocks lost to its boots" in row.data.reason
    assert f"which alone would say {alone}: exactly 33" in row.data.reason
    (target,) = lab.report(1).targets
    assert (target.verdict, target.discarded) == (Verdict.INCONCLUSIVE, {loser: 2})
    assert "discards lean to" in target.headline
    assert lab.submission(1).exit_code == 0


def test_what_a_kernel_lacks_becomes_a_verdict(lab: LabUnderTest) -> None:
    def lacks_cpu(run: RunSession) -> RunResult:
        for plan in run.remaining:
            run.block(plan)
        for boot in [(plan.block, arm) for plan in run.remaining for arm in plan.arms]:
            run.send(
                Unsupported(
                    at=NOW,
                    boot=BootKey(block=boot[0], position=0, arm=boot[1], attempt=0),
                    scenario="high",
                    setting="scope=cpu",
                    reason="no such scope",
                )
            )
        return RunResult(outcome=Outcome.PASSED)

    lab.worker.on_run = lacks_cpu
    lab.worker.value = lambda arm, setting, metric, block: 50.0
    run_id = measured_run(lab, "affinity@device", series=None)
    lab.sql("DELETE FROM samples WHERE run_id = :id AND setting = 'scope=cpu'", id=run_id)
    with lab.transaction() as session:
        service.store(session, lab.runs(1)[0].submission_id or 0)
        verdicts = {row.data.setting: (row.verdict, row.data.reason) for row in session.scalars(select(Comparison))}
    assert verdicts["scope=cpu"] == (Verdict.UNSUPPORTED, "no such scope")


def test_comparing_twice_replaces(lab: LabUnderTest) -> None:
    run_id = measured_run(lab)
    with lab.transaction() as session:
        before = [row.data for row in session.scalars(select(Comparison).order_by(Comparison.position))]
    with lab.transaction() as session:
        service.store(session, 1)
    with lab.transaction() as session:
        after = [row.data for row in session.scalars(select(Comparison).order_by(Comparison.position))]
        assert session.scalar(text("SELECT count(*) FROM boot_values WHERE run_id = :id"), {"id": run_id}) == 8
    assert before == after


def test_samples_that_contradict_themselves_end_the_submission_with_the_reason(lab: LabUnderTest) -> None:
    """Two valid boots of one arm in one block cannot come through the API; a damaged database must not spin."""
    lab.all_good()

    def duplicate(run: RunSession) -> RunResult:
        result = passing_run(run)
        lab.sql(
            "UPDATE boots SET arm = 'candidate', position = 9 WHERE run_id = :id AND arm = 'baseline'",
            id=run.job.run_id,
        )
        return result

    lab.worker.on_run = duplicate
    submission_id = lab.submit("locks@single")
    lab.until_idle()
    submission = lab.submission(submission_id)
    assert (submission.outcome, submission.exit_code) == (Outcome.FAILED, 4)
    assert submission.failure is not None
    assert "could not be compared" in submission.failure.summary
