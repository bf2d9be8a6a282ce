"""Find out whether a device's noise floor has jumped: its last canaries against the earlier ones. Pure.

The test uses ranks (H. B. Mann, D. R. Whitney 1947). If nothing has changed, every order of the floors is equally
likely, whatever the shape of the noise is, so the probability of a false alarm is at most ALARM_ALPHA for each canary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

RECENT = 3
"""Canaries whose floors are compared with the earlier ones: a single noisy canary is no jump."""
HISTORY = 40
"""Most earlier canaries that are used."""
LEAST_HISTORY = 18
"""Fewer earlier canaries cannot reach ALARM_ALPHA: all orders of 3 among 18 + 3 are 1330."""
ALARM_ALPHA = 0.001
LEAST_RATIO = 1.5
"""Ratio of the medians below which a jump does not matter."""


@dataclass(frozen=True)
class Jump:
    """A jump of the noise floor."""

    before: float
    """Median floor of the earlier canaries."""
    now: float
    """Median floor of the last RECENT canaries."""
    p: float
    canaries: int
    """Number of earlier canaries."""

    @property
    def ratio(self) -> float:
        return self.now / self.before


def find_jump(floors: Sequence[float]) -> Jump | None:
    """Return the jump of the floors of the newest canaries, or None.

    `floors` has the floor of each canary, oldest first: of one device, plan and metric, since the last alarm. None
    too if there are fewer than LEAST_HISTORY earlier ones, or if most of them have no noise at all.
    """
    earlier, recent = list(floors[:-RECENT])[-HISTORY:], list(floors[-RECENT:])
    if len(earlier) < LEAST_HISTORY:
        return None
    before, now = float(np.median(earlier)), float(np.median(recent))
    if before <= 0 or now < LEAST_RATIO * before:
        return None
    p = rank_sum_p(earlier, recent)
    return Jump(before, now, p, len(earlier)) if p <= ALARM_ALPHA else None


def rank_sum_p(earlier: Sequence[float], recent: Sequence[float]) -> float:
    """Return the exact one-sided p of the rank sum of `recent`: the share of all choices of as many values whose ranks
    sum to at least as much. Ties have their mean rank."""
    values = np.array([*earlier, *recent])
    # Twice the mean rank is an integer: the values below plus those up to it, plus one.
    ordered = np.sort(values)
    ranks = np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right") + 1
    reached = int(ranks[len(earlier) :].sum())
    top = int(ranks.sum())
    ways = np.zeros((len(recent) + 1, top + 1))
    """ways[k, s]: choices of k values whose ranks sum to s."""
    ways[0, 0] = 1
    for rank in ranks.tolist():
        ways[1:, rank:] += ways[:-1, : top + 1 - rank].copy()
    counts = ways[len(recent)]
    return float(counts[reached:].sum() / counts.sum())
