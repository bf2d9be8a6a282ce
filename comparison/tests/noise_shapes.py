"""Noise of boots in several shapes, and earlier rules for a difference, for simulations and benchmarks."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from wqlab_comparison import significance

Floats = NDArray[np.float64]
Rng = np.random.Generator


def normal(rng: Rng, sets: int, blocks: int) -> Floats:
    """Return boots in percent, shape (sets, blocks, 2 arms): boots vary by .6 %, the median of five runs by .17 %."""
    return rng.normal(0, math.hypot(0.6, 0.3 * 1.25 / math.sqrt(5)), (sets, blocks, 2))


def t3(rng: Rng, sets: int, blocks: int) -> Floats:
    """Student's t with three degrees of freedom: heavy tails."""
    return 0.6 * rng.standard_t(3, (sets, blocks, 2))


def bimodal(rng: Rng, sets: int, blocks: int) -> Floats:
    """Half of the boots are 3 % slower; noise of .3 % around both modes."""
    return normal(rng, sets, blocks) / 2 - 3 * (rng.random((sets, blocks, 2)) < 0.5)


def uneven_modes(rng: Rng, sets: int, blocks: int) -> Floats:
    """Three of ten boots are 5 % slower."""
    return normal(rng, sets, blocks) - 5 * (rng.random((sets, blocks, 2)) < 0.3)


def sticky(rng: Rng, sets: int, blocks: int) -> Floats:
    """Two modes, 5 % apart, that last for about seven boots; half of the blocks boot the candidate first."""
    change = rng.random((sets, 2 * blocks)) < 0.15
    change[:, 0] = rng.random(sets) < 0.5
    mode = (np.cumsum(change, axis=1) % 2).reshape(sets, blocks, 2)
    swap = rng.permuted(np.tile(np.arange(blocks) % 2 == 1, (sets, 1)), axis=1)
    slow: Floats = np.where(swap[..., None], mode[..., ::-1], mode)
    return normal(rng, sets, blocks) - 5 * slow


def outliers(rng: Rng, sets: int, blocks: int) -> Floats:
    """One boot in 20 is 15 % slower."""
    return normal(rng, sets, blocks) - 15 * (rng.random((sets, blocks, 2)) < 0.05)


SHAPES: dict[str, Callable[[Rng, int, int], Floats]] = {
    "normal": normal,
    "t3": t3,
    "bimodal": bimodal,
    "uneven modes": uneven_modes,
    "sticky modes": sticky,
    "outliers": outliers,
}
HEAVY = ("t3", "sticky modes", "outliers")
BLOCKS = (6, 8, 10, 16)


def differences(shape: str, rng: Rng, sets: int, blocks: int, effect: float = 0.0) -> Floats:
    """Return paired differences in percent, shape (sets, blocks)."""
    boots = SHAPES[shape](rng, sets, blocks)
    return boots[..., 1] - boots[..., 0] + effect


def is_claimed(d: Floats) -> bool:
    """Return True if the current method finds a difference, alone in its family."""
    return significance.sign_flip(d) <= significance.ALPHA


def is_claimed_by_two_tests(d: Floats) -> bool:
    """Return True if a paired t test and the sign-flip test of the sum both find a difference: the earlier method."""
    p = significance.paired_t(d)
    return p is not None and p <= significance.ALPHA and is_claimed_by_sum(d)


def is_claimed_by_sum(d: Floats) -> bool:
    """Return True if the sign-flip test of the sum, without clipping, finds a difference."""
    return significance.exact_share(d) <= significance.ALPHA


def is_claimed_by_ranks(d: Floats) -> bool:
    """Return True if Wilcoxon's exact signed-rank test finds a difference (data without ties)."""
    ranks = np.argsort(np.argsort(np.abs(d))) + 1
    positive = int(ranks[d > 0].sum())
    least = min(positive, len(d) * (len(d) + 1) // 2 - positive)
    return 2 * float(_signed_rank_distribution(len(d))[least]) <= significance.ALPHA


@lru_cache
def _signed_rank_distribution(n: int) -> Floats:
    p = np.zeros(n * (n + 1) // 2 + 1)
    p[0] = 1.0
    for rank in range(1, n + 1):
        shifted = np.concatenate([np.zeros(rank), p[:-rank]])
        p = (p + shifted) / 2
    return np.cumsum(p)


def drifting(rng: Rng, sets: int, blocks: int, segments: tuple[int, ...] = (6, 10, 16)) -> Floats:
    """Normal boots on a machine that drifts by .15 % from boot to boot. Half of the blocks between two looks, in random
    order, boot the candidate first."""
    boots = normal(rng, sets, blocks)
    ends = [*(end for end in segments if end < blocks), blocks]
    for start, end in zip([0, *ends[:-1]], ends, strict=True):
        first = np.tile(np.arange(end - start) % 2 == 1, (sets, 1))
        later = ~rng.permuted(first, axis=1)
        boots[:, start:end, 1] += np.where(later, 0.15, -0.15)
    return boots
