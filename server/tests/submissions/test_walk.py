"""The order of a walk's boots, and the mistakes of its request."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from wqlab_contracts.enums import BETWEEN, Arm
from wqlab_server.submissions.plan_runs import walk_plan

ARMS = [Arm.BASELINE, *BETWEEN[:3], Arm.CANDIDATE]


@pytest.mark.parametrize("seed", range(5))
def test_each_arm_boots_once_in_each_block(seed: int) -> None:
    plan = walk_plan(7, ARMS, seed)
    assert len(plan) == 7
    assert all(sorted(order) == sorted(ARMS) for order in plan)


@pytest.mark.parametrize("seed", range(5))
def test_a_steady_drift_cancels_in_each_pair_of_blocks(seed: int) -> None:
    plan = walk_plan(8, ARMS, seed)
    for first, second in zip(plan[::2], plan[1::2], strict=True):
        assert {first.index(arm) + second.index(arm) for arm in ARMS} == {len(ARMS) - 1}


def test_each_arm_has_each_position_equally_often() -> None:
    plan = walk_plan(2 * len(ARMS), ARMS, 3)
    for position in range(len(ARMS)):
        assert Counter(order[position] for order in plan) == dict.fromkeys(ARMS, 2)


def test_neighbours_are_next_to_each_other_except_in_one_rotation() -> None:
    plan = walk_plan(2 * len(ARMS), ARMS, 3)
    cycle = [*pairwise(ARMS), (ARMS[-1], ARMS[0])]
    for one, other in cycle:
        apart = sum(abs(order.index(one) - order.index(other)) != 1 for order in plan)
        assert apart == 2, "once in each direction"


def test_the_same_seed_gives_the_same_order() -> None:
    assert walk_plan(9, ARMS, 5) == walk_plan(9, ARMS, 5) != walk_plan(9, ARMS, 6)
