"""Compare rules for a difference by simulation: false claims and power, for several shapes of noise.

    python benchmarks/verdict_power.py [--sets 4000] [--family 1]

Prints the tables of docs/comparison.md and of decision record 30 in Markdown: percent of data sets in which a rule
claims a difference, by shape of the noise and number of blocks. With --family above 1, that many comparisons share the
significance level, one of them has the effect, and only the current and the earlier method are compared.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "comparison/tests"))

from noise_shapes import (
    BLOCKS,
    SHAPES,
    Floats,
    differences,
    is_claimed,
    is_claimed_by_ranks,
    is_claimed_by_sum,
    is_claimed_by_two_tests,
)

from wqlab_comparison import looks, significance

RULES = {
    "t and sign-flip": is_claimed_by_two_tests,
    "sign-flip": is_claimed_by_sum,
    "signed-rank": is_claimed_by_ranks,
    "clipped sign-flip": is_claimed,
}
EFFECTS = (0.0, 1.0, 2.0)


def family_claims(family: list[Floats], effect: float) -> tuple[bool, bool]:
    """Return whether the earlier and the current method find the effect of the first comparison, or without an effect
    claim any."""
    ps = [significance.paired_t(d) or 0.0 for d in family]
    earlier = [
        p <= significance.ALPHA and is_claimed_by_two_tests(d)
        for p, d in zip(significance.holm(ps), family, strict=True)
    ]
    current = [
        (each.p_adjusted or 0.0) <= significance.ALPHA
        for each in looks.adjust([looks.cut(d, (), ()) for d in family], significance.holm)
    ]
    return (earlier[0], current[0]) if effect else (any(earlier), any(current))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sets", type=int, default=4000)
    parser.add_argument("--family", type=int, default=1)
    given = parser.parse_args()
    rules = list(RULES) if given.family == 1 else ["t and sign-flip", "clipped sign-flip"]
    for effect in EFFECTS:
        print(f"\n{f'effect {effect:g} %' if effect else 'no effect'}, {given.sets} data sets\n")
        print("| noise | blocks | " + " | ".join(rules) + " |\n|---|---|" + "---|" * len(rules))
        for number, shape in enumerate(SHAPES):
            for blocks in BLOCKS:
                rng = np.random.default_rng([number, blocks, int(effect)])
                d = differences(shape, rng, given.sets * given.family, blocks)
                d[:: given.family] += effect
                if given.family == 1:
                    shares = [np.mean([rule(each) for each in d]) for rule in RULES.values()]
                else:
                    sets = d.reshape(given.sets, given.family, blocks)
                    shares = list(np.mean([family_claims(list(each), effect) for each in sets], axis=0))
                print(
                    f"| {shape} | {blocks} | " + " | ".join(f"{100 * share:.1f}" for share in shares) + " |", flush=True
                )


if __name__ == "__main__":
    main()
