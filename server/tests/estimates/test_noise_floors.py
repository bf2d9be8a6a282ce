"""Noise floors from submissions of the control series."""

from __future__ import annotations

import math
from pathlib import Path

import instrument_examples as examples
import pytest
from modelled_examples import PLAN as MODEL
from report_parts import samples
from sqlalchemy import select, update

from wqlab_comparison import compare
from wqlab_contracts.enums import PAIR, Arm, Scale
from wqlab_contracts.specs import Profile, TestPlan
from wqlab_server.estimates.noise_floors import MOST_SEEDS, control_spreads, noise_floors, planned_seeds
from wqlab_server.models import Boot, BootValue, Comparison, Run, Submission
from wqlab_server.storage.db import clock, transaction

from ..support.scene import MBOX, Scene

pytestmark = pytest.mark.integration

_Figures = dict[tuple[str, str, str, Arm], list[float]]
"""(scenario, setting, metric, arm) -> value of each boot."""


def profile_of(scene: Scene, **parameters: int) -> Profile:
    """Return the profile of the scene's plan, with parameters that it does not have."""
    return scene.data.current().plans["flush"].emulated.model_copy(update={"parameters": parameters})


def compared(
    scene: Scene, mbox: str, control: bool, plan: TestPlan = examples.PLAN, figures: _Figures | None = None
) -> int:
    """Store a compared submission of the example counts on plan flush, or of other figures, and return its id."""
    number = scene.submission(
        request={"series": {"mbox": {"text": mbox}}, "tree": "t", "targets": [{"plan": "flush", "device_type": "tiny"}]}
    )
    measured = figures or {
        ("fsync", "", metric.name, arm): examples.values(metric.name, arm, control)
        for metric in plan.metrics
        for arm in PAIR
    }
    run_id = scene.run_id(number)
    boots = {(block, arm): scene.boot(run_id, block=block, arm=arm) for block in range(examples.SEEDS) for arm in PAIR}
    with transaction(scene.sessions) as session:
        session.execute(update(Run).where(Run.id == run_id).values(compared_at=clock(session)))
        for (scenario, setting, metric, arm), values in measured.items():
            for block, value in enumerate(values):
                boot_id = boots[block, arm]
                session.add(
                    BootValue(
                        run_id=run_id, boot_id=boot_id, scenario=scenario, setting=setting, metric=metric, value=value
                    )
                )
        for position, data in enumerate(compare(samples(plan, "tiny", measured))):
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
    scene.devices()
    ours = compared(scene, control, control=False)
    compared(scene, MBOX, control=True)
    with transaction(scene.sessions) as session:
        assert session.get_one(Submission, ours).noise_control
        floors = {each.metric: each for each in noise_floors(session, "flush", "tiny", profile_of(scene))}
        assert noise_floors(session, "flush", "other", profile_of(scene)) == []
        own = [row.data for row in session.query(Comparison).where(Comparison.run_id == scene.run_id(ours))]
    primary = next(each for each in own if each.metric == "kernel_instructions_per_op")
    assert primary.ci95 is not None
    assert floors["kernel_instructions_per_op"].floor == max(map(abs, primary.ci95))
    assert floors["kernel_instructions_per_op"].seeds == 6
    assert "locked_per_op" not in floors  # explanatory
    # Most of the example's noise is that of the seed, which both kernels share.
    assert floors["kernel_instructions_per_op"].seeds_needed == 6
    assert 6 < floors["transfers_across_l3_per_op"].seeds_needed <= 100


def test_control_that_changes_nothing_gives_zero(control: str, scene: Scene) -> None:
    scene.devices()
    compared(scene, control, control=True)
    with transaction(scene.sessions) as session:
        floors = noise_floors(session, "flush", "tiny", profile_of(scene))
        assert {(each.floor, each.seeds_needed) for each in floors} == {(0.0, 6)}
        planned = planned_seeds(session, "flush", "tiny", profile_of(scene))
        assert planned.seeds == 6
        assert "they show an effect of twice the threshold of each metric in 95 % of cases" in planned.why


def test_modelled_metrics_have_floors_and_spreads_in_their_own_units(control: str, scene: Scene) -> None:
    scene.devices()
    noise = (0.004, -0.006, 0.002, -0.003, 0.005, -0.001)
    share = MODEL.metric("bandwidth").model_copy(update={"name": "share", "unit": "%", "scale": Scale.DIFFERENCE})
    plan = MODEL.model_copy(update={"metrics": [*MODEL.metrics, share]})
    figures: _Figures = {
        ("fsync", "", "bandwidth", Arm.BASELINE): [900.0] * 6,
        ("fsync", "", "bandwidth", Arm.CANDIDATE): [900.0 * (1 + each) for each in noise],
        ("fsync", "", "share", Arm.BASELINE): [0.0, 50.0, 50.0, 50.0, 50.0, 50.0],
        ("fsync", "", "share", Arm.CANDIDATE): [100 * each + 50 * (seed > 0) for seed, each in enumerate(noise)],
    }
    ours = compared(scene, control, control=True, plan=plan, figures=figures)
    with transaction(scene.sessions) as session:
        profile = session.scalars(select(Run)).one().profile
        floors = {each.metric: each for each in noise_floors(session, "flush", "tiny", profile)}
        spreads = control_spreads(session, "flush", "tiny", profile)
        own = {r.data.metric: r.data for r in session.query(Comparison).where(Comparison.run_id == scene.run_id(ours))}
    for name in ("bandwidth", "share"):
        interval = own[name].ci95
        assert interval is not None
        assert floors[name].floor == max(map(abs, interval))
        assert floors[name].seeds_needed is not None
    assert spreads["share"] == pytest.approx(100 * spreads["bandwidth"], rel=0.02), "points, and logarithms"


def test_seeds_are_planned_for_the_metric_that_needs_most(control: str, scene: Scene) -> None:
    scene.devices()
    compared(scene, control, control=True)
    with transaction(scene.sessions) as session:
        run = session.scalars(select(Run)).one()
        noisy = {"transfers_across_l3_per_op": 0.03, "transfers_within_l3_per_op": 0.2}
        for value in session.scalars(select(BootValue).where(BootValue.metric.in_(noisy))):
            boot = session.get_one(Boot, value.boot_id)
            value.value *= 1 + noisy[value.metric] * (boot.block % 3 - 1) * (boot.arm is Arm.CANDIDATE)
        session.flush()
        planned = planned_seeds(session, "flush", "tiny", run.profile)
        assert planned.seeds == MOST_SEEDS
        assert "transfers_within_l3_per_op needs" in planned.why
        assert "across" not in planned.why, "what is found is not listed"
        spreads = control_spreads(session, "flush", "tiny", run.profile)
        assert 0 == spreads["kernel_instructions_per_op"] < spreads["transfers_across_l3_per_op"]
        # A third of the seeds each is 20 % lower, equal and higher.
        assert spreads["transfers_within_l3_per_op"] == pytest.approx(0.2 * math.sqrt(2 / 3 * 6 / 5), rel=0.1)


def test_control_with_another_window_is_no_noise_floor(control: str, scene: Scene) -> None:
    scene.devices()
    compared(scene, control, control=True)
    ours = profile_of(scene)
    more = ours.model_copy(update={"repetitions": ours.repetitions.model_copy(update={"untraced": 9})})
    with transaction(scene.sessions) as session:
        for other in (profile_of(scene, file_kib=640), more):
            assert noise_floors(session, "flush", "tiny", other) == []
            planned = planned_seeds(session, "flush", "tiny", other)
            assert planned.seeds == ours.blocks
            assert "the noise floor of flush on tiny is not measured" in planned.why


def test_series_with_another_text_is_no_control(control: str, scene: Scene) -> None:
    scene.devices()
    number = compared(scene, control.replace("+nop", "+rep"), control=False)
    with transaction(scene.sessions) as session:
        assert not session.get_one(Submission, number).noise_control
        assert noise_floors(session, "flush", "tiny", profile_of(scene)) == []


@pytest.fixture
def control(scene_data_dir: Path) -> str:
    """The control series of the scene's data folder; the mail program that sends it may change line ends."""
    text = MBOX.replace("faster", "nops") + "@@ -1 +1,2 @@\n a\n+nop\n"
    path = scene_data_dir / "kernels/controls/nops.mbox"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return text.replace("\n", "\r\n")
