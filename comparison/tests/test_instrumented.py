"""Counts of instrumented devices: n counts seeds, equal counts are a result, and nothing is called a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from literal_samples import DEFAULTS, one, paired

from wqlab_comparison import Samples, Stated, compare, conclude, summarise, words
from wqlab_contracts.api.report import Comparison
from wqlab_contracts.enums import Verdict

COUNT = {
    "metric": "kernel_instructions_per_op",
    "unit": "instructions",
    "direction": "lower_is_better",
    "evidence": "instrumented",
    "delta": 0.2,
}
SEEDS = (268_400.25, 269_112.5, 267_930.0, 268_801.75, 268_222.5, 269_003.0)


def counted(baseline: Sequence[float], candidate: Sequence[float], **columns: Any) -> Comparison:
    return one(baseline, candidate, **(COUNT | columns))


def scaled(*factors: float) -> list[float]:
    return [seed * factor for seed, factor in zip(SEEDS, factors, strict=True)]


@pytest.mark.parametrize("values", [SEEDS, SEEDS[:2], [0.0] * 6, [12.5] * 3])
def test_equal_counts_under_each_seed_are_the_same(values: Sequence[float]) -> None:
    found = counted(values, values)
    assert (found.verdict, found.effect, found.ci95, found.p) == (Verdict.EQUIVALENT, 0.0, None, None)
    assert "exactly" in found.reason


def test_headline_of_equal_counts_says_that_nothing_moved() -> None:
    found = conclude([counted(SEEDS, SEEDS)])
    assert found.verdict is Verdict.EQUIVALENT
    assert (
        found.headline == "kernel_instructions_per_op: exactly the same count with both kernels in each of 6 seeds; "
        "excludes a difference in 40 % of seeds or more"
    )


def test_one_seed_decides_nothing() -> None:
    found = counted(SEEDS[:1], SEEDS[:1])
    assert (found.verdict, found.blocks_needed) == (Verdict.INCONCLUSIVE, 1)
    assert "one seed is not enough" in found.reason


def test_five_seeds_with_a_change_are_too_few() -> None:
    found = counted(SEEDS[:5], scaled(0.98, 0.97, 0.985, 0.98, 0.975, 1)[:5])
    assert (found.verdict, found.ci95) == (Verdict.INCONCLUSIVE, None)
    assert "5 seeds" in found.reason and "block" not in found.reason


def test_fewer_instructions_over_six_seeds() -> None:
    found = counted(SEEDS, scaled(0.98, 0.97, 0.985, 0.98, 0.975, 0.981))
    assert found.verdict is Verdict.IMPROVEMENT
    headline = conclude([found]).headline
    assert "% fewer [" in headline and "over 6 seeds" in headline
    for word in ("faster", "slower", "throughput", "improve"):
        assert word not in headline.lower()


def test_change_below_the_threshold_is_below_it() -> None:
    found = counted(SEEDS, scaled(0.9991, 0.9989, 0.999, 0.9992, 0.9988, 0.9991))
    assert found.verdict is Verdict.BELOW_THRESHOLD
    assert "less than 0.2 %" in found.reason


def test_same_ratio_under_each_seed_is_tested_without_an_interval() -> None:
    found = counted(SEEDS, [value * 2 for value in SEEDS])
    assert (found.verdict, found.ci95, found.p) == (Verdict.REGRESSION, None, 2 / 2**6)
    assert found.effect == pytest.approx(100)
    assert "100 % more over 6 seeds" in conclude([found]).headline


def test_constant_count_that_is_no_integer_is_exact() -> None:
    found = counted([1204.5] * 3, [1180.25] * 3)
    assert (found.exact, found.verdict) == (True, Verdict.IMPROVEMENT)


def test_every_figure_is_finite() -> None:
    for baseline, candidate in ((SEEDS, SEEDS), ([0.0] * 6, [0.0] * 6), (SEEDS, [2 * each for each in SEEDS])):
        found = counted(baseline, candidate)
        figures = [found.effect, found.p, found.p_adjusted, found.p_student, *(found.ci95 or ())]
        assert all(math.isfinite(each) for each in figures if each is not None)


def test_zero_counts_of_one_arm_have_no_ratio() -> None:
    found = counted([0.0] * 5 + [1.0], SEEDS)
    assert found.verdict is Verdict.INCONCLUSIVE


def test_counts_and_hardware_figures_are_never_one_family() -> None:
    instrumented = {**COUNT, "device_type": "xeon-instrumented"}
    parts = [
        paired(SEEDS, scaled(0.98, 0.97, 0.985, 0.98, 0.975, 0.981), **instrumented),
        paired(SEEDS, scaled(1.01, 0.99, 1.02, 0.98, 1.005, 0.995)),
    ]
    alone = counted(SEEDS, scaled(0.98, 0.97, 0.985, 0.98, 0.975, 0.981))
    together = compare(Samples.concatenate(parts))
    (found,) = (each for each in together if each.metric == COUNT["metric"])
    assert found.p_adjusted == alone.p_adjusted == alone.p
    assert DEFAULTS["evidence"] == "performance"


@pytest.mark.parametrize(
    ("factors", "text"),
    [
        ((0.98, 0.97, 0.985, 0.98, 0.975, 0.981), "Better: 2.13 % fewer kernel instructions per op"),
        ((1.02, 1.03, 1.015, 1.02, 1.025, 1.019), "Worse: 2.13 % more kernel instructions per op"),
        ((1.0,) * 6, "No change of kernel instructions per op"),
    ],
)
def test_summary_states_counts(factors: tuple[float, ...], text: str) -> None:
    found = [counted(SEEDS, scaled(*factors))]
    target = Stated("xfs-fsync", "split-l3", True, conclude(found).verdict, False, None, True, comparisons=found)
    assert summarise([target]) == f"{text} on split-l3 (instrumented). Speed was not measured."


def test_equal_counts_have_no_interval_but_are_exact() -> None:
    same, changed = counted(SEEDS, SEEDS), counted(SEEDS, scaled(0.98, 0.97, 0.985, 0.98, 0.975, 0.981))
    assert words.interval(same) == "exact"
    assert words.interval(changed) == words.ci(changed)
    assert words.fewer_or_more(same) == ""
