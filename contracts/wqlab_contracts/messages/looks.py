"""Looks: analyses of a run after a planned number of blocks, at which it may stop."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from pydantic import Field

from .base import Message

MOST_LOOKS = 100
"""Largest number of looks at runs that continue each other. Their shares are beyond any use long before."""


class LookReason(StrEnum):
    """Result of a look."""

    EFFECT = "effect"
    """Every primary comparison is decided, and at least one found a difference."""
    EQUIVALENT = "equivalent"
    """Every primary metric has the verdict equivalent."""
    FUTILE = "futile"
    """Further blocks would probably not decide what is open."""
    LAST = "last"
    """The planned blocks are measured, and something is open."""
    OPEN = "open"
    """Something is open, and further blocks may decide it: the run goes on."""


class LookRecord(Message):
    """One look at a run and what followed from it."""

    blocks: int = Field(ge=1)
    """Number of blocks that the look saw."""
    reason: LookReason
    text: str
    """The reason in words."""
    decided: int = Field(ge=0)
    """Number of primary comparisons with a verdict."""
    undecided: int = Field(ge=0)
    """Number of primary comparisons that further blocks may decide."""
    expected_decisions: float = Field(default=0.0, ge=0)
    """Number of primary comparisons that the next look is expected to decide, if effect and spread stay as seen."""

    @property
    def stops(self) -> bool:
        """Return True if the run ends with this look."""
        return self.reason is not LookReason.OPEN


def why_stopped(looked: Sequence[LookRecord], planned: int) -> str:
    """Format the last look of a run: `stopped at 6 of 16 blocks: effect found`; empty if none ended the run."""
    if not looked or not looked[-1].stops:
        return ""
    last = looked[-1]
    early = f"stopped at {last.blocks} of {planned} blocks"
    return f"{early if last.blocks < planned else f'looked at {last.blocks} blocks'}: {last.text}"
