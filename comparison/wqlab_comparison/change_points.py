"""Find the points of a history from which a metric has another level.

Method: kernel change point detection with the Gaussian kernel (Arlot, Celisse and Harchaoui, "A Kernel Multiple
Change-point Algorithm via Model Selection", JMLR 20, 2019), as in the library ruptures (Truong, Oudre and Vayatis,
Signal Processing 167, 2020). The kernel is bounded: a single outlier costs the same however far away it is, so that it
neither makes a change point nor moves one, as it does with squared differences (Fearnhead and Rigaill, "Changepoint
Detection in the Presence of Outliers", JASA 114, 2019). A found point is a suspicion: the values are of different days,
so that only a paired run of both sides shows that the level has changed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wqlab_contracts.enums import Scale

LEAST_POINTS = 5
"""Points that a level has at least, unless the values are exact."""
LEAST_EXACT = 2
"""Points that a level of exact values has at least."""
_KERNEL_WIDTH = 3.0
"""Standard deviation of the Gaussian kernel, in spreads: values farther apart count as unrelated."""
_PENALTY = 3.0
"""Penalty of a change, in units of variance * log(points). With it, at most 1 of 40 series without a change has one."""
_DIFFERENCE_PER_SD = 0.9539
"""Median absolute difference of two neighbouring values, in standard deviations of normally distributed values."""


@dataclass(frozen=True)
class Level:
    """Neighbouring points of a history with one level."""

    start: int
    """Index of the first point."""
    end: int
    """Index after the last point."""
    middle: float
    """Median of the values."""
    spread: float
    """Standard deviation of a value around the level, estimated from neighbouring values; 0 if they are equal."""


def find_levels(values: Sequence[float], scale: Scale) -> list[Level]:
    """Return the levels of a history, oldest first; the first point of each but the first is a change point.

    `values`: one per point, oldest first, all measured in one environment. With `Scale.RATIO` values are compared as
    logarithms if all are positive. Values of which most equal the one before are exact: each level of two equal values
    counts. Returns an empty list without values.
    """
    if not values:
        return []
    given = np.asarray(values, dtype=float)
    logarithms = scale is Scale.RATIO and bool((given > 0).all())
    compared = np.log(given) if logarithms else given
    starts = _exact_starts(compared) if _is_exact(compared) else _noisy_starts(compared)
    bounds = [0, *starts, len(given)]
    return [_level(given, start, end) for start, end in itertools.pairwise(bounds)]


def _level(values: np.ndarray, start: int, end: int) -> Level:
    part = values[start:end]
    return Level(start=start, end=end, middle=float(np.median(part)), spread=_spread(part))


def _spread(values: np.ndarray) -> float:
    return float(np.median(np.abs(np.diff(values)))) / _DIFFERENCE_PER_SD if len(values) > 1 else 0.0


def _is_exact(values: np.ndarray) -> bool:
    """Return True if at least half of the values equal the one before."""
    return len(values) > 1 and float(np.median(np.abs(np.diff(values)))) == 0.0


def _noisy_starts(values: np.ndarray) -> list[int]:
    if len(values) < 2 * LEAST_POINTS:
        return []
    import ruptures  # it imports scipy.stats, which would double the time in which the server starts

    scaled = (values / _spread(values)).reshape(-1, 1)
    width = {"gamma": 1 / (2 * _KERNEL_WIDTH**2)}
    detector = ruptures.KernelCPD(kernel="rbf", min_size=LEAST_POINTS, params=width).fit(scaled)
    # For values closer than the kernel's width, its cost is their squared difference in units of that width.
    penalty = _PENALTY * math.log(len(values)) / _KERNEL_WIDTH**2
    return [int(each) for each in detector.predict(pen=penalty)[:-1]]


def _exact_starts(values: np.ndarray) -> list[int]:
    """Return where a run of equal values begins that is long enough, and differs from the one before it.

    A single value between two equal ones is an outlier, and no end of a run.
    """
    odd = np.flatnonzero(values[:-2] == values[2:]) + 1
    values = values.copy()
    values[odd] = values[odd - 1]
    edges = [0, *(np.flatnonzero(np.diff(values)) + 1).tolist(), len(values)]
    pairs = itertools.pairwise(edges)
    runs = [(start, float(values[start])) for start, end in pairs if end - start >= LEAST_EXACT]
    return [start for (_, before), (start, value) in itertools.pairwise(runs) if value != before]
