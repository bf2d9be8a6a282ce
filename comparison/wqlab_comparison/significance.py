"""Test for a difference: exact sign-flip test on clipped differences, and adjustment over families of tests.

A few boots far from the others (one boot in 20 is 15 % slow) make the spread, and with it a t test, useless. Therefore
each difference is clipped: one that is larger than CLIP times the typical one counts as CLIP times the typical one
(scores of P. J. Huber 1964). The test on the clipped differences is exact whatever their distribution is, because the
limit depends only on their sizes and not on their signs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

Floats = NDArray[np.float64]

ALPHA = 0.05
CLIP = 2.5
"""Multiple of the median size at which differences are clipped, chosen by simulation (benchmarks/verdict_power.py)."""
EXACT_PAIRS = 20
"""Up to this many pairs every one of the 2**n sign patterns counts; beyond, their distribution is approximated."""
LEAST_PATTERNS = 8
"""Pairs of opposite sign patterns that must fit into the level of a test in a family; with fewer, the exact p is too
coarse to be adjusted and the t test is adjusted instead."""


def mean_and_deviation(d: Floats) -> tuple[float, float]:
    """Return mean and sample standard deviation (n - 1); scaled first, so that huge and tiny values do not overflow."""
    size = float(np.abs(d).max(initial=0.0))
    if size == 0:
        return 0.0, 0.0 if len(d) > 1 else math.nan
    scaled = np.sort(d) / size
    n = len(scaled)
    if scaled[0] == scaled[-1]:
        return float(d[0]), 0.0 if n > 1 else math.nan
    mean = float(scaled.sum()) / n
    apart = scaled - mean
    return mean * size, math.sqrt(float(apart @ apart) / (n - 1)) * size


def has_spread(d: Floats) -> bool:
    """Return True if the differences vary by more than rounding of the arithmetic. Needs two pairs."""
    return len(d) > 1 and mean_and_deviation(d)[1] > float(np.abs(d).max()) * 1e-9


def clip(d: Floats) -> Floats:
    """Return the differences, each limited to +-CLIP times the median size of those that are not zero."""
    sizes = np.sort(np.abs(d))
    sizes = sizes[np.searchsorted(sizes, 0.0, side="right") :]
    if not len(sizes):
        return d
    limit = CLIP * (float(sizes[(len(sizes) - 1) // 2]) / 2 + float(sizes[len(sizes) // 2]) / 2)
    return d if sizes[-1] <= limit else np.minimum(np.maximum(d, -limit), limit)


def sign_flip(d: Floats) -> float:
    """Return the two-sided p of the exact sign-flip test on the sum of the clipped differences.

    If the arms do not differ, each difference could as well have had the other sign: p is the share of all 2**n sign
    patterns with a sum at least as far from zero (R. A. Fisher 1935; E. J. G. Pitman 1937). Exact up to EXACT_PAIRS, by
    meeting in the middle: the sums of both halves, sorted. It cannot be below 2/2**n, so five pairs never reach .05 and
    six can. Beyond, see `box_andersen`.
    """
    size = float(np.abs(d).max(initial=0.0))
    if size == 0:
        return 1.0
    if len(d) > EXACT_PAIRS:
        return box_andersen(d)
    return exact_share(clip(d / size))


def exact_share(u: Floats) -> float:
    """Return the share of all sign patterns of `u` whose sum is at least as far from zero. Needs a value other than
    zero; time and memory grow with 2**(n / 2)."""
    x = np.sort(u)
    reached = abs(float(x.sum())) - 1e-9 * float(np.abs(x).max())
    left, right = _signs(len(x[::2])) @ x[::2], _signs(len(x[1::2])) @ x[1::2]
    right.sort()
    above = len(left) * len(right) - int(np.searchsorted(right, reached - left, side="left").sum())
    return min(1.0, 2 * above / 2.0 ** len(x))  # as many sums are below -reached


def box_andersen(d: Floats) -> float:
    """Return a continuous approximation of `sign_flip`: Student's t with the fourth moment of the sign-flip sums.

    G. E. P. Box, S. L. Andersen 1955: z = sum(u) / sqrt(sum(u**2)) has the fourth moment 3 - 2k over the sign patterns,
    k = sum(u**4) / sum(u**2)**2. The t test takes that of normal u; here z is taken as that of n = 3/k - 2 normal ones.
    """
    size = float(np.abs(d).max(initial=0.0))
    if size == 0:
        return 1.0
    u = clip(d / size)
    squares = np.square(u)
    total = float(squares.sum())
    pairs = 3 * total * total / float(squares @ squares) - 2
    z2 = float(u.sum()) ** 2 / total
    if pairs <= 1 + 1e-9:  # one difference that is not zero
        return 1.0
    t = math.sqrt(z2 * (pairs - 1) / max(pairs - z2, 1e-12))
    return float(2 * stdtr(pairs - 1, -t))


def paired_t(d: Floats) -> float | None:
    """Return the two-sided p of Student's t test that the mean difference is zero; None without spread or with one
    pair."""
    if not has_spread(d):
        return None
    mean, deviation = mean_and_deviation(d)
    return float(2 * stdtr(len(d) - 1, -abs(mean) / deviation * math.sqrt(len(d))))


def is_fine(pairs: int, family: float) -> bool:
    """Return True if the sign patterns of so many pairs are fine enough for a test in a family of this size."""
    return 2.0 ** (pairs - 1) * ALPHA / family >= LEAST_PATTERNS


def holm(ps: Sequence[float]) -> list[float]:
    """Return adjusted p values that bound the chance of any false positive in the family (S. Holm 1979)."""
    order = sorted(range(len(ps)), key=ps.__getitem__)
    adjusted = [1.0] * len(ps)
    highest = 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, ps[index] * (len(ps) - rank)))
        adjusted[index] = highest
    return adjusted


def benjamini_hochberg(ps: Sequence[float]) -> list[float]:
    """Return adjusted p values that bound the share of false positives among the positives (Y. Benjamini, Y.
    Hochberg 1995)."""
    order = sorted(range(len(ps)), key=ps.__getitem__, reverse=True)
    adjusted = [1.0] * len(ps)
    lowest = 1.0
    for rank, index in enumerate(order):
        lowest = min(lowest, ps[index] * len(ps) / (len(ps) - rank))
        adjusted[index] = lowest
    return adjusted


@lru_cache(maxsize=32)
def _signs(n: int) -> Floats:
    """Return all patterns of n signs, shape (2**n, n)."""
    negative = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    return (1 - 2 * negative).astype(np.float64)
