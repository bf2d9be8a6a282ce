"""Rates, floors and smallest effects of A/A comparisons: worked examples, and simulations through the shipped code."""

import math

import numpy as np
import pytest
from literal_samples import claims_difference, one
from noise_shapes import SHAPES

from wqlab_comparison.boots import MetricFacts
from wqlab_comparison.canaries import Canary, boot_deviation, false_positives, floor, is_called_different, wilson
from wqlab_contracts.enums import Direction, Evidence, Role, Scale

SPEED = MetricFacts("MiB/s", Scale.RATIO, Direction.HIGHER_IS_BETTER, Role.PRIMARY, Evidence.PERFORMANCE, 1.0)
LOCKS = MetricFacts("locks", Scale.DIFFERENCE, Direction.LOWER_IS_BETTER, Role.PRIMARY, Evidence.MECHANISM, None)
LOAD = MetricFacts("%", Scale.DIFFERENCE, Direction.NONE, Role.PRIMARY, Evidence.PERFORMANCE, None)


def canary(baseline, candidate, facts=SPEED, run=1, scenario=""):
    return Canary(run, "metric", facts, baseline, candidate, scenario)


def simulated(rng, runs, blocks, scenarios=1, shape="normal", shared=0.0):
    """Return A/A comparisons; `shared` is the weight of the boots' noise that all scenarios of a run have in common."""
    found = []
    for run in range(runs):
        own = SHAPES[shape](rng, scenarios, blocks)
        common = SHAPES[shape](rng, 1, blocks)
        for number, noise in enumerate(math.sqrt(1 - shared) * own + math.sqrt(shared) * common):
            baseline, candidate = (1000 * np.exp(noise[:, arm] / 100) for arm in (0, 1))
            found.append(canary(baseline.tolist(), candidate.tolist(), run=run, scenario=f"s{number}"))
    return found


class TestCalledDifferent:
    def test_six_differences_of_one_sign_are_called_different(self):
        # 2 of 64 sign patterns are as extreme: p = .031
        assert is_called_different(canary([100.0] * 6, [101.0, 102, 103, 101, 102, 104])) is True
        assert is_called_different(canary([100.0] * 6, [101.0, 102, 103, 101, 102, 99])) is False

    def test_small_significant_difference_counts_too(self):
        assert is_called_different(canary([100.0] * 6, [100.1, 100.2, 100.3, 100.1, 100.2, 100.4])) is True

    def test_change_of_a_metric_without_direction_counts(self):
        assert is_called_different(canary([50.0] * 6, [51.0, 52, 53, 51, 52, 54], LOAD)) is True

    def test_equal_counts_are_no_comparison_and_different_ones_are_called(self):
        assert is_called_different(canary([33.0] * 6, [33.0] * 6, LOCKS)) is None
        assert is_called_different(canary([33.0] * 6, [34.0] * 6, LOCKS)) is True

    @pytest.mark.parametrize("shape", SHAPES)
    def test_it_is_what_a_report_says(self, shape):
        rng = np.random.default_rng(2)
        for each in [*simulated(rng, 40, 6, shape=shape), *simulated(rng, 10, 9, shape=shape)]:
            assert is_called_different(each) == claims_difference(one(each.baseline, each.candidate, delta=1.0))

    @pytest.mark.parametrize(
        "undecidable",
        [canary([100.0] * 5, [101.0, 102, 103, 101, 102]), canary([0.0, 1, 2, 3, 4, 5], [1.0] * 6), canary([], [])],
        ids=["five blocks", "no ratio", "no block"],
    )
    def test_nothing_decided_is_no_comparison(self, undecidable):
        assert is_called_different(undecidable) is None


class TestFalsePositives:
    def test_counts_and_rate(self):
        different = canary([100.0] * 6, [101.0, 102, 103, 101, 102, 104], run=1)
        same = [canary([100.0] * 6, [101.0, 99, 100, 101, 99, 100], run=run) for run in range(2, 5)]
        constant = canary([33.0] * 6, [33.0] * 6, LOCKS, run=5)
        found = false_positives([different, *same, constant])
        assert (found.comparisons, found.called, found.constant, found.rate) == (4, 1, 1, 0.25)
        assert found.interval == pytest.approx((0.0456, 0.6994), abs=5e-5)  # E. B. Wilson's interval of 1 in 4

    def test_published_example(self):
        # R. G. Newcombe 1998, table I: 15 of 148
        assert wilson(15, 148) == pytest.approx((0.0624, 0.1605), abs=5e-5)

    def test_no_comparison_has_no_rate(self):
        found = false_positives([])
        assert (found.rate, found.interval) == (None, None)

    def test_metrics_of_the_same_boots_count_as_one_comparison(self):
        alone = false_positives(simulated(np.random.default_rng(1), 60, 6))
        copies = false_positives(
            [Canary(each.run, each.metric, SPEED, each.baseline, each.candidate, scenario)
             for each in simulated(np.random.default_rng(1), 60, 6) for scenario in "abcd"]
        )  # fmt: skip
        assert copies.comparisons == 4 * alone.comparisons
        assert copies.rate == alone.rate
        assert np.subtract(*copies.interval) == pytest.approx(np.subtract(*alone.interval), rel=0.03)

    @pytest.mark.parametrize("shared", [0.0, 0.8])
    def test_interval_contains_the_true_rate(self, shared):
        """Simulated records of 40 canaries with 5 comparisons each; six blocks reject at 2/64 = 3.1 %."""
        rng = np.random.default_rng(7)
        records = [false_positives(simulated(rng, 40, 6, 5, shared=shared)) for _ in range(60)]
        inside = sum(record.interval[0] <= 2 / 64 <= record.interval[1] for record in records)
        assert inside >= 0.9 * len(records)

    @pytest.mark.parametrize("shape", SHAPES)
    def test_rate_of_the_shipped_verdict_is_at_most_five_percent(self, shape):
        found = false_positives(simulated(np.random.default_rng(3), 600, 8, shape=shape))
        assert found.comparisons == 600
        assert found.rate <= 0.05 + 0.02
        assert found.rate > 0.01, "a rule that never rejects would measure nothing"


class TestFloor:
    def test_floor_is_the_deviation_between_boots(self):
        rng = np.random.default_rng(11)
        found = floor(simulated(rng, 200, 6))
        assert found.blocks == 1200
        assert found.deviation == pytest.approx(math.hypot(0.6, 0.3 * 1.25 / math.sqrt(5)), rel=0.06)

    def test_few_boots_far_off_change_it_little(self):
        clean = floor(simulated(np.random.default_rng(12), 100, 6)).deviation
        rough = floor(simulated(np.random.default_rng(12), 100, 6, shape="outliers"))
        assert rough.deviation < 1.35 * clean, "one boot in 20 is 15 % slow: the standard deviation would be 5 times"

    def test_effect_that_it_states_is_found_in_four_cases_of_five(self):
        """The smallest effect of past canaries, put into later comparisons of as many blocks."""
        rng = np.random.default_rng(13)
        effects = floor(simulated(rng, 60, 6)).effects
        assert list(effects) == [6, 8, 10, 16]
        assert sorted(effects.values(), reverse=True) == list(effects.values()), "more blocks find less"
        for blocks, size in effects.items():
            found = [
                is_called_different(canary(each.baseline, [value * (1 + size / 100) for value in each.candidate]))
                for each in simulated(rng, 400, blocks)
            ]
            assert np.mean(found) == pytest.approx(0.8, abs=0.07)

    def test_counts_that_never_vary_have_no_floor(self):
        assert floor([canary([33.0] * 6, [33.0] * 6, LOCKS)]) is None
        assert floor([]) is None

    def test_unit_follows_the_scale(self):
        points = [canary([50.0, 51] * 3, [51.0, 50] * 3, LOAD)]
        # all differences are 1 or -1: none is clipped; variance 1 over that of clipped normal values
        assert floor(points).deviation == pytest.approx(boot_deviation(np.ones(6)))

    def test_metric_without_evidence_has_neither(self):
        emulated = MetricFacts("MiB/s", Scale.RATIO, Direction.HIGHER_IS_BETTER, Role.PRIMARY, Evidence.NONE, None)
        measured = [canary([100.0] * 6, [101.0, 102, 103, 101, 102, 104], emulated)]
        assert floor(measured) is None
        assert false_positives(measured).comparisons == false_positives(measured).constant == 0
