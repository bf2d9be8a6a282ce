"""Measure how often equal kernels get a line under "What else differs", and how often a changed line is found.

    python benchmarks/what_differs.py [--reports 500]

A report has three scenarios with 20 lines each, whose counts vary between boots by the given standard deviation. `two
boots` is the rule before decision 52 was revised: two boots a side, all boots of one side on one side of all of the
other, and 10 %. `six blocks` is the shipped rule.
"""

import argparse

import numpy as np

from wqlab_comparison.differences import SMALLEST, Sides, TracedBoot, differences
from wqlab_contracts.traced_counts import Row, TracedTopic

SCENARIOS, LINES, BLOCKS = 3, 20, 6
DEVIATIONS = (0.03, 0.1, 0.3)
CHANGES = (1.5, 3.0)
_EMPTY = Row(scenario="s", setting="", topic=TracedTopic.QUEUED, name="f").model_dump(exclude={"name", "count"})


def counts(rng: np.random.Generator, boots: int, deviation: float) -> np.ndarray:
    """Return the counts of both sides, shape (scenarios, 2, boots, lines)."""
    drawn: np.ndarray = 1000 * np.exp(rng.normal(0, deviation, (SCENARIOS, 2, boots, LINES)))
    return drawn


def two_boots(of: np.ndarray) -> np.ndarray:
    """Return True for each line that the earlier rule ranked, shape (scenarios, lines)."""
    left, right = of[:, 0, :2], of[:, 1, :2]
    agree = (left.max(axis=1) < right.min(axis=1)) | (right.max(axis=1) < left.min(axis=1))
    ranked: np.ndarray = agree & (np.abs(np.log(right.mean(axis=1) / left.mean(axis=1))) >= SMALLEST)
    return ranked


def six_blocks(of: np.ndarray) -> np.ndarray:
    """Return True for each line that the shipped rule shows, shape (scenarios, lines)."""
    found = differences([Sides(_boots(left), _boots(right)) for left, right in of], times=False)
    names = [{each.name for each in of_scenario} for of_scenario in found]
    return np.array([[f"f{line}" in shown for line in range(LINES)] for shown in names])


def _boots(of: np.ndarray) -> list[TracedBoot]:
    rows = [
        {
            (TracedTopic.QUEUED, f"f{n}"): Row.model_construct(**_EMPTY, name=f"f{n}", count=round(count))
            for n, count in enumerate(boot)
        }
        for boot in of
    ]
    return [TracedBoot(lines, 1000, "I/O") for lines in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--reports", type=int, default=500)
    reports = parser.parse_args().reports
    print("| boots vary by | rule | lines shown, equal kernels | reports with a line | x 1.5 found | x 3 found |")
    print("|---|---|---|---|---|---|")
    for deviation in DEVIATIONS:
        rng = np.random.default_rng(round(100 * deviation))
        drawn = [counts(rng, BLOCKS, deviation) for _ in range(reports)]
        for name, rule in (("two boots", two_boots), ("six blocks", six_blocks)):
            shown = np.array([rule(of) for of in drawn])
            found = []
            for factor in CHANGES:
                hits = 0
                for of in drawn[: reports // 2]:
                    changed = of.copy()
                    changed[0, 1, :, 0] *= factor
                    hits += bool(rule(changed)[0, 0])
                found.append(f"{100 * hits / (reports // 2):.0f} %")
            lines, any_line = shown.mean(), shown.any(axis=(1, 2)).mean()
            print(
                f"| {100 * deviation:.0f} % | {name} | {100 * lines:.2f} % | {100 * any_line:.1f} % | "
                f"{' | '.join(found)} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
