"""Layouts of a submission: builds, jobs, verification of boots, quote and report."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from wqlab_contracts.enums import PAIR, Arm, Outcome
from wqlab_contracts.messages import RunResult
from wqlab_server.models import Boot, Build

from ..support.lab import LabUnderTest
from ..support.scripted_worker import passing_run
from ..support.send_run_events import RunSession

pytestmark = pytest.mark.integration


def test_each_block_boots_another_layout_of_both_kernels(lab: LabUnderTest) -> None:
    lab.mark_all_good()
    submission_id = lab.submit("locks@single", layouts=2, blocks=3)
    assert lab.finished(submission_id).outcome is Outcome.PASSED
    with lab.transaction() as session:
        builds = session.scalars(select(Build).where(Build.layouts == 2).order_by(Build.id)).all()
        known = [
            [each.build_id_gnu for each in (build.result, *build.result.layouts)] for build in builds if build.result
        ]
        assert len(known) == 2
        run = lab.runs(submission_id)[0]
        boots = session.scalars(select(Boot).where(Boot.valid, Boot.run_id == run.id)).all()
        booted = {arm: {boot.block: boot.build_id_gnu for boot in boots if boot.arm is arm} for arm in PAIR}
    layouts = {arm: next(ids for ids in known if booted[arm][0] in ids) for arm in PAIR}
    assert layouts[Arm.BASELINE] != layouts[Arm.CANDIDATE]
    for arm, ids in layouts.items():
        assert booted[arm] == {0: ids[0], 1: ids[1], 2: ids[0]}
    report = lab.client.get(
        f"/api/v1/submissions/{submission_id}/report", headers={"Authorization": f"Bearer {lab.token}"}
    ).json()
    assert report["targets"][0]["layouts"] == 2


def test_boot_of_the_wrong_layout_is_discarded(lab: LabUnderTest) -> None:
    lab.mark_all_good()

    def boot_ordinary_link(run: RunSession) -> RunResult:
        run.job = run.job.model_copy(update={"layouts": {}})
        return passing_run(run)

    lab.worker.on_run = boot_ordinary_link
    submission_id = lab.submit("locks@single", layouts=2, blocks=2)
    lab.finished(submission_id)
    with lab.transaction() as session:
        run_id = lab.runs(submission_id)[0].id
        valid = session.scalars(select(Boot.block).where(Boot.valid, Boot.run_id == run_id).distinct()).all()
    assert valid == [0], "block 1 has to boot layout 1"
