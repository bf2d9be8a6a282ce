"""Sample sizes and smallest detectable effects."""

import numpy as np
import pytest
from literal_samples import with_moments
from noise_shapes import differences, is_claimed

from wqlab_comparison.effect import Floats, estimate
from wqlab_comparison.looks import Part, is_beyond, is_within
from wqlab_comparison.power import LEAST_BLOCKS, MOST_BLOCKS, blocks_that_decide, blocks_that_find, smallest_effect
from wqlab_comparison.significance import ALPHA, sign_flip

SHAPE = (-7, -5, -3, -1, 1, 3, 5, 7)


def deciding(mean: float, deviation: float, delta: float, spread: float | None = None) -> int | None:
    d = np.array(with_moments(mean, deviation, SHAPE))
    return blocks_that_decide(d, estimate(d), (-delta, delta), (ALPHA, ALPHA), spread=spread)


def test_blocks_that_decide() -> None:
    # One sd per block against a threshold of one: equivalence takes (1.73 + .86)^2, about 10 blocks, if the estimate of
    # no effect is right; eight blocks have an error of their own.
    assert deciding(0.0, 1.0, 1.0) in range(9, 16)
    # An effect at the threshold is neither beyond it nor within it.
    assert deciding(1.0, 1.0, 1.0) is None
    # An effect of twice the threshold is as far from it as none.
    assert deciding(2.0, 1.0, 1.0) in range(9, 20)
    # A hundred blocks do not see a hundredth of a sd.
    assert deciding(0.01, 1.0, 0.01) is None
    assert deciding(10.0, 0.1, 1.0) == 9


def test_family_and_a_larger_spread_need_more_blocks() -> None:
    d = np.array(with_moments(2.0, 1.0, SHAPE))
    alone = blocks_that_decide(d, 2.0, (-1.0, 1.0), (ALPHA, ALPHA))
    # Below the threshold of a family of 1000 a difference from zero is harder to show than relevance.
    assert blocks_that_decide(d, 2.0, (-1.0, 1.0), (ALPHA / 1000, ALPHA)) > alone
    # Blocks that agree by chance promise nothing if the lab has measured a larger spread.
    assert deciding(1.3, 0.1, 1.0) == 9
    assert deciding(1.3, 0.1, 1.0, spread=0.5) > 20


def test_one_slow_boot_does_not_make_a_decision_impossible() -> None:
    d = np.append(with_moments(2.0, 0.8, SHAPE), -15.0)
    assert d.mean() < 0.5
    assert blocks_that_decide(d, estimate(d), (-0.1, 0.1), (ALPHA, ALPHA)) is not None


def is_decided(d: Floats) -> bool:
    parts, middle = [Part(d, 1.0)], estimate(d)
    return is_beyond(parts, middle, -1.0, 1.0) or is_within(parts, middle, -1.0, 1.0)


@pytest.mark.parametrize("spread", [None, 1.0])
def test_promised_blocks_decide_in_about_four_cases_of_five(spread: float | None) -> None:
    """Runs that six blocks leave undecided. The prediction knows nothing of the effects but what the blocks show."""
    rng = np.random.default_rng(9)
    decided = []
    for effect in rng.uniform(-4, 4, 700):
        d = rng.normal(effect, 1, MOST_BLOCKS)
        if is_decided(d[:6]):
            continue
        total = blocks_that_decide(d[:6], estimate(d[:6]), (-1.0, 1.0), (ALPHA, ALPHA), spread=spread)
        if total is not None:
            decided.append(is_decided(d[:total]))
    assert len(decided) > 150
    assert 0.72 <= np.mean(decided) <= 0.9


@pytest.mark.parametrize("blocks", [6, 8, 20, 90])
def test_smallest_effect_is_the_inverse_of_blocks_that_find(blocks: int) -> None:
    noise = 0.01 * np.random.default_rng(blocks).normal(size=400)
    smallest = smallest_effect(blocks, noise, ALPHA)
    assert smallest is not None
    # An effect of twice the threshold is the smallest one away from it.
    assert blocks_that_find(smallest, noise, ALPHA, 0.8) == blocks


def test_too_few_blocks_have_no_detectable_effect() -> None:
    assert smallest_effect(5, np.array([0.01, -0.01]), ALPHA) is None


@pytest.mark.parametrize("shape", ["normal", "t3", "sticky modes", "outliers"])
@pytest.mark.parametrize("blocks", [6, 10, 16])
def test_smallest_effect_is_found_in_about_four_cases_of_five(shape: str, blocks: int) -> None:
    rng = np.random.default_rng(blocks)
    effect = smallest_effect(blocks, differences(shape, rng, 20, 20).ravel(), ALPHA)
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
