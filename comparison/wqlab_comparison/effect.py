"""Estimate a paired effect: the Hodges-Lehmann estimate and its distribution-free interval.

Source: M. Hollander, D. A. Wolfe, E. Chicken, Nonparametric Statistical Methods, 3rd ed. (2014), sections 3.2 and 3.3
(estimate: J. L. Hodges, E. L. Lehmann 1963; interval: J. W. Tukey 1949): the Walsh averages (d_i + d_j)/2, i <= j, of
the n paired differences; their median is the estimate, and counting K in from both ends, K from the exact
null distribution of the Wilcoxon signed-rank statistic, gives the interval.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from wqlab_contracts.enums import Scale

Floats = NDArray[np.float64]

_ALL_WALSH = 400
"""Up to this many pairs all Walsh averages are formed; beyond, the needed ones are found by bisection."""
_EXACT_RANKS = 100
"""Up to this many pairs the signed-rank distribution is exact; beyond, its normal approximation."""


def differences(reference: Floats, candidate: Floats, scale: Scale) -> Floats | None:
    """Return one difference per pair, on the additive scale: log(candidate/reference) or candidate - reference.

    Returns None if the scale has no meaning for the values: zero or negative ones have no ratio, and a result beyond
    floating point is no number.
    """
    if scale is Scale.RATIO:
        if (reference <= 0).any() or (candidate <= 0).any():
            return None
        return np.log(candidate) - np.log(reference)
    with np.errstate(over="ignore"):
        result = candidate - reference
    return result if np.isfinite(result).all() else None


def to_display(effect: float, scale: Scale) -> float:
    """Convert an effect from the additive scale: percent for `ratio`, the metric's unit for `difference`."""
    return float(np.expm1(min(effect, 700.0)) * 100) if scale is Scale.RATIO else effect


def bounds(delta: float, scale: Scale) -> tuple[float, float]:
    """Convert +-delta (percent or the metric's unit) to the scale of `differences`."""
    if scale is Scale.DIFFERENCE:
        return -delta, delta
    return (math.log1p(-delta / 100) if delta < 100 else -math.inf), math.log1p(delta / 100)


def hodges_lehmann(d: Floats) -> float:
    """Return the median of the Walsh averages. Needs at least one difference."""
    return estimate(d)[0]


def interval(d: Floats, level: float = 0.95) -> tuple[float, float] | None:
    """Return an interval of at least `level` confidence; None with too few pairs (under 6 for 95 %)."""
    return estimate(d, level)[1]


def estimate(d: Floats, level: float = 0.95) -> tuple[float, tuple[float, float] | None]:
    """Return the Hodges-Lehmann estimate and interval, from one list of Walsh averages."""
    count = len(d) * (len(d) + 1) // 2
    inward = _count_in(len(d), level)
    ranks = [(count + 1) // 2, count // 2 + 1, *([inward, count + 1 - inward] if inward else [])]
    low, high, *ends = _walsh(d, ranks)
    middle = low if low == high else low / 2 + high / 2
    return middle, (ends[0], ends[1]) if ends else None


def _walsh(d: Floats, ranks: list[int]) -> list[float]:
    """Return the Walsh averages of these ranks, counted from 1."""
    if len(d) <= _ALL_WALSH:
        half = np.sort(d) / 2
        averages = np.sort((half[:, None] + half)[_upper(len(d))])
        return [float(averages[rank - 1]) for rank in ranks]
    x = np.sort(d)
    return [_walsh_by_bisection(x, rank) for rank in ranks]


@lru_cache(maxsize=64)
def _upper(n: int) -> NDArray[np.bool_]:
    return np.triu(np.ones((n, n), np.bool_))


def _walsh_by_bisection(x: Floats, rank: int) -> float:
    """Return one Walsh average from sorted x in O(n log n) steps and O(n) memory, to one part in 2**48 of the range."""
    low, high = float(x[0]), float(x[-1])
    places = np.arange(len(x))
    for _ in range(48):
        middle = low / 2 + high / 2
        partners = np.searchsorted(x, 2 * middle - x, side="right")
        at_most = int(np.maximum(partners - places, 0).sum())
        low, high = (low, middle) if at_most >= rank else (middle, high)
    return high


@lru_cache(maxsize=1024)
def _count_in(n: int, level: float) -> int:
    """Return the largest K with P(T+ <= K - 1) <= (1 - level)/2 for the signed-rank statistic T+ of n pairs; 0 if
    none."""
    tail = (1 - level) / 2
    if n > _EXACT_RANKS:
        mean, variance = n * (n + 1) / 4, n * (n + 1) * (2 * n + 1) / 24
        return math.floor(mean + float(ndtri(tail)) * math.sqrt(variance))
    probability = np.zeros(n * (n + 1) // 2 + 1)
    probability[0] = 1.0
    for rank in range(1, n + 1):
        probability[rank:] = probability[rank:] / 2 + probability[:-rank] / 2
        probability[:rank] /= 2
    return int(np.searchsorted(np.cumsum(probability), tail + 1e-12, side="right"))
