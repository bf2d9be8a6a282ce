"""Measure how often a noise floor is said to have jumped: false alarms and detections, by shape of the noise.

    python benchmarks/floor_jumps.py [--devices 100]

Prints the table of docs/comparison.md in Markdown: alarms in 1,000 canaries of a device that does not change, and the
percentage of jumps by a factor that are found by the third and the sixth canary after 40 earlier ones. Canaries have
six blocks.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "comparison/tests"))
from noise_shapes import SHAPES

from wqlab_comparison.canaries import boot_deviation
from wqlab_comparison.floor_jumps import find_jump

FACTORS = (1.5, 2, 3, 5)
WATCHED = 200
"""Canaries of a device that does not change."""


def floors(rng: np.random.Generator, shape: str, canaries: int, factor: float = 1.0) -> list[float]:
    boots = SHAPES[shape](rng, canaries, 6)
    return [factor * (boot_deviation(d) or 0.0) for d in boots[..., 1] - boots[..., 0]]


def alarms(values: list[float]) -> list[int]:
    """Return the canaries that gave an alarm; each alarm restarts the record."""
    start, found = 0, []
    for end in range(1, len(values) + 1):
        if find_jump(values[start:end]) is not None:
            start = end
            found.append(end)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", type=int, default=100)
    devices = parser.parse_args().devices
    print(f"| noise | false alarms in 1,000 | {' | '.join(f'{factor:g} times' for factor in FACTORS)} |")
    print("|---|---|" + "---|" * len(FACTORS))
    for shape in SHAPES:
        rng = np.random.default_rng(1)
        false = sum(len(alarms(floors(rng, shape, WATCHED))) for _ in range(devices))
        cells = []
        for factor in FACTORS:
            first = [
                next((at for at in alarms(floors(rng, shape, 40) + floors(rng, shape, 6, factor)) if at > 40), 99)
                for _ in range(2 * devices)
            ]
            cells.append(f"{100 * np.mean(np.array(first) <= 43):.0f}, {100 * np.mean(np.array(first) <= 46):.0f}")
        print(f"| {shape} | {1000 * false / (devices * WATCHED):.2f} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
