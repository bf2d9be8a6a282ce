"""The order of the boots of a run, with two kernels and with those of a walk."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wqlab_comparison.block_order import block_plan, walk_plan
from wqlab_contracts.enums import BETWEEN, Arm

ARMS = [Arm.BASELINE, *BETWEEN[:3], Arm.CANDIDATE]


@given(st.integers(1, 100), st.integers(0, 2**48))
def test_half_of_the_blocks_begin_with_the_baseline(blocks: int, seed: int) -> None:
    plan = block_plan(blocks, True, seed)
    first = [arms[0] for arms in plan]
    assert len(plan) == blocks
    assert abs(first.count(Arm.BASELINE) - first.count(Arm.CANDIDATE)) <= 1
    assert all(sorted(arms) == [Arm.BASELINE, Arm.CANDIDATE] for arms in plan)
    assert plan == block_plan(blocks, True, seed), "the stored seed gives the same order"


def test_block_order_is_shuffled() -> None:
    assert len({tuple(arms[0] for arms in block_plan(10, True, seed)) for seed in range(50)}) > 20


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
