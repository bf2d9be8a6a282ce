"""Test for a difference: paired t test, exact sign-flip test, and adjustment over families of tests."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtr, stdtrit

Floats = NDArray[np.float64]

ALPHA = 0.05
EXACT_PAIRS = 32
"""Up to this many pairs every one of the 2**n sign patterns counts; beyond, a seeded random sample of them."""
RANDOM_PATTERNS = 19_999
NORMAL_PAIRS = 1_000
"""Beyond this many pairs the sum of randomly signed differences is taken as normal."""
SEED = 20_210


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


def paired_t(d: Floats) -> float | None:
    """Return the two-sided p of Student's t test that the mean difference is zero; None without spread or with one
    pair."""
    mean, deviation = mean_and_deviation(d)
    if len(d) < 2 or deviation <= _resolution(d):
        return None
    return float(2 * stdtr(len(d) - 1, -abs(mean) / deviation * math.sqrt(len(d))))


def t_interval(d: Floats, level: float) -> tuple[float, float]:
    """Return Student's interval for the mean difference. Needs at least two pairs."""
    mean, deviation = mean_and_deviation(d)
    half = float(stdtrit(len(d) - 1, (1 + level) / 2)) * deviation / math.sqrt(len(d))
    return mean - half, mean + half


def sign_flip(d: Floats) -> float:
    """Return the two-sided p of the exact sign-flip test on the sum (E. J. G. Pitman 1937; R. A. Fisher 1935).

    If the arms do not differ, each difference could as well have had the other sign: p is the share of all 2**n sign
    patterns with a sum at least as far from zero. Exact up to EXACT_PAIRS, by meeting in the middle: the sums of both
    halves, sorted. It cannot be below 2/2**n, so five pairs never reach .05 and six can.
    """
    x = np.sort(d)
    size = float(np.abs(x).max(initial=0.0))
    if size == 0:
        return 1.0
    x = x / size
    reached = abs(float(x.sum())) - 1e-9
    if len(x) > NORMAL_PAIRS:
        return float(2 * ndtr(-reached / math.sqrt(float(np.square(x).sum()))))
    if len(x) > EXACT_PAIRS:
        signs = np.random.default_rng(SEED).integers(0, 2, (RANDOM_PATTERNS, len(x)), dtype=np.int8) * 2 - 1
        return (1 + int((np.abs(signs @ x) >= reached).sum())) / (RANDOM_PATTERNS + 1)
    left, right = _all_sums(x[::2]), np.sort(_all_sums(x[1::2]))
    above = len(right) - np.searchsorted(right, reached - left, side="left")
    below = np.searchsorted(right, -reached - left, side="right")
    return min(1.0, float(above.sum() + below.sum()) / 2.0 ** len(x))


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


def _all_sums(x: Floats) -> Floats:
    sums = np.zeros(1)
    for item in x:
        sums = np.concatenate([sums + item, sums - item])
    return sums


def _resolution(d: Floats) -> float:
    """Return the spread below which differences are rounding of the arithmetic, not noise between boots."""
    return float(np.abs(d).max(initial=0.0)) * 1e-9
