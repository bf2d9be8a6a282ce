"""Canaries: A/A comparisons, whose arms have the same source, tell how far a device can be trusted. Pure.

From the A/A comparisons of one device, plan and metric: the noise floor, the share that the verdict called different,
and the smallest effect that a number of blocks finds.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from wqlab_contracts.enums import Evidence, Verdict

from . import effect, significance
from .boots import MetricFacts, Pairs
from .effect import Floats
from .judge import decide, measure
from .power import LEAST_BLOCKS, smallest_effect

BLOCKS = (6, 8, 10, 16)
"""Numbers of blocks for which the smallest effect is stated."""
_CALLED = frozenset({Verdict.IMPROVEMENT, Verdict.REGRESSION, Verdict.BELOW_THRESHOLD})
_Z = 1.959964
"""Normal quantile of a 95 % interval."""
_LEAST_RUNS = 20
_LEAST_HITS = 5
"""Runs and hits from which the design effect is estimated."""


@dataclass(frozen=True)
class Canary:
    """One A/A comparison: the boot values of both arms of one metric, scenario and setting, paired by block."""

    run: Hashable
    """The run that it belongs to: comparisons of one run share their boots, and so their errors."""
    metric: str
    facts: MetricFacts
    baseline: Sequence[float]
    candidate: Sequence[float]
    scenario: str = ""


@dataclass(frozen=True)
class FalsePositives:
    """How many A/A comparisons the verdict called different."""

    comparisons: int
    """Comparisons with noise, or with counts that differ between the arms."""
    called: int
    constant: int
    """Comparisons besides, whose boots all gave the same count."""
    interval: tuple[float, float] | None
    """95 % interval of the rate; None without a comparison."""

    @property
    def rate(self) -> float | None:
        return self.called / self.comparisons if self.comparisons else None


@dataclass(frozen=True)
class Floor:
    """Noise of one metric."""

    deviation: float
    """Standard deviation between boots: percent (ratio) or the metric's unit (difference)."""
    blocks: int
    effects: dict[int, float | None]
    """Number of blocks -> smallest effect found in four cases of five; None if none is found that often."""


def is_called_different(canary: Canary) -> bool | None:
    """Return whether the verdict calls the equal arms different, as one comparison alone.

    None if all boots gave the same count, or if there is nothing to decide about: no evidence, fewer than LEAST_BLOCKS
    blocks, or values that have no ratio.
    """
    d = differences([canary])
    varies = len(set(canary.baseline)) > 1 or len(set(canary.candidate)) > 1
    if varies and (len(d) < LEAST_BLOCKS or not (d != 0).any()):
        return None
    # Most comparisons end here: no verdict claims a difference that the test does not find.
    if varies and significance.sign_flip(d) > significance.ALPHA:
        return False
    pairs = Pairs(list(canary.baseline), list(canary.candidate), devices=[""] * len(canary.baseline))
    measured = measure(canary.metric, canary.facts, pairs)
    if measured.counts is not None and measured.counts[0] == measured.counts[1]:
        return None
    if measured.counts is None and measured.n < LEAST_BLOCKS:
        return None
    # A significant difference is one whatever the verdict calls it: also `inconclusive` then says that it changed.
    if measured.p is not None and measured.p <= significance.ALPHA:
        return True
    return decide(canary.facts, measured, measured.p, 1).verdict in _CALLED


def false_positives(canaries: Sequence[Canary]) -> FalsePositives:
    """Count the comparisons that were called different, with the interval of E. B. Wilson (1927).

    Comparisons of one run are not independent, so the interval is that of fewer comparisons: their number is divided by
    the design effect, the variance of the counts between runs over that of independent comparisons.
    """
    runs: dict[Hashable, list[bool]] = defaultdict(list)
    constant = 0
    for canary in canaries:
        called = is_called_different(canary)
        if called is not None:
            runs[canary.run].append(called)
        elif canary.facts.evidence is not Evidence.NONE and canary.baseline:
            constant += 1
    sizes = np.array([len(each) for each in runs.values()], np.float64)
    hits = np.array([sum(each) for each in runs.values()], np.float64)
    total, called_total = int(sizes.sum()), int(hits.sum())
    interval = wilson(called_total, total, _design_effect(hits, sizes)) if total else None
    return FalsePositives(total, called_total, constant, interval)


def wilson(hits: int, total: int, design_effect: float = 1.0) -> tuple[float, float]:
    """Return the 95 % interval of a share. Needs a total above 0."""
    p, n = hits / total, total / design_effect
    middle, half = p + _Z * _Z / (2 * n), _Z * math.sqrt(p * (1 - p) / n + _Z * _Z / (4 * n * n))
    return max(0.0, (middle - half) / (1 + _Z * _Z / n)), min(1.0, (middle + half) / (1 + _Z * _Z / n))


def _design_effect(hits: Floats, sizes: Floats) -> float:
    """Return the variance of the hits over that of independent comparisons: at least 1, at most the mean size.

    With few hits the variance is not known: then the comparisons of a run are taken for one.
    """
    size = float(np.square(sizes).sum() / sizes.sum())
    p = float(hits.sum() / sizes.sum())
    if len(sizes) < _LEAST_RUNS or hits.sum() < _LEAST_HITS or p == 1:
        return size
    between = float(np.square(hits - p * sizes).sum()) / (len(sizes) - 1) * len(sizes)
    return min(size, max(1.0, between / (float(sizes.sum()) * p * (1 - p))))


def floor(canaries: Sequence[Canary]) -> Floor | None:
    """Return the noise of one metric in one scenario; None if no two boots can be compared or nothing ever varied.

    The canaries must have the same metric. Their own mean is not subtracted: the true effect is zero.
    """
    d = differences(canaries)
    deviation = boot_deviation(d)
    if not deviation:
        return None
    scale = canaries[0].facts.scale
    effects = {blocks: smallest_effect(blocks, d, significance.ALPHA) for blocks in BLOCKS}
    return Floor(
        effect.to_display(deviation, scale),
        len(d),
        {blocks: None if found is None else effect.to_display(found, scale) for blocks, found in effects.items()},
    )


def differences(canaries: Sequence[Canary]) -> Floats:
    """Return the differences of all blocks on the additive scale (logarithms for ratio).

    Canaries without evidence, or with values that have no difference on their scale, are left out.
    """
    found = [
        effect.differences(np.array(canary.baseline), np.array(canary.candidate), canary.facts.scale)
        for canary in canaries
        if canary.baseline and canary.facts.evidence is not Evidence.NONE
    ]
    return np.concatenate([np.zeros(0), *(each for each in found if each is not None)])


def boot_deviation(d: Floats) -> float | None:
    """Return the robust standard deviation between boots, from differences between two boots whose mean is zero.

    The differences are clipped as in the test of the verdict. The result is that of the unclipped ones for normal
    noise, and a few boots that are far off change it little. None without a difference.
    """
    if not len(d):
        return None
    return math.sqrt(float(np.square(significance.clip(d)).mean()) / _CLIPPED_VARIANCE / 2)


def _clipped_variance() -> float:
    """Return the variance of normal values of variance 1 that are clipped as in `significance.clip`."""
    limit = significance.CLIP * 0.6744897501960817  # median size of a normal value
    tail = 2 * (1 - float(ndtr(limit)))
    density = math.exp(-limit * limit / 2) / math.sqrt(2 * math.pi)
    return 1 - tail - 2 * limit * density + limit * limit * tail


_CLIPPED_VARIANCE = _clipped_variance()
