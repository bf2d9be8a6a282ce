"""Estimate sample sizes: blocks needed for a verdict, and the smallest detectable effect."""

from __future__ import annotations

import math

from scipy.special import stdtrit

LEAST_BLOCKS = 6
"""Fewer blocks cannot reach p <= .05 in the exact two-sided sign-flip test: 2/2**5 = .0625."""
MOST_BLOCKS = 100
"""Largest number of blocks that is ever recommended."""
POWER = 0.8
"""Probability of finding an effect of the assumed size: four cases of five."""


def blocks_that_decide(n: int, mean: float, deviation: float, delta: tuple[float, float], alpha: float) -> int | None:
    """Return the smallest total number of blocks above `n` that gives a verdict with probability POWER.

    Assumes that the true effect and the spread between blocks equal the observed ones, which are uncertain with few
    blocks. A verdict is a significant difference (t test at `alpha`) or equivalence (TOST at .05 within
    `delta`, on the scale of the differences). Sample size by the shifted central t,
    n = ((t_error + t_power) s / gap)**2 (J. L. Fleiss 1986 for the difference; S. A. Julious 2004 for equivalence).
    Returns None beyond MOST_BLOCKS.
    """
    to_zero = abs(mean)
    to_delta = min(mean - delta[0], delta[1] - mean)
    for blocks in range(max(n + 1, LEAST_BLOCKS), MOST_BLOCKS + 1):
        error = deviation / math.sqrt(blocks)
        power = float(stdtrit(blocks - 1, POWER))
        differs = to_zero >= (float(stdtrit(blocks - 1, 1 - alpha / 2)) + power) * error
        same = to_delta >= (float(stdtrit(blocks - 1, 0.95)) + power) * error
        if differs or same:
            return blocks
    return None


def smallest_effect(blocks: int, deviation: float, alpha: float) -> float | None:
    """Return the smallest mean difference that a t test at `alpha` finds with probability POWER.

    On the scale of the differences; the formula of `blocks_that_decide`, solved for the effect. None below
    LEAST_BLOCKS.
    """
    if blocks < LEAST_BLOCKS:
        return None
    t_error, t_power = (float(stdtrit(blocks - 1, each)) for each in (1 - alpha / 2, POWER))
    return (t_error + t_power) * deviation / math.sqrt(blocks)
