"""Compare the means of two groups of boots. Boots of the same blocks are paired; others get a wider interval. Pure.

Two runs on one device at two times may differ by an offset that no number of boots shows. The interval of unpaired
boots therefore allows for an offset of each run as large as the deviation between its boots: to the squared standard
error of each mean, s**2 / n, the variance s**2 itself is added. Student's t has the degrees of freedom of the smaller
side.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

from wqlab_contracts.enums import Scale

from .effect import Floats, differences, estimate, interval, to_display
from .significance import has_spread, mean_and_deviation, sign_flip

LEVEL = 0.95


@dataclass(frozen=True)
class Difference:
    """Right against left, in percent for scale ratio, in the metric's unit for scale difference."""

    effect: float | None
    """None if the scale has no meaning for the values."""
    ci95: tuple[float, float] | None = None
    p: float | None = None


def paired(left: Sequence[float], right: Sequence[float], scale: Scale) -> Difference:
    """Compare pairs of boots of the same blocks, with the exact test of verdicts. Needs at least one pair."""
    d = differences(np.array(left, dtype=np.float64), np.array(right, dtype=np.float64), scale)
    if d is None:
        return Difference(None)
    middle = estimate(d)
    ends = interval(d, middle, LEVEL) if has_spread(d) else None
    return _shown(middle, ends, sign_flip(d) if ends is not None else None, scale)


def unpaired(left: Sequence[float], right: Sequence[float], scale: Scale) -> Difference:
    """Compare the means of boots of two runs. The interval needs two boots a side and a spread on one."""
    sides = [_additive(values, scale) for values in (left, right)]
    if sides[0] is None or sides[1] is None:
        return Difference(None)
    (mean, deviation), (other, other_deviation) = (mean_and_deviation(side) for side in sides if side is not None)
    effect = other - mean
    if min(len(left), len(right)) < 2 or not (deviation > 0 or other_deviation > 0):
        return _shown(effect, None, None, scale)
    variances = [s * s * (1 + 1 / n) for s, n in ((deviation, len(left)), (other_deviation, len(right)))]
    # The fewer degrees of freedom of both sides: Welch's own claim too much with two boots and skewed noise.
    freedom = min(len(left), len(right)) - 1
    error = math.sqrt(sum(variances))
    half = float(stdtrit(freedom, (1 + LEVEL) / 2)) * error
    p = float(2 * stdtr(freedom, -abs(effect) / error))
    return _shown(effect, (effect - half, effect + half), p, scale)


def without_interval(left: Sequence[float], right: Sequence[float], scale: Scale) -> Difference:
    """Return the difference of the means only, for sides in different environments."""
    return Difference(unpaired(left, right, scale).effect)


def _additive(values: Sequence[float], scale: Scale) -> Floats | None:
    found = np.array(values, dtype=np.float64)
    if scale is Scale.RATIO:
        return None if (found <= 0).any() else np.log(found)
    return found


def _shown(effect: float, ends: tuple[float, float] | None, p: float | None, scale: Scale) -> Difference:
    if ends is None:
        return Difference(to_display(effect, scale))
    return Difference(to_display(effect, scale), (to_display(ends[0], scale), to_display(ends[1], scale)), p)
