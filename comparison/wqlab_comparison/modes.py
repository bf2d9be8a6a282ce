"""Recognise boots that fall into two modes: some at one level, the others at another, with nothing between.

The boots are split where the gap between neighbours is largest compared with the spread of both groups. The limit was
chosen by simulation so that boots of one mode (normal, heavy tails, uniform, skewed) are hardly ever split:
benchmarks/modes.py, and docs/comparison.md for the figures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from wqlab_contracts.api.report import Mode

Floats = NDArray[np.float64]

LEAST_BOOTS = 8
"""Fewest boots, of one arm or of both together, that can be said to have two modes."""
_LEAST_IN_MODE = 3
_LEAST_SHARE = 5
"""A mode has at least one boot in so many; fewer are outliers."""
_LEAST_OF_ARM = 1
"""Boots of each arm in each mode, if both arms are split together: the effect of a patch is not two modes."""


def find_modes(
    reference: Sequence[float], candidate: Sequence[float], least: float
) -> tuple[tuple[Mode, Mode] | None, tuple[Mode, Mode] | None]:
    """Return the two modes of each arm, the lower one first; None for an arm with one mode.

    The values are those of boots on one device. Both arms are tried together first, because they have more boots, then
    each alone. Modes closer than `least`, in the unit of the values, are not reported.
    """
    a, b = np.array(reference, float), np.array(candidate, float)
    border = split(np.concatenate([a, b]), least)
    if border is not None and all(min((x < border).sum(), (x > border).sum()) >= _LEAST_OF_ARM for x in (a, b)):
        return _modes(a, border), _modes(b, border)
    borders = split(a, least), split(b, least)
    return tuple(None if at is None else _modes(x, at) for x, at in zip((a, b), borders, strict=True))  # type: ignore[return-value]


def split(values: Floats, least: float = 0.0) -> float | None:
    """Return a value between the two modes of the boots, or None if they have one mode."""
    n = len(values)
    if n < LEAST_BOOTS:
        return None
    size = float(np.abs(values).max()) or 1.0
    x = np.sort(values / size)
    fewest = max(_LEAST_IN_MODE, math.ceil(n / _LEAST_SHARE))
    lower = np.arange(fewest, n - fewest + 1)  # possible numbers of boots in the lower group
    upper = n - lower
    z = x - x[n // 2]
    sums, squares = np.cumsum(z)[lower - 1], float(z @ z)
    rest = float(z.sum()) - sums
    within = np.sqrt(np.maximum(squares - sums**2 / lower - rest**2 / upper, 0.0) / (n - 2))
    # Whole numbers next to each other are one mode.
    resolution = 1 / size if (values == np.round(values)).all() else 1e-9
    ratio = (x[lower] - x[lower - 1]) / np.maximum(within, resolution)
    ratio[(rest / upper - sums / lower) * size < least] = 0.0
    best = int(np.argmax(ratio))
    border = float(x[lower[best] - 1] + x[lower[best]]) / 2 * size
    return border if ratio[best] > gap_limit(n) else None


def gap_limit(boots: int) -> float:
    """Return the gap between two modes, in standard deviations within the modes, from which they are distinguished."""
    return 1.5 + 50 / boots


def _modes(x: Floats, border: float) -> tuple[Mode, Mode]:
    low, high = x[x < border], x[x > border]
    return Mode(mean=float(low.mean()), n=len(low)), Mode(mean=float(high.mean()), n=len(high))
