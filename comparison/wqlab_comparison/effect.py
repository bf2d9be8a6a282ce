"""Estimate a paired effect and its interval by inverting the test of `significance.sign_flip`.

For an assumed effect t the test of the differences d - t has a p value. The estimate is the t at which the clipped
d - t sum to zero, so that p is 1 (an M-estimate with the scores of P. J. Huber 1964). The interval contains every t
with p > 1 - level, so it contains zero if and only if the test finds no difference, and it is as exact as the test.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from wqlab_contracts.enums import Scale

from .significance import clip, sign_flip

Floats = NDArray[np.float64]

_ESTIMATE_STEPS = 50
_INTERVAL_STEPS = 11
"""Halvings of the step between an effect that is in the interval and one that is not."""


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


def estimate(d: Floats) -> float:
    """Return the effect at which the clipped differences from it sum to zero. Needs at least one difference.

    It has the sign of the sum of the clipped differences, which the test uses.
    """
    low, high = float(d.min()), float(d.max())
    total = _balance(d, 0.0)
    if total == 0 or low == high:
        return 0.0 if total == 0 else low
    low, high = (max(low, 0.0), high) if total > 0 else (low, min(high, 0.0))
    at_low, at_high = _balance(d, low), _balance(d, high)
    small = 1e-13 * (high - low)
    for _ in range(_ESTIMATE_STEPS):  # false position, as modified by M. Dowell, P. Jarratt 1971
        if high - low <= small or at_low <= 0 or at_high >= 0:
            break
        middle = min(max(low + (high - low) * at_low / (at_low - at_high), low + small), high - small)
        balance = _balance(d, middle)
        if balance > 0:
            low, at_high, at_low = middle, at_high / 2, balance
        else:
            high, at_low, at_high = middle, at_low / 2, balance
        if balance == 0:
            return middle
    return low if at_low <= 0 else high if at_high >= 0 else low / 2 + high / 2


def interval(d: Floats, middle: float, level: float = 0.95) -> tuple[float, float] | None:
    """Return an interval of at least `level` confidence around the estimate `middle`.

    None with too few pairs: under 6 for 95 %.
    """
    if 2.0 ** (1 - len(d)) > _alpha(level):
        return None
    return _lower_end(d, middle, level), -_lower_end(-d, -middle, level)


def is_within(d: Floats, low: float, high: float, level: float = 0.90) -> bool:
    """Return True if the whole interval is between the bounds: the tests at both bounds reject (Schuirmann 1987)."""
    sides = ((d, low), (-d, -high))
    return all(math.isinf(end) or (_balance(x, end) > 0 and not _contains(x, end, level)) for x, end in sides)


def _alpha(level: float) -> float:
    return 1 - level + 1e-12


def _contains(d: Floats, effect: float, level: float) -> bool:
    """Return True if the interval of this level contains `effect`: the test does not reject it."""
    return sign_flip(d - effect) > _alpha(level)


def _balance(d: Floats, effect: float) -> float:
    return float(clip(d - effect).sum())


def _lower_end(d: Floats, middle: float, level: float) -> float:
    """Return the lowest effect in the interval.

    Zero is tried first, so that the interval agrees with the test of the differences themselves.
    """
    x = np.sort(d)
    if x[0] == x[-1]:
        return middle
    outside, inside = float(x[0] - (x[-1] - x[0])), middle
    if outside < 0.0 < inside:
        outside, inside = (outside, 0.0) if _contains(x, 0.0, level) else (0.0, inside)
    between = x[(x > outside) & (x < inside)]
    while len(between):  # an end is often one of the differences
        half = len(between) // 2
        if _contains(x, float(between[half]), level):
            inside, between = float(between[half]), between[:half]
        else:
            outside, between = float(between[half]), between[half + 1 :]
    for _ in range(_INTERVAL_STEPS):
        point = outside / 2 + inside / 2
        outside, inside = (outside, point) if _contains(x, point, level) else (point, inside)
    return inside
