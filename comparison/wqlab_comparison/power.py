"""Estimate sample sizes: blocks needed for a verdict, and the smallest detectable effect.

Both use the mean and the standard deviation of the clipped differences, as the test does (significance.py), in the
sample size formula of the t test, n = ((t_error + t_power) s / mean)**2 (J. L. Fleiss 1986).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import ndtri, stdtrit

from .significance import ALPHA, Floats, clip, mean_and_deviation

LEAST_BLOCKS = 6
"""Fewer blocks cannot reach p <= .05 in the exact two-sided sign-flip test: 2/2**5 = .0625."""
MOST_BLOCKS = 100
"""Largest number of blocks that is ever recommended."""
POWER = 0.8
"""Probability of finding an effect of the assumed size: four cases of five."""
_EQUIVALENCE_ALPHA = 0.10
"""Level of the two-sided interval that must be inside the threshold."""
_SEARCH_STEP = 1.1
_SEARCH_LIMIT = 20.0
"""Largest effect that is tried, in standard deviations."""


def blocks_that_decide(d: Floats, delta: tuple[float, float], alpha: float, share: float = 1.0) -> int | None:
    """Return the smallest total number of blocks above `len(d)` that gives a verdict with probability POWER.

    Assumes that further blocks have differences like `d`, which is uncertain with few blocks. A verdict is a
    significant difference (at ALPHA, in a family also at `alpha`) or equivalence within `delta`, on the scale of the
    differences. `share` is that of the next look in every level. Returns None beyond MOST_BLOCKS.
    """
    differs = abs(_signal(d))
    same = min(_signal(d - delta[0]), _signal(delta[1] - d))
    for blocks in range(max(len(d) + 1, LEAST_BLOCKS), MOST_BLOCKS + 1):
        needed = _needed_signal(blocks, alpha * share, POWER, ALPHA * share)
        level = _EQUIVALENCE_ALPHA * share
        if differs >= needed or same >= _needed_signal(blocks, level, POWER, level):
            return blocks
    return None


def smallest_effect(blocks: int, noise: Floats, alpha: float) -> float | None:
    """Return the smallest effect that so many blocks find with probability POWER, on the scale of the differences.

    `noise` has the differences of past blocks, without their effect; their signs do not matter. Returns None below
    LEAST_BLOCKS, and if so many of the blocks are far off that no effect is found that often.
    """
    if blocks < LEAST_BLOCKS:
        return None
    both = np.concatenate([noise, -noise])
    deviation = mean_and_deviation(both)[1]
    needed = _needed_signal(blocks, alpha)
    low, high = 0.0, needed * mean_and_deviation(clip(both))[1] / 8
    while high > 0 and _signal(both + high) < needed:
        low, high = high, high * _SEARCH_STEP
        if high > _SEARCH_LIMIT * deviation:
            return None
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (low, middle) if _signal(both + middle) >= needed else (middle, high)
    return high


def blocks_that_find(delta: float, noise: Floats, alpha: float, power: float) -> int | None:
    """Return the smallest number of blocks that find an effect of `delta` with this probability; None beyond
    MOST_BLOCKS.

    `noise` has the differences of past blocks, without their effect, on the scale of `delta`.
    """
    signal = _signal(np.concatenate([noise, -noise]) + delta)
    for blocks in range(LEAST_BLOCKS, MOST_BLOCKS + 1):
        if signal >= _needed_signal(blocks, alpha, power):
            return blocks
    return None


def _signal(d: Floats) -> float:
    """Return mean / standard deviation of the clipped differences; infinite without spread or at an infinite
    distance."""
    if not np.isfinite(d).all():
        return math.inf
    mean, deviation = mean_and_deviation(clip(d))
    return mean / deviation if deviation > 0 else math.copysign(math.inf, mean)


@lru_cache(maxsize=4096)
def _needed_signal(blocks: int, alpha: float, power: float = POWER, exact: float = ALPHA) -> float:
    """Return the mean / standard deviation per block at which the test at `alpha` rejects with this probability.

    The exact test rejects at the largest level up to max(alpha, exact) that its steps of 2/2**n permit. If that is the
    first step, all blocks must have the same sign; this probability is that of normal differences. Infinite if so few
    blocks have no such step.
    """
    steps = math.floor(max(alpha, exact) * 2.0 ** (blocks - 1) + 1e-9)
    if steps == 0:
        return math.inf
    exact = float(ndtri(power ** (1 / blocks))) if steps == 1 else _t_signal(blocks, steps * 2.0 ** (1 - blocks), power)
    return max(exact, _t_signal(blocks, alpha, power))


def _t_signal(blocks: int, alpha: float, power: float) -> float:
    return float(stdtrit(blocks - 1, 1 - alpha / 2) + stdtrit(blocks - 1, power)) / math.sqrt(blocks)
