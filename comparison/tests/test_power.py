"""Sample sizes and smallest detectable effects."""

import numpy as np
import pytest
from literal_samples import with_moments
from noise_shapes import differences, is_claimed

from wqlab_comparison import significance
from wqlab_comparison.power import LEAST_BLOCKS, blocks_that_decide, blocks_that_find, smallest_effect
from wqlab_comparison.significance import ALPHA, sign_flip

SHAPE = (-7, -5, -3, -1, 1, 3, 5, 7)


def deciding(mean: float, deviation: float, delta: float) -> int | None:
    d = np.array(with_moments(mean, deviation, SHAPE))
    return blocks_that_decide(d, (-delta, delta), significance.ALPHA)


def test_blocks_that_decide_agree_with_the_sample_size_formula():
    # One sd per block against a threshold of one: equivalence at no effect takes (1.73 + .86)^2, about 10 blocks.
    assert deciding(0.0, 1.0, 1.0) in range(9, 13)
    # An effect of one sd: (2.26 + .88)^2, about 10.
    assert deciding(1.0, 1.0, 1.0) in range(9, 13)
    # A hundred blocks do not see a hundredth of a sd.
    assert deciding(0.01, 1.0, 0.01) is None
    assert deciding(10.0, 0.1, 1.0) == 9
    assert blocks_that_decide(np.array([9.9, 10.1]), (-1.0, 1.0), significance.ALPHA) == 6


def test_one_slow_boot_does_not_make_a_decision_impossible():
    d = np.append(with_moments(1.0, 0.8, SHAPE), -15.0)
    assert d.mean() < 0
    assert blocks_that_decide(d, (-0.1, 0.1), significance.ALPHA) is not None


@pytest.mark.parametrize("blocks", [6, 8, 20, 90])
def test_smallest_effect_is_the_inverse_of_blocks_that_decide(blocks: int) -> None:
    """The two formulas are inverse: with differences like these, fewer blocks do not decide."""
    noise = 0.01 * np.random.default_rng(blocks).normal(size=400)
    both = np.concatenate([noise, -noise])
    smallest = smallest_effect(blocks, noise, significance.ALPHA)
    assert smallest is not None
    few = np.random.default_rng(1).permutation(both)[: blocks - 1]
    assert blocks_that_decide(few + 10 * smallest, (-1e-9, 1e-9), significance.ALPHA) == blocks


def test_too_few_blocks_have_no_detectable_effect() -> None:
    assert smallest_effect(5, np.array([0.01, -0.01]), significance.ALPHA) is None


@pytest.mark.parametrize("shape", ["normal", "t3", "sticky modes", "outliers"])
@pytest.mark.parametrize("blocks", [6, 10, 16])
def test_smallest_effect_is_found_in_about_four_cases_of_five(shape: str, blocks: int) -> None:
    rng = np.random.default_rng(blocks)
    effect = smallest_effect(blocks, differences(shape, rng, 20, 20).ravel(), significance.ALPHA)
    assert effect is not None
    found = [is_claimed(d) for d in differences(shape, rng, 400, blocks, effect)]
    assert 0.6 <= np.mean(found) <= 0.9


def test_blocks_that_find_an_effect_grow_with_noise_and_power() -> None:
    noise = np.random.default_rng(5).normal(0, 0.002, 40)
    needed = [blocks_that_find(0.002, noise * scale, ALPHA, 0.95) for scale in (0.1, 1, 2)]
    assert needed[0] == LEAST_BLOCKS
    assert needed == sorted(needed)
    assert blocks_that_find(0.002, noise, ALPHA, 0.8) < needed[1]
    assert blocks_that_find(0.002, noise * 50, ALPHA, 0.95) is None


def test_needed_blocks_find_the_effect_as_often_as_stated() -> None:
    rng = np.random.default_rng(6)
    noise = rng.normal(0, 0.002, 400)
    blocks = blocks_that_find(0.002, noise, ALPHA, 0.95)
    found = [sign_flip(rng.normal(0.002, 0.002, blocks)) <= ALPHA for _ in range(400)]
    assert 0.92 <= np.mean(found) <= 0.995
