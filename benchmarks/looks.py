"""Measure runs with looks against runs of fixed size by simulation: false claims, detections, equivalence and blocks.

    python benchmarks/looks.py [--sets 2000] [--family 1] [--looks 6,10,16]

Prints the tables of docs/comparison.md in Markdown: percent of runs by shape of the noise and size of the effect. A run
is decided by the shipped code, look by look. With --family above 1 a run has so many scenarios, the first of which has
the effect, and `claims` counts runs with any claim.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "comparison/tests"))

from noise_shapes import SHAPES, drifting
from sequential_runs import rates

EFFECTS = (0.0, 0.5, 1.0, 3.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sets", type=int, default=2000)
    parser.add_argument("--family", type=int, default=1)
    parser.add_argument("--looks", default="6,10,16")
    parser.add_argument("--shapes", default=",".join([*SHAPES, "drift"]))
    given = parser.parse_args()
    planned = tuple(int(number) for number in given.looks.split(","))
    most = planned[-1]
    sizes = {"looks": planned, f"{most}": (most,), **({"10": (10,)} if most > 10 else {})}
    names = ", ".join(sizes)
    print(f"{given.sets} runs per row, {given.family} comparisons each\n")
    print(
        f"| noise | effect | claims: {names} | equivalent: {names} | blocks | stopped at |\n|---|---|---|---|---|---|"
    )
    shapes = {**SHAPES, "drift": drifting}
    for number, shape in enumerate(given.shapes.split(",")):
        for effect in EFFECTS:
            rng = np.random.default_rng([number, int(10 * effect)])
            boots = shapes[shape](rng, given.sets * given.family, most)
            d = (boots[..., 1] - boots[..., 0]).reshape(given.sets, given.family, most)
            d[:, 0] += effect
            found = {name: rates(iter(d[..., : size[-1]]), size) for name, size in sizes.items()}
            claims = ", ".join(f"{100 * claimed:.1f}" for claimed, _, _, _ in found.values())
            equal = ", ".join(f"{100 * same:.1f}" for _, same, _, _ in found.values())
            stops = ", ".join(
                f"{blocks}: {100 * runs / given.sets:.0f}" for blocks, runs in sorted(found["looks"][3].items())
            )
            print(f"| {shape} | {effect:g} % | {claims} | {equal} | {found['looks'][2]:.1f} | {stops} |", flush=True)


if __name__ == "__main__":
    main()
