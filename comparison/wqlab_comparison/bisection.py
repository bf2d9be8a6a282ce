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
    """Failure of the bad commit, which occurs in some or all of its boots and in none of the good commit."""

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


@dataclass(frozen=True)
class Confirmation:
    """Measured differences of a suspected range from the parent of its first commit, for a shift."""

    first: int
    last: int
    differences: tuple[float, ...]
    """One per block. They are those of the whole effect if the culprit is in the range, else zero."""


@dataclass(frozen=True)
class ConfirmationBoots:
    """Boots of the last commit of a suspected range, whose first one's parent passed, for a crash."""

    first: int
    last: int
    passed: int
    failed: int


Observation = Measurement | Boots | Confirmation | ConfirmationBoots


def probabilities(commits: int, change: Shift | Crash, observations: Sequence[Observation]) -> np.ndarray:
    """Return the probability of each commit to be the culprit; index 0 is position 1. Shape (commits,), sum 1.

    Raises ValueError for observations of commits that are not in the range, and TypeError for those that do not fit
    the change.
    """
    logarithms = np.zeros(commits)
    for each in observations:
        bad, good = _log_likelihoods(change, each)
        first, last = _accused(each)
        if not 1 <= first <= last <= commits:
            raise ValueError(f"commit {last} is not between 1 and {commits}")
        inside = np.zeros(commits, dtype=bool)
        inside[first - 1 : last] = True
        logarithms += np.where(inside, bad, good)
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


def _accused(seen: Observation) -> tuple[int, int]:
    """Return first and last position of the commits of which one is the culprit if the observation shows the change.

    A measurement against the good commit shows it if the culprit is the commit itself or one before it.
    """
    if isinstance(seen, Confirmation | ConfirmationBoots):
        return seen.first, seen.last
    return 1, seen.commit


def pooled_deviation(effect: float, groups: Sequence[Sequence[float]]) -> float:
    """Return the standard deviation of a block's difference, from groups of blocks that measured the same two commits.

    At least a tenth of `effect`: few blocks, or exact counts, must not make a later block look impossible. Raises
    ValueError if the effect is zero.
    """
    if effect == 0:
        raise ValueError("a bisection needs an effect that is not zero")
    squares = sum(float(np.var(group)) * len(group) for group in groups if len(group) > 1)
    freedom = sum(len(group) - 1 for group in groups if len(group) > 1)
    spread = math.sqrt(squares / freedom) if freedom else 0.0
    return max(spread, abs(effect) / 10)


def plain_boots(commits: int, blocks: int, change: Shift | Crash) -> int:
    """Return the boots of both kernels that a plain bisection takes to find one of `commits`.

    It halves the range at each step with `blocks` blocks; for a crash that comes seldom with as many as show it in 19
    of 20 commits that have it.
    """
    if isinstance(change, Crash) and change.rate < 1:
        blocks = max(blocks, math.ceil(math.log(1 - CONFIDENCE) / math.log(1 - change.rate)))
    return math.ceil(math.log2(commits)) * 2 * blocks if commits > 1 else 0


def _log_likelihoods(change: Shift | Crash, seen: Observation) -> tuple[float, float]:
    """Return two log likelihoods of an observation: if the commit has the change, and if it does not have it.

    The same constant is left out of both.
    """
    if isinstance(change, Shift) and isinstance(seen, Measurement | Confirmation):
        shifted = [(value - change.effect) / change.deviation for value in seen.differences]
        equal = [value / change.deviation for value in seen.differences]
        bad, good = (_log_density(each) for each in (shifted, equal))
    elif isinstance(change, Crash) and isinstance(seen, Boots | ConfirmationBoots):
        bad = seen.passed * math.log(max(1 - change.rate, _DOUBT)) + seen.failed * math.log(change.rate)
        good = seen.failed * math.log(_DOUBT)
    else:
        raise TypeError("measurements belong to a shift, and boots to a crash")
    most = max(bad, good)
    return most + math.log(math.exp(bad - most) + _DOUBT), most + math.log(math.exp(good - most) + _DOUBT)


def _log_density(values: Sequence[float]) -> float:
    """Return the logarithm of the values' density under Student's t distribution, without its constant factor."""
    return -(_DEGREES + 1) / 2 * sum(math.log1p(value * value / _DEGREES) for value in values)
