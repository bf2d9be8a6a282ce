"""Choose the order of the boots of a run, on which the comparison of pairs relies. Pure; the caller stores the seed."""

from __future__ import annotations

import random
from collections.abc import Sequence

from wqlab_contracts.enums import Arm


def block_plan(blocks: int, series: bool, seed: int, looks: Sequence[int] = ()) -> list[list[Arm]]:
    """Return the arms of each block in boot order.

    Half of the blocks boot the baseline first and half the candidate, in random order; with an odd number the
    extra block's order is random. The same holds for the blocks between two looks. Without a series a block is one boot
    of the baseline.
    """
    if not series:
        return [[Arm.BASELINE] for _ in range(blocks)]
    shuffle = random.Random(seed)  # noqa: S311 - an order that is stored with its seed, not a secret
    first, second = [Arm.BASELINE, Arm.CANDIDATE], [Arm.CANDIDATE, Arm.BASELINE]
    plan: list[list[Arm]] = []
    for end in [*(number for number in looks if number < blocks), blocks]:
        more = end - len(plan)
        part = [list(order) for order in [first, second] * (more // 2)]
        if more % 2:
            part.append(list(shuffle.choice([first, second])))
        shuffle.shuffle(part)
        plan += part
    return plan


def walk_plan(blocks: int, arms: Sequence[Arm], seed: int) -> list[list[Arm]]:
    """Return the arms of each block of a walk in boot order.

    Blocks come in pairs: an order, and its reverse, in random order. In such a pair each arm has the same mean
    position, so a steady drift of the device cancels in every comparison. The orders are the rotations of the patches'
    order, each once before one is repeated, so that two neighbours are apart in only one of them, and each arm comes
    first equally often. With an odd number of blocks the last one has no reverse.
    """
    shuffle = random.Random(seed)  # noqa: S311 - an order that is stored with its seed, not a secret
    plan: list[list[Arm]] = []
    turns: list[int] = []
    while len(plan) < blocks:
        if not turns:
            turns = shuffle.sample(range(len(arms)), len(arms))
        turn = turns.pop()
        order = [*arms[turn:], *arms[:turn]]
        both = [order, order[::-1]]
        shuffle.shuffle(both)
        plan += both
    return plan[:blocks]
