"""Predict how many blocks a run with looks takes if there is no difference, from the noise of past blocks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from . import effect, looks
from .looks import Cut
from .power import LEAST_BLOCKS, chance_of_decision
from .significance import ALPHA, Floats
from .stopping import FUTILE

_RUNS = 60
"""Simulated runs; the mean number of blocks then has a standard error of about half a block."""


def expected_blocks(noise: Floats, bounds: tuple[float, float], planned: Sequence[int]) -> float:
    """Return the mean number of blocks of a run with one primary comparison and these looks, without a difference.

    `noise`: differences of past blocks without their effect, whose signs do not matter; `bounds`: the thresholds, on
    the same scale. The runs are drawn with a fixed seed, so equal input gives an equal result.
    """
    rng = np.random.default_rng(0)
    sizes = np.abs(noise)
    return float(np.mean([_blocks(_drawn(rng, sizes, planned[-1]), bounds, planned) for _ in range(_RUNS)]))


def _drawn(rng: np.random.Generator, sizes: Floats, blocks: int) -> Floats:
    drawn: Floats = rng.choice(sizes, blocks) * rng.choice([-1.0, 1.0], blocks)
    return drawn


def _blocks(d: Floats, bounds: tuple[float, float], planned: Sequence[int]) -> int:
    """Return the number of blocks after which the looks stop a run with these differences."""
    counted = looks.with_share(planned)
    for index, number in enumerate(counted[:-1]):
        seen = d[:number]
        cuts = [Cut(end - 1, looks.share(each)) for each, end in enumerate(counted[: index + 1])]
        parts = looks.cut(seen, range(number), cuts)
        middle = effect.estimate(seen)
        if looks.is_beyond(parts, middle, *bounds) or looks.is_within(parts, middle, *bounds):
            return number
        level = ALPHA * looks.share(len(counted) - 1)
        chance = chance_of_decision(seen, middle, bounds, counted[-1], (level, level), only_relevant=False)
        if number >= LEAST_BLOCKS and chance < FUTILE:
            return number
    return planned[-1]
