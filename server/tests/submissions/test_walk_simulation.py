"""False claims of ladders and what they find, by the shipped plan of boots and the shipped comparison.

docs/comparison.md quotes the rates of 2000 ladders; here there are fewer, with a bound that accounts for chance.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt

import numpy as np
import pytest
from numpy.random import Generator

from wqlab_comparison import Samples, TargetFacts, compare
from wqlab_contracts.enums import BETWEEN, Arm, Verdict
from wqlab_contracts.messages.walk import StepState, WalkStep, rungs
from wqlab_contracts.specs import TestPlan
from wqlab_server.submissions.plan_runs import walk_plan

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


def ladder(random: Generator, blocks: int, effects: Mapping[Arm, float], drift: float) -> dict[int | None, Verdict]:
    """Simulate a run and return the verdict of each patch, and under None that of the whole series."""
    plan = walk_plan(blocks, ARMS, int(random.integers(2**40)))
    arms = [arm for order in plan for arm in order]
    count = len(arms)
    time = np.linspace(0, 1, count)
    value = 1000 * (1 + drift * time + random.normal(0, NOISE, count))
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


@pytest.mark.parametrize("drift", [0.0, DRIFT])
def test_at_most_one_ladder_in_twenty_claims_a_change_that_is_none(drift: float) -> None:
    random = np.random.default_rng(20)
    number = 300
    false = sum(bool(CLAIMS & set(ladder(random, 10, {}, drift).values())) for _ in range(number))
    assert false / number <= 0.05 + 3 * sqrt(0.05 * 0.95 / number)


def test_third_patch_that_regresses_and_fifth_that_repairs_are_found() -> None:
    random = np.random.default_rng(21)
    slow = {BETWEEN[2]: -0.05, BETWEEN[3]: -0.05}
    number, both, others = 60, 0, 0
    for _ in range(number):
        found = ladder(random, 10, slow, DRIFT)
        both += (found[3], found[5]) == (Verdict.REGRESSION, Verdict.IMPROVEMENT)
        others += any(found[patch] in CLAIMS for patch in (1, 2, 4, None))
    assert both / number >= 0.95
    assert others / number <= 0.05 + 3 * sqrt(0.05 * 0.95 / number)
