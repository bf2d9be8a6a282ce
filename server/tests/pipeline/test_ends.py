"""Trouble between the last measurement and the end of a run."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from wqlab_contracts.enums import Arm, ErrorKind, FindingKind, Outcome
from wqlab_contracts.messages import BlockFinished, BootKey, Finding
from wqlab_server.models import BlockAttempt

from ..support.lab import NOW, LabUnderTest, RunSession, passing_run, results

pytestmark = pytest.mark.integration


def test_a_worker_lost_after_the_last_block_loses_nothing(lab: LabUnderTest) -> None:
    lab.all_good()

    def dies_before_it_says_so(run: RunSession) -> None:
        for plan in run.remaining:
            run.block(plan)

    lab.worker.on_run = results(dies_before_it_says_so)
    submission_id = lab.submit("locks@device")
    lab.until_idle()
    lab.expire("runs", lab.runs(submission_id)[0].id)
    lab.until_idle()

    run = lab.runs(submission_id)[0]
    assert (run.outcome, run.attempts) == (Outcome.PASSED, 1)
    assert lab.submission(submission_id).outcome is Outcome.PASSED


def test_a_kernel_that_dies_after_its_last_sample_gives_no_figure(lab: LabUnderTest) -> None:
    lab.all_good()

    def oopses_on_the_way_out(run: RunSession) -> None:
        plan = run.remaining[0]
        keys = [BootKey(block=plan.block, position=at, arm=arm, attempt=0) for at, arm in enumerate(plan.arms)]
        for key in keys:
            run.send(*run.boot_events(key))
        late = next(key for key in keys if key.arm is Arm.BASELINE)
        run.send(
            Finding(
                at=NOW, boot=late, kind=FindingKind.OOPS, title="NULL pointer", excerpt="BUG: NULL pointer",
                console_offset=9, fatal=True,
            ),
            BlockFinished(at=NOW, block=plan.block, attempt=0),
        )  # fmt: skip
        passing_run(run)

    lab.worker.on_run = results(oopses_on_the_way_out, passing_run, passing_run)
    lab.submit("locks@device")
    lab.until_idle()

    with lab.transaction() as session:
        late = session.scalars(select(BlockAttempt).where(BlockAttempt.block == 0, BlockAttempt.attempt == 0)).one()
        assert (late.finished, late.arm) == (False, Arm.BASELINE)
        assert late.failure is not None and late.failure.kind is ErrorKind.KERNEL
