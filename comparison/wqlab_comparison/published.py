"""Compare the sign and size of modelled effects with published ones. The rules were set before any result was known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

LEAST_PERCENT = 3.0
"""A published change of at most so many percent counts as no change."""
SIZE_FACTOR = 2.0
SIGNS_SHARE = 0.9
SIZES_SHARE = 2 / 3


class Outcome(StrEnum):
    """Result of comparing a modelled effect with a published one. The value is printed in the table."""

    RIGHT = "right"
    SIZE_WRONG = "sign only"
    """The sign is right, and the size is more than SIZE_FACTOR too large or too small."""
    SIGN_WRONG = "wrong"
    UNDECIDED = "can't tell"
    """The interval contains zero."""
    STILL = "no change, as published"
    MOVED = "moves, unlike published"
    UNTOLD = "not told"
    """The published change is no larger than that of the table's control."""
    MISSING = "not measured"


@dataclass(frozen=True)
class Score:
    """How many of the published cells that count the model has right."""

    signs: int
    sizes: int
    of: int

    @property
    def holds(self) -> bool:
        """Return True if the aim is reached: signs of SIGNS_SHARE of the cells, sizes of SIZES_SHARE."""
        return self.of > 0 and self.signs >= SIGNS_SHARE * self.of and self.sizes >= SIZES_SHARE * self.of


def judge(published: float, control: float, effect: float | None, ci95: tuple[float, float] | None) -> Outcome:
    """Judge one effect; all figures are changes in percent.

    `control`: largest published change where nothing should change. `effect` None: not measured. `ci95` None:
    too few seeds for an interval, or no difference under any seed.
    """
    if effect is None:
        return Outcome.MISSING
    if LEAST_PERCENT < abs(published) <= control:
        return Outcome.UNTOLD
    if ci95 is None and effect != 0:
        return Outcome.UNDECIDED
    low, high = ci95 or (effect, effect)
    if abs(published) <= LEAST_PERCENT:
        return Outcome.STILL if abs(effect) <= LEAST_PERCENT or low <= 0 <= high else Outcome.MOVED
    if low <= 0 <= high:
        return Outcome.UNDECIDED
    if (effect > 0) != (published > 0):
        return Outcome.SIGN_WRONG
    return Outcome.RIGHT if 1 / SIZE_FACTOR <= effect / published <= SIZE_FACTOR else Outcome.SIZE_WRONG


def counts(published: float, control: float) -> bool:
    """Return True if a published change is larger than LEAST_PERCENT and than that of the control."""
    return abs(published) > max(LEAST_PERCENT, control)


def score(outcomes: Sequence[Outcome]) -> Score:
    """Count the outcomes of cells that count; one that was not measured is not right."""
    right = outcomes.count(Outcome.RIGHT)
    return Score(right + outcomes.count(Outcome.SIZE_WRONG), right, len(outcomes))
