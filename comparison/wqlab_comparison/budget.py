"""Share the blocks of a submission among its runs, in order of expected decisions per block.

An undecided run gets either all blocks up to its next look or none. p values are valid only at looks that were planned
before the first boot. Which of these looks take place, and why, does not affect their validity.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .words import count


@dataclass(frozen=True)
class RunBlocks:
    """What a run has of the budget, and what it may still use."""

    blocks: int
    """Blocks that it has measured or been given. They cannot be taken back."""
    next_look: int = 0
    """Number of blocks at its next look; counts only for a run that waits."""
    last_look: int = 0
    """Number of blocks at its last look, or `blocks` if it has ended."""
    expected: float | None = None
    """Decisions that are expected at its next look; None if the run does not wait (it measures, or has ended)."""

    @property
    def step(self) -> int:
        """Number of blocks up to the next look."""
        return self.next_look - self.blocks

    @property
    def most(self) -> int:
        """Largest number of blocks that the run may still use."""
        return max(0, self.last_look - self.blocks)

    @property
    def rate(self) -> float:
        """Expected decisions per block."""
        return (self.expected or 0.0) / max(self.step, 1)


@dataclass(frozen=True)
class Share:
    """What a waiting run gets."""

    granted: bool
    """True if it gets the blocks up to its next look; False if it ends, because the budget is spent."""
    text: str
    """Reason for the decision, as a sentence for the report."""


def share_out(budget: int, runs: Mapping[int, RunBlocks]) -> dict[int, Share]:
    """Decide which waiting runs get blocks and which end. Runs that are not in the result continue to wait.

    `runs`: every run of the submission, by any key. While a run measures, a waiting run gets a step only if the budget
    covers it even if all other runs use all their blocks. Otherwise the waiting runs get their steps in order of
    expected decisions per block; a step that exceeds the rest is skipped. If no step fits, all waiting runs end.
    """
    left = budget - sum(run.blocks for run in runs.values())
    waiting = {key: run for key, run in runs.items() if run.expected is not None}
    order = sorted(waiting, key=lambda key: (-waiting[key].rate, key))
    measures = any(run.expected is None and run.most for run in runs.values())
    wanted = sum(run.most for run in runs.values())
    shares: dict[int, Share] = {}
    if measures:
        for key in order:
            run = waiting[key]
            if run.step <= left - (wanted - run.most):
                shares[key] = Share(True, f"{count(run.step, 'block')}: the others can use all their blocks too")
                left -= run.step
                wanted -= run.step
        return shares
    free = left
    for place, key in enumerate(order, 1):
        run = waiting[key]
        if run.step <= free:
            shares[key] = Share(True, _why_granted(run, left, place, len(order), enough=wanted <= left))
            free -= run.step
    if not shares:
        for key in order:
            need = f"its next look needs {count(waiting[key].step, 'block')}"
            shares[key] = Share(False, f"{need}, and the budget of {budget} has {max(left, 0)} left")
    return shares


def _why_granted(run: RunBlocks, left: int, place: int, waiting: int, *, enough: bool) -> str:
    if enough:
        return f"{count(run.step, 'block')} of {left} left, which suffice for all targets"
    which = "the only target that waits" if waiting == 1 else f"number {place} of {waiting} waiting targets"
    return f"{count(run.step, 'block')} of {left} left, as {which}: {run.expected:.2f} decisions expected"
