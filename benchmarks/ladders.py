"""Measure by simulation how often a ladder without an effect claims a change.

    python benchmarks/ladders.py [--ladders 10000]

Prints the table of docs/comparison.md in Markdown. A ladder has five patches; its boots are in the shipped order and
are judged by the shipped code. `any claim` counts ladders with a claim of any patch or of the whole series; the limit
is 5 %.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from scipy.special import stdtr

sys.path.insert(0, str(Path(__file__).parents[1] / "server/tests/submissions"))

from simulated_ladders import CLAIMS, DRIFT, PATCHES, SHAPES, ladder

from wqlab_comparison.canaries import wilson
from wqlab_comparison.significance import ALPHA


def _print_bound(ladders: int) -> None:
    """Print how often any test of a ladder rejects by the t test and Holm's procedure alone, without other code.

    A verdict also needs the exact test to reject, so the shipped code makes at most as many false claims.
    """
    random = np.random.default_rng(1)
    print("| blocks | ladders, t test alone | any rejected | 95 % interval |\n|---|---|---|---|")
    for blocks in (6, 10, 16):
        boots = random.normal(size=(ladders, blocks, PATCHES + 1))
        d = np.concatenate([np.diff(boots, axis=2), boots[..., -1:] - boots[..., :1]], axis=2)
        t = np.abs(d.mean(1)) / d.std(1, ddof=1) * np.sqrt(blocks)
        rejected = int((2 * stdtr(blocks - 1, -t).min(1) * (PATCHES + 1) <= ALPHA).sum())
        print(f"| {blocks} | {ladders:,} | {_rate(rejected, ladders)} |", flush=True)
    print()


def _rate(hits: int, total: int) -> str:
    low, high = wilson(hits, total)
    return f"{100 * hits / total:.2f} % | {100 * low:.2f} to {100 * high:.2f} %"


ROWS = (
    *((blocks, 0.0, "normal") for blocks in (6, 10, 16)),
    (10, DRIFT, "normal"),
    *((10, 0.0, shape) for shape in SHAPES if shape != "normal"),
)
"""Blocks, drift and shape of noise of each row."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--ladders", type=int, default=10_000)
    parser.add_argument("--drawn", type=int, default=100_000, help="ladders of the first table")
    given = parser.parse_args()
    _print_bound(given.drawn)
    print("| blocks | noise | drift | ladders | any claim | 95 % interval |\n|---|---|---|---|---|---|")
    for row, (blocks, drift, shape) in enumerate(ROWS):
        random = np.random.default_rng([row, blocks])
        claimed = sum(
            bool(CLAIMS & set(ladder(random, blocks, {}, drift, SHAPES[shape]).values())) for _ in range(given.ladders)
        )
        rate = _rate(claimed, given.ladders)
        print(f"| {blocks} | {shape} | {100 * drift:g} % | {given.ladders:,} | {rate} |", flush=True)


if __name__ == "__main__":
    main()
