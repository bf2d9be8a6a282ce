"""Divide the significance level over the looks at one run, and combine the tests of all its looks.

A look is an analysis after a planned number of blocks; the run may stop there. Each look has a share of the level, and
all shares together are at most 1. Therefore the sum of the levels bounds the probability of a false claim at any look,
whatever the noise is and however the looks depend on each other (C. E. Bonferroni), also if looks are added later. The
p of a test is its smallest p over the looks, each divided by the look's share; it never rises from look to look.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from wqlab_contracts.messages.looks import MOST_LOOKS

from . import effect
from .power import LEAST_BLOCKS
from .significance import Floats, box_andersen, clip, is_fine, paired_t, sign_flip
from .words import count

LOOKS = (6, 10, 16)
"""Numbers of blocks of the looks for which the shares were chosen."""
EXACT_LOOK = 2
"""Number of blocks after which a run whose primary metric is counted is looked at first; equal counts are a result."""
SHARES = (0.625, 0.1875, 0.15)
"""Shares of the first looks. The first has .05 * .625 = 2/2**6, the smallest p of six blocks."""


class Part(NamedTuple):
    """Differences that one look sees, and the look's share of the level."""

    d: Floats
    share: float


class Look(NamedTuple):
    """A look that has taken place."""

    blocks: int
    share: float


class Cut(NamedTuple):
    """The last block that a look sees, by its number, and the look's share of the level."""

    block: int
    share: float


class Adjusted(NamedTuple):
    """P values of one test within its family."""

    p_student: float | None = None
    """The continuous p; adjusted if the family has several tests."""
    p_adjusted: float | None = None
    family: int = 1
    """Number of tests in the family."""


def share(index: int) -> float:
    """Return the share of the level of look number `index`, from 0. Each look after the third gets half of what is
    left, so that any number of looks can be added."""
    if index < len(SHARES):
        return SHARES[index]
    return float((1 - sum(SHARES)) / 2 ** (index - len(SHARES) + 1))


def with_share(looks: Sequence[int]) -> list[int]:
    """Return the looks that have a share of the level: those at which a test can reject."""
    return [number for number in looks if number >= LEAST_BLOCKS]


def taken(looks: Sequence[int], blocks: int) -> list[Look]:
    """Return the looks at a run that has so many blocks.

    `looks`: the planned numbers of blocks, ascending; without any the run has one look with the whole level. Looks at
    fewer than LEAST_BLOCKS blocks have no share, because no test can reach it. A run that ended between two looks was
    looked at when it ended.
    """
    if not looks:
        return [Look(blocks, 1.0)]
    counted = [number for number in with_share(looks) if number <= blocks]
    if not counted or counted[-1] < blocks:
        counted.append(blocks)
    return [Look(number, share(index)) for index, number in enumerate(counted)]


def cut(d: Floats, blocks: Sequence[int], cuts: Sequence[Cut]) -> list[Part]:
    """Return the differences that each look sees. `blocks`: block number of each difference. Without cuts there is one
    part, with the whole level: that of a run of fixed size."""
    if not cuts:
        return [Part(d, 1.0)]
    numbers = np.array(blocks)
    return [Part(d[numbers <= last], of_level) for last, of_level in cuts]


def describe(parts: Sequence[Part]) -> str:
    """Return ` over 2 looks`, or nothing for a run of fixed size."""
    if not parts or parts[-1].share == 1:
        return ""
    return f" over {count(len(parts), 'look')}"


def next_share(parts: Sequence[Part]) -> float:
    """Return the share of the level that the look after these has; 1 for a run of fixed size."""
    if not parts or parts[-1].share == 1:
        return 1.0
    return next(of for index in range(2 * MOST_LOOKS) if (of := share(index)) < parts[-1].share)


def smallest_p(parts: Sequence[Part], test: Callable[[Floats], float]) -> float:
    """Return the p of a test over all looks: at most p with probability p, at whichever look the run stops.

    A look counts only if its difference has the direction of the last look's.
    """
    direction = _direction(parts[-1].d)
    counted = [part for part in parts if _direction(part.d) == direction]
    return min([1.0, *(test(part.d) / part.share for part in counted)])


def continuous_p(parts: Sequence[Part], family: int) -> float:
    """Return the p that is adjusted over a family of several tests. The last part needs spread.

    An exact p in steps of 2/2**n cannot reach ALPHA / family with few pairs. If the steps are fine enough, this is the
    approximation of the same test by `box_andersen`, otherwise the t test.
    """
    direction = _direction(parts[-1].d)
    found = [1.0]
    for d, of_level in parts:
        if _direction(d) == direction:
            fine = is_fine(len(d), family / of_level)
            p = box_andersen(d) if fine else paired_t(d)
            found.append(((0.0 if len(d) > 1 else 1.0) if p is None else p) / of_level)
    return min(found)


def adjust(
    family: Sequence[Sequence[Part]], method: Callable[[Sequence[float]], list[float]], pending: int = 0
) -> list[Adjusted]:
    """Return adjusted p values of all tests of a family, each given by its parts.

    A test that is alone keeps its exact p. In a family the continuous p is adjusted by `method` (`holm` or
    `benjamini_hochberg`); the result is never below the exact p. `pending` tests of the family have no data yet.
    """
    size = len(family) + pending
    student = [continuous_p(parts, size) for parts in family]
    exact = [smallest_p(parts, sign_flip) for parts in family]
    if size == 1:
        return [Adjusted(student[0], exact[0])]
    raised = method([*student, *[1.0] * pending])
    return [
        Adjusted(p, max(own, over_all), size)
        for p, own, over_all in zip(student, exact, raised[: len(family)], strict=True)
    ]


def interval(parts: Sequence[Part], middle: float, level: float = 0.95) -> tuple[float, float] | None:
    """Return an interval of at least `level` confidence at whichever look the run stops; None with too few pairs.

    It is the intersection of the intervals of all looks, each at its share of the level (repeated confidence intervals,
    C. Jennison, B. W. Turnbull 1989), extended to the estimate `middle` if that is outside.
    """
    found = [
        ends
        for d, of_level in parts
        if len(d) and (ends := effect.interval(d, effect.estimate(d), 1 - (1 - level) * of_level)) is not None
    ]
    if not found:
        return None
    return min(max(low for low, _ in found), middle), max(min(high for _, high in found), middle)


def is_within(parts: Sequence[Part], middle: float, low: float, high: float, level: float = 0.90) -> bool:
    """Return True if at some look both one-sided tests at the bounds reject, each at the look's share of the level.

    The estimate `middle` of the last look must be between the bounds too.
    """
    return low < middle < high and any(
        effect.is_within(d, low, high, 1 - (1 - level) * of_level) for d, of_level in parts
    )


def is_beyond(parts: Sequence[Part], middle: float, low: float, high: float) -> bool:
    """Return True if the whole interval is beyond one of the bounds."""
    ends = interval(parts, middle)
    return ends is not None and (ends[0] >= high or ends[1] <= low)


def _direction(d: Floats) -> float:
    total = float(clip(d).sum()) if len(d) else math.nan
    return float(np.sign(total))
