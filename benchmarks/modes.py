"""Measure how often boots are said to fall into two modes: false alarms and detections, by shape of the noise.

    python benchmarks/modes.py [--sets 4000]

Prints the table of docs/comparison.md in Markdown: percent of comparisons, of so many blocks, in which either arm is
said to have two modes. Modes are as far apart as the row says, in standard deviations around each.
"""

import argparse
from collections.abc import Callable

import numpy as np

from wqlab_comparison.modes import find_modes

Shape = tuple[int, int]
BLOCKS = (6, 8, 10, 16)


def two_modes(share: float, apart: float) -> Callable[[np.random.Generator, Shape], np.ndarray]:
    return lambda rng, shape: rng.normal(size=shape) - apart * (rng.random(shape) < share)


SHAPES: dict[str, Callable[[np.random.Generator, Shape], np.ndarray]] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "t3": lambda rng, shape: rng.standard_t(3, shape),
    "uniform": lambda rng, shape: rng.random(shape),
    "exponential": lambda rng, shape: rng.exponential(size=shape),
    "lognormal": lambda rng, shape: np.exp(rng.normal(size=shape)),
    "one boot in 20 far off": two_modes(0.05, 22),
    "half and half, 6 sd apart": two_modes(0.5, 6),
    "half and half, 8 sd apart": two_modes(0.5, 8),
    "half and half, 10 sd apart": two_modes(0.5, 10),
    "three in ten, 10 sd apart": two_modes(0.3, 10),
    "half and half, 22 sd apart": two_modes(0.5, 22),
    "three in ten, 22 sd apart": two_modes(0.3, 22),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sets", type=int, default=4000)
    sets = parser.parse_args().sets
    print("| boots | " + " | ".join(f"{blocks} blocks" for blocks in BLOCKS) + " |\n|---|" + "---|" * len(BLOCKS))
    for number, (name, shape) in enumerate(SHAPES.items()):
        shares = []
        for blocks in BLOCKS:
            values = shape(np.random.default_rng([number, blocks]), (sets, 2 * blocks)).tolist()
            shares.append(np.mean([find_modes(x[:blocks], x[blocks:], 0) != (None, None) for x in values]))
        print(f"| {name} | " + " | ".join(f"{100 * share:.1f}" for share in shares) + " |", flush=True)


if __name__ == "__main__":
    main()
