"""Simulate walks: random boot values in the order that the server plans, judged by the code that judges real boots."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from wqlab_comparison import Samples, TargetFacts, compare
from wqlab_comparison.block_order import walk_plan
from wqlab_contracts.enums import BETWEEN, Arm, Verdict
from wqlab_contracts.messages.walk import StepState, WalkStep, rungs
from wqlab_contracts.specs import TestPlan

PLAN = TestPlan.model_validate(
    {
        "name": "p",
        "summary": "s",
        "script": "run.sh",
        "parser": "values",
        "scenarios": [{"name": "fsync", "summary": "s"}],
        "reference_setting": "",
        "hardware": {"settings": [""]},
        "emulated": {"settings": [""]},
        "metrics": [
            {
                "name": "bandwidth",
                "summary": "s",
                "unit": "MiB/s",
                "scale": "ratio",
                "direction": "higher_is_better",
                "class": "performance",
                "taken_from": "untraced",
                "role_hardware": "primary",
                "role_emulated": "explanatory",
                "delta": 1.0,
            }
        ],
    }
)
PATCHES = 5
ARMS = [Arm.BASELINE, *BETWEEN[: PATCHES - 1], Arm.CANDIDATE]
STEPS = [
    WalkStep(patch=patch, subject="s", commit="c" * 40, arm=ARMS[patch], state=StepState.MEASURED)
    for patch in range(1, PATCHES + 1)
]
CLAIMS = {Verdict.REGRESSION, Verdict.IMPROVEMENT, Verdict.BELOW_THRESHOLD}
NOISE = 0.01
"""Standard deviation of a boot, as a share of its mean."""
DRIFT = 0.02
"""Change of the device's speed over the whole run."""


Draw = Callable[[Generator, int], NDArray[np.float64]]
"""Returns deviations of so many boots from their mean, as shares of it."""


def normal(random: Generator, boots: int) -> NDArray[np.float64]:
    return random.normal(0, NOISE, boots)


SHAPES: dict[str, Draw] = {
    "normal": normal,
    "t3": lambda random, boots: NOISE * random.standard_t(3, boots),
    "bimodal": lambda random, boots: normal(random, boots) - 0.05 * (random.random(boots) < 1 / 2),
    "outliers": lambda random, boots: normal(random, boots) - 0.15 * (random.random(boots) < 1 / 20),
}
"""Distributions of the noise between boots.

Beside the smooth ones: half of the boots are 5 % slower, and one boot in 20 is 15 % slower.
"""


def ladder(
    random: Generator, blocks: int, effects: Mapping[Arm, float], drift: float, draw: Draw = normal
) -> dict[int | None, Verdict]:
    """Simulate a run and return the verdict of each patch, and under None that of the whole series.

    `effects`: relative change of each arm; `drift`: that of the device from the first boot to the last.
    """
    plan = walk_plan(blocks, ARMS, int(random.integers(2**40)))
    arms = [arm for order in plan for arm in order]
    count = len(arms)
    time = np.linspace(0, 1, count)
    value = 1000 * (1 + drift * time + draw(random, count))
    value *= [1 + effects.get(arm, 0.0) for arm in arms]
    each = len(ARMS)
    samples = Samples.from_columns(
        device_type="d",
        device=["d-1"] * count,
        plan="p",
        scenario=["fsync"] * count,
        setting=[""] * count,
        block=np.repeat(np.arange(blocks), each),
        position=np.tile(np.arange(each), blocks),
        arm=[arm.value for arm in arms],
        boot=list(range(count)),
        repetition=np.zeros(count, dtype=np.int64),
        warmup=np.zeros(count, dtype=np.bool_),
        metric=["bandwidth"] * count,
        unit=["MiB/s"] * count,
        scale=["ratio"] * count,
        direction=["higher_is_better"] * count,
        role=["primary"] * count,
        evidence=["performance"] * count,
        delta=["1"] * count,
        value=value,
    )
    facts = TargetFacts(PLAN, "d", False, ARMS, [""], rungs=list(rungs(STEPS)))
    return {each.patch: each.verdict for each in compare(samples, [facts]) if each.verdict is not None}
