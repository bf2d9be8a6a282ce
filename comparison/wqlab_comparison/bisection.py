"""Find the commit that changed a metric, by measurements that are noisy.

Model: one of the commits between a good and a bad one, the culprit, shifts the metric by a known effect; it and all
later commits have the shift. A measurement compares a commit with the good one in paired blocks. Bayes' rule gives the
probability of each commit to be the culprit; the next commit to measure is the one whose measurement tells most
(Burnashev and Zigangirov, "An interval estimation problem for controlled observations", Problems of Information
Transmission 10, 1974). The result is a suspicion: the culprit is confirmed against its parent with a full run.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

CONFIDENCE = 0.95
"""Probability at which a bisection ends."""
_DEGREES = 5
"""Degrees of freedom of the noise: heavier tails than a normal distribution, so that no single block decides."""
_DOUBT = 0.01
"""Least probability of each outcome under either hypothesis: a measurement may be wrong for a reason not modelled."""


@dataclass(frozen=True)
class Shift:
    """Difference between the good and the bad commit, as a paired run of both measured it."""

    effect: float
    """In any unit, not zero."""
    deviation: float
    """Standard deviation of a block's difference, in the same unit; positive."""

    def __post_init__(self) -> None:
        if self.effect == 0 or not self.deviation > 0:
            raise ValueError("a bisection needs an effect that is not zero and a deviation above zero")


@dataclass(frozen=True)
class Crash:
    """The bad commit fails in some of its boots, and the good one in none."""

    rate: float
    """Share of the bad commit's boots that fail, above 0 and at most 1."""

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise ValueError(f"the rate of failures is {self.rate}, but must be above 0 and at most 1")


@dataclass(frozen=True)
class Measurement:
    """Measured differences of a commit from the good one, for a shift."""

    commit: int
    """Position after the good commit, from 1; the bad commit is the last."""
    differences: tuple[float, ...]
    """One per block."""


@dataclass(frozen=True)
class Boots:
    """Boots of a commit, for a crash."""

    commit: int
    passed: int
    failed: int


@dataclass(frozen=True)
class Found:
    """Commits of which one is the culprit; more than one if those between them cannot be built."""

    first: int
    last: int
    probability: float


Observation = Measurement | Boots


def probabilities(commits: int, change: Shift | Crash, observations: Sequence[Observation]) -> np.ndarray:
    """Return the probability of each commit to be the culprit; index 0 is position 1. Shape (commits,), sum 1.

    Raises ValueError for observations of commits that are not in the range, and TypeError for those that do not fit
    the change.
    """
    logarithms = np.zeros(commits)
    for each in observations:
        if not 1 <= each.commit <= commits:
            raise ValueError(f"commit {each.commit} is not between 1 and {commits}")
        bad, good = _log_likelihoods(change, each)
        logarithms[: each.commit] += bad  # a culprit at or before the commit: it has the shift
        logarithms[each.commit :] += good
    weights = np.exp(logarithms - logarithms.max())
    return np.asarray(weights / weights.sum())


def next_commit(chances: np.ndarray, unusable: Collection[int] = ()) -> int | None:
    """Return the position whose measurement tells most: where the probabilities before and after are most equal.

    `unusable` are positions that cannot be built or measured. The last position is the bad commit, which needs no
    measurement. Returns None if no other position can be measured.
    """
    bad = np.cumsum(chances)[:-1]
    usable = [position for position in range(1, len(chances)) if position not in unusable]
    if not usable:
        return None
    return min(usable, key=lambda position: (abs(float(bad[position - 1]) - 0.5), position))


def conclude(chances: np.ndarray, unusable: Collection[int] = (), confidence: float = CONFIDENCE) -> Found | None:
    """Return the culprit, or the shortest range that contains it, if its probability reaches `confidence`.

    A commit that can be measured ends a range: only it and the unusable ones directly before it look alike.
    """
    best = None
    start = 1
    for position in range(1, len(chances) + 1):
        if position in unusable:
            continue
        probability = float(chances[start - 1 : position].sum())
        if best is None or probability > best.probability:
            best = Found(start, position, probability)
        start = position + 1
    return best if best is not None and best.probability >= confidence else None


def _log_likelihoods(change: Shift | Crash, seen: Observation) -> tuple[float, float]:
    """Return the logarithms of the likelihood of an observation if the commit has the change, and if it has not."""
    if isinstance(change, Shift) and isinstance(seen, Measurement):
        shifted = [(value - change.effect) / change.deviation for value in seen.differences]
        equal = [value / change.deviation for value in seen.differences]
        bad, good = (float(stats.t.logpdf(each, _DEGREES).sum()) for each in (shifted, equal))
    elif isinstance(change, Crash) and isinstance(seen, Boots):
        bad = seen.passed * math.log(max(1 - change.rate, _DOUBT)) + seen.failed * math.log(change.rate)
        good = seen.failed * math.log(_DOUBT)
    else:
        raise TypeError("measurements belong to a shift, and boots to a crash")
    most = max(bad, good)
    return most + math.log(math.exp(bad - most) + _DOUBT), most + math.log(math.exp(good - most) + _DOUBT)
