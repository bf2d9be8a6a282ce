"""Measure a budget of blocks that is shared at looks against an equal split of it, by simulation.

    python benchmarks/budget.py [--sets 300]

A submission has six targets whose devices differ in noise and effect. An equal split gives each target the same number
of blocks and no looks; a shared budget looks after 6, 10 and 16 blocks and gives the next ones where they are expected
to decide most. Both are decided by the shipped code. Prints Markdown: targets that are decided (a difference or
equivalence), blocks that are used, submissions with any false claim, and the blocks that an equal split needs to decide
as many.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "comparison/tests"))

from shared_budget import Measured, measure

from wqlab_comparison.canaries import wilson

EFFECTS = np.array([0.0, 0.0, 3.0, 1.5, 0.0, 1.0])
"""Percent."""
NOISE = np.array([0.5, 1.0, 1.0, 1.5, 2.0, 1.0])
"""Standard deviation of the differences of a block, percent."""
BUDGETS = (42, 48, 60)
SIZES = (6, 7, 8, 10, 12, 14, 16)
"""Blocks of each target in an equal split."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sets", type=int, default=300)
    sets = parser.parse_args().sets
    draws = np.random.default_rng(7).normal(size=(sets, len(NOISE), SIZES[-1])) * NOISE[:, None]
    mixed = draws + EFFECTS[:, None]
    unchanged = [index for index, effect in enumerate(EFFECTS) if effect == 0]
    print("equal split of blocks, each target: " + ", ".join(map(str, SIZES)))
    equal = [[measure(d, None, (size,)) for d in mixed] for size in SIZES]
    decided = [_decided(each) for each in equal]
    print("targets of 6 that are decided: " + ", ".join(f"{each:.2f}" for each in decided))
    print("any false claim: " + ", ".join(_rate(each, unchanged) for each in equal) + "\n", flush=True)
    print("| budget | decided | used | any false claim | no effect anywhere: any claim | equal split needs | saved |")
    print("|---|---|---|---|---|---|---|")
    for budget in (*BUDGETS, None):
        shared = [measure(d, budget) for d in mixed]
        null = [measure(d, budget) for d in draws]
        used = float(np.mean([sum(each.blocks) for each in shared]))
        needs = float(np.interp(_decided(shared), decided, np.array(SIZES) * len(NOISE)))
        row = [
            str(budget or "none"),
            f"{_decided(shared):.2f}",
            f"{used:.1f}",
            _rate(shared, unchanged),
            _rate(null, range(len(NOISE))),
            f"{needs:.1f}",
            f"{100 * (1 - used / needs):.0f} %",
        ]
        print(f"| {' | '.join(row)} |", flush=True)


def _decided(found: list[Measured]) -> float:
    return float(np.mean([each.decided for each in found]))


def _rate(found: list[Measured], of: Sequence[int]) -> str:
    claimed = sum(each.claims(of) for each in found)
    low, high = wilson(claimed, len(found))
    return f"{100 * claimed / len(found):.1f} % ({100 * low:.1f} to {100 * high:.1f})"


if __name__ == "__main__":
    main()
