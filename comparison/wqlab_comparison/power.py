"""Estimate sample sizes: blocks needed for a verdict, and the smallest detectable effect.

Both use the mean and the standard deviation of the clipped differences, as the test does (significance.py), in the
sample size formula of the t test, n = ((t_error + t_power) s / mean)**2 (J. L. Fleiss 1986).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import ndtri, stdtr, stdtrit

from .significance import ALPHA, Floats, clip, is_fine, mean_and_deviation

LEAST_BLOCKS = 6
"""Fewer blocks cannot reach p <= .05 in the exact two-sided sign-flip test: 2/2**5 = .0625."""
MOST_BLOCKS = 100
"""Largest number of blocks that is ever recommended."""
POWER = 0.8
"""Probability of finding an effect of the assumed size: four cases of five."""
_SEARCH_STEP = 1.1
_SEARCH_LIMIT = 20.0
"""Largest effect that is tried, in standard deviations."""
_MANY = 1000
"""Degrees of freedom of a spread that was measured before."""


def blocks_of_family(tests: int) -> int:
    """Return the smallest number of blocks with which the exact test decides in a family of so many tests.

    With fewer its p has too few steps, and a t test with few degrees of freedom stands in (`looks.continuous_p`).
    """
    return next(blocks for blocks in range(LEAST_BLOCKS, MOST_BLOCKS) if tests < 2 or is_fine(blocks, tests))


def blocks_that_decide(
    d: Floats,
    middle: float,
    delta: tuple[float, float],
    levels: tuple[float, float],
    *,
    spread: float | None = None,
) -> int | None:
    """Return the smallest total number of blocks above `len(d)` that gives a verdict with probability POWER.

    See `chance_of_decision` for the arguments. Returns None beyond MOST_BLOCKS.
    """
    for blocks in range(max(len(d) + 1, LEAST_BLOCKS), MOST_BLOCKS + 1):
        if chance_of_decision(d, middle, delta, blocks, levels, spread=spread) >= POWER:
            return blocks
    return None


def chance_of_decision(
    d: Floats,
    middle: float,
    delta: tuple[float, float],
    blocks: int,
    levels: tuple[float, float],
    *,
    spread: float | None = None,
    only_relevant: bool = True,
) -> float:
    """Return the probability that `blocks` blocks, len(d) of them measured, show a relevant effect or equivalence.

    An effect is relevant if the interval is beyond `delta`, the thresholds on the scale of the differences. Without
    `only_relevant` every effect that differs from zero counts. The mean of all blocks is predicted from the estimate
    `middle` and the spread of the differences `d`, with a flat prior (D. J. Spiegelhalter, L. S. Freedman, P. R.
    Blackburn 1986), so few blocks with a large effect promise little. `levels` are those of the two-sided test of a
    difference in its family, and alone. `spread`: standard deviation of a block's difference as the lab measured it
    before; the larger one applies.
    """
    n = len(d)
    seen = mean_and_deviation(clip(d - middle))[1] if n > 1 else math.nan
    deviation = seen if spread is None else max(spread, 0.0 if math.isnan(seen) else seen)
    if math.isnan(deviation) or deviation == 0 or blocks <= n:
        return 1.0
    degrees = n - 1 if spread is None else _MANY
    apart = deviation * math.sqrt((blocks - n) / (blocks * n))

    def below(limit: float) -> float:
        return float(limit > 0) if math.isinf(limit) else float(stdtr(degrees, (limit - middle) / apart))

    in_family, alone = levels
    differs = deviation * _needed_signal(blocks, in_family, 0.5, alone)
    beyond = deviation * _needed_signal(blocks, alone, 0.5, alone)
    inside = deviation * _needed_signal(blocks, 2 * alone, 0.5, 2 * alone)
    relevant = (delta[0] - beyond, delta[1] + beyond) if only_relevant else (0.0, 0.0)
    found = below(min(-differs, relevant[0])) + 1 - below(max(differs, relevant[1]))
    equal = max(0.0, below(delta[1] - inside) - below(delta[0] + inside))
    return min(1.0, found + equal)


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
    """Return the smallest number of blocks that show an effect of twice `delta` as relevant, and none as equivalent,
    with this probability; None beyond MOST_BLOCKS.

    `noise` has the differences of past blocks, without their effect, on the scale of `delta`. `alpha` is the level of
    the test in its family. An effect of `delta` itself is never shown to be relevant: it is at the threshold.
    """
    both = np.concatenate([noise, -noise])
    from_zero, from_threshold = _signal(both + 2 * delta), _signal(both + delta)
    for blocks in range(LEAST_BLOCKS, MOST_BLOCKS + 1):
        if from_zero >= _needed_signal(blocks, alpha, power) and from_threshold >= _needed_signal(blocks, ALPHA, power):
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
