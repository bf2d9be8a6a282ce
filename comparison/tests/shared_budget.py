"""Submissions of several targets with a budget, made of simulated differences and decided by the shipped code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from literal_samples import PLAN, paired
from noise_shapes import Floats
from sequential_runs import CLAIMS, facts

from wqlab_comparison import Samples, compare
from wqlab_comparison.budget import RunBlocks, share_out
from wqlab_comparison.looks import LOOKS
from wqlab_comparison.stopping import look_at
from wqlab_contracts.enums import Role, Verdict


@dataclass(frozen=True)
class Measured:
    """What a submission found: the number of blocks and the verdict of each target."""

    blocks: list[int]
    verdicts: list[Verdict | None]

    @property
    def decided(self) -> int:
        """Number of targets with a difference or equivalence."""
        return sum(each in CLAIMS or each is Verdict.EQUIVALENT for each in self.verdicts)

    def claims(self, of: Sequence[int]) -> bool:
        """Return True if one of these targets claims a difference."""
        return any(self.verdicts[index] in CLAIMS for index in of)


def measure(percent: Floats, budget: int | None, planned: Sequence[int] = LOOKS) -> Measured:
    """Measure targets with looks and share the budget among them.

    `percent`: differences of shape (targets, blocks), in percent; `budget`: blocks of all targets, or None for as many
    as their looks ask for. `planned` with one number is a fixed size.
    """
    targets = range(len(percent))
    blocks = [planned[0]] * len(percent)
    if len(planned) == 1:
        return Measured(blocks, _verdicts(percent, blocks, ()))
    looked = [0] * len(percent)
    waiting: dict[int, float] = {}
    measuring = set(targets)
    while measuring:
        for index in sorted(measuring):
            looked[index] = blocks[index]
            known = [
                facts(1, planned, device_type=_name(each), ended=each not in measuring and each not in waiting)
                for each in targets
            ]
            record = look_at(_samples(percent, looked), known, (PLAN.name, _name(index)), blocks[index])
            measuring.discard(index)
            if not record.stops:
                waiting[index] = record.expected_decisions
        shares = {
            index: share.granted
            for index, share in share_out(
                planned[-1] * len(percent) if budget is None else budget,
                {each: _run_blocks(each, blocks, waiting, planned) for each in targets},
            ).items()
        }
        for index, granted in shares.items():
            del waiting[index]
            if granted:
                blocks[index] = _next(blocks[index], planned)
                measuring.add(index)
    return Measured(blocks, _verdicts(percent, blocks, planned))


def _run_blocks(index: int, blocks: Sequence[int], waiting: dict[int, float], planned: Sequence[int]) -> RunBlocks:
    if index in waiting:
        return RunBlocks(blocks[index], _next(blocks[index], planned), planned[-1], waiting[index])
    return RunBlocks(blocks[index], last_look=blocks[index])


def _next(blocks: int, planned: Sequence[int]) -> int:
    return next(number for number in planned if number > blocks)


def _name(index: int) -> str:
    return f"type-{index}"


def _samples(percent: Floats, blocks: Sequence[int]) -> Samples:
    return Samples.concatenate(
        [
            paired(
                [1000.0] * number,
                (1000 * np.exp(percent[index, :number] / 100)).tolist(),
                scenario="s0",
                setting="scope=cache",
                plan=PLAN.name,
                device_type=_name(index),
            )
            for index, number in enumerate(blocks)
            if number
        ]
    )


def _verdicts(percent: Floats, blocks: Sequence[int], planned: Sequence[int]) -> list[Verdict | None]:
    known = [facts(1, planned, device_type=_name(each), ended=True) for each in range(len(percent))]
    found = {
        each.device_type: each.verdict
        for each in compare(_samples(percent, blocks), known)
        if each.role is Role.PRIMARY and each.kernel is None
    }
    return [found[_name(each)] for each in range(len(percent))]
