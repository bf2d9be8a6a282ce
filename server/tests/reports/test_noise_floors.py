"""Noise floors from submissions of the control series."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import update

from wqlab_comparison import compare
from wqlab_contracts.enums import Arm
from wqlab_server.models import Comparison, Run, Submission
from wqlab_server.reports.noise_floors import noise_floors
from wqlab_server.storage.db import clock, transaction

from ..support.scene import MBOX, Scene
from . import instrument_examples as examples
from .report_examples import samples

pytestmark = pytest.mark.integration


def compared(scene: Scene, mbox: str, control: bool) -> int:
    """Store a compared submission of the example counts on plan flush, and return its id."""
    number = scene.submission(
        request={"series": {"mbox": {"text": mbox}}, "tree": "t", "targets": [{"plan": "flush", "device_type": "tiny"}]}
    )
    measured = {
        ("fsync", "", metric.name, arm): examples.values(metric.name, arm, control)
        for metric in examples.PLAN.metrics
        for arm in Arm
    }
    with transaction(scene.sessions) as session:
        run_id = scene.run_id(number)
        session.execute(update(Run).where(Run.id == run_id).values(compared_at=clock(session)))
        for position, data in enumerate(compare(samples(examples.PLAN, "tiny", measured))):
            session.add(
                Comparison(
                    run_id=run_id,
                    position=position,
                    question=data.question,
                    role=data.role,
                    verdict=data.verdict,
                    data=data,
                )
            )
    return number


def test_effects_of_the_control_are_the_noise_floors(control: str, scene: Scene) -> None:
    ours = compared(scene, control, control=False)
    compared(scene, MBOX, control=True)
    with transaction(scene.sessions) as session:
        assert session.get_one(Submission, ours).noise_control
        floors = {each.metric: each for each in noise_floors(session, "flush", "tiny")}
        assert noise_floors(session, "flush", "other") == []
        own = [row.data for row in session.query(Comparison).where(Comparison.run_id == scene.run_id(ours))]
    primary = next(each for each in own if each.metric == "kernel_instructions_per_op")
    assert primary.ci95 is not None
    assert floors["kernel_instructions_per_op"].floor == max(map(abs, primary.ci95))
    assert floors["kernel_instructions_per_op"].seeds == 6
    assert "locked_per_op" not in floors  # explanatory


def test_control_that_changes_nothing_gives_zero(control: str, scene: Scene) -> None:
    compared(scene, control, control=True)
    with transaction(scene.sessions) as session:
        assert {each.floor for each in noise_floors(session, "flush", "tiny")} == {0.0}


def test_series_with_another_text_is_no_control(control: str, scene: Scene) -> None:
    number = compared(scene, control.replace("+nop", "+rep"), control=False)
    with transaction(scene.sessions) as session:
        assert not session.get_one(Submission, number).noise_control
        assert noise_floors(session, "flush", "tiny") == []


@pytest.fixture
def control(scene_data_dir: Path) -> str:
    """The control series of the scene's data folder; the mail program that sends it may change line ends."""
    text = MBOX.replace("faster", "nops") + "@@ -1 +1,2 @@\n a\n+nop\n"
    path = scene_data_dir / "kernels/controls/nops.mbox"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return text.replace("\n", "\r\n")
