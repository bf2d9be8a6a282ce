"""What each verdict takes, and the corners where a careless lab would invent one."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from literal_samples import one, paired, studied, with_moments
from pydantic import ValidationError

from wqlab_comparison import Samples, SamplesError, compare, significance
from wqlab_contracts.api.report import Comparison
from wqlab_contracts.enums import Question, Verdict

EVEN = (-2, -1, 0, 1, 2)
ODD = (2, -1, -2, -1, 2)  # uncorrelated with EVEN, so that a paired t is the published unpaired one
EVEN8, ODD8 = (-7, -5, -3, -1, 1, 3, 5, 7), (7, 1, -3, -5, -5, -3, 1, 7)


class TestPublishedFigures:
    """Five runs each, from the cover letter of the affinity scopes series and from the wake list patch."""

    @pytest.mark.parametrize(
        ("system", "cache", "t", "percent"),
        [
            ((1159.40, 1.34), (1166.40, 0.89), 9.73, 0.60),  # HIGH
            ((1155.40, 0.89), (1154.40, 1.14), 1.55, -0.09),  # MED
            ((993.60, 1.82), (973.40, 1.52), 19.05, -2.03),  # LOW
            ((993.60, 1.82), (828.20, 4.49), 76.3, -16.65),  # LOW, strict
        ],
    )
    def test_effect_and_t(self, system, cache, t, percent):
        baseline, candidate = with_moments(*system, EVEN), with_moments(*cache, ODD)
        d = np.array(candidate) - np.array(baseline)
        mean, deviation = significance.mean_and_deviation(d)
        assert abs(mean) / deviation * math.sqrt(5) == pytest.approx(t, rel=0.01)
        comparison = one(baseline, candidate)
        assert comparison.effect == pytest.approx(percent, abs=0.1)
        assert (comparison.baseline.mean, comparison.baseline.stddev) == pytest.approx(system)
        assert comparison.baseline.n == 5

    def test_five_runs_never_make_a_verdict(self):
        comparison = one(with_moments(993.60, 1.82, EVEN), with_moments(828.20, 4.49, ODD))
        assert comparison.verdict is Verdict.INCONCLUSIVE
        assert comparison.p_signflip == 0.0625
        assert comparison.blocks_needed == 1
        assert "n too small" in comparison.reason
        assert comparison.ci95 is None

    def test_cpu_utilisation_of_med_differs_and_bandwidth_does_not(self):
        bandwidth = one(with_moments(1155.40, 0.89, EVEN8), with_moments(1154.40, 1.14, ODD8))
        assert bandwidth.verdict is Verdict.EQUIVALENT
        utilisation = one(
            with_moments(97.41, 0.05, EVEN8),
            with_moments(96.15, 0.09, ODD8),
            metric="cpu",
            unit="%",
            scale="difference",
            direction="none",
        )
        assert utilisation.effect == pytest.approx(-1.26, abs=0.03)
        assert utilisation.p < 1e-6
        assert utilisation.verdict is None
        assert "neither direction" in utilisation.reason

    def test_netperf_tcp_64_is_starred_and_16384_is_not(self):
        small = one(with_moments(769.28, 2.60, EVEN8), with_moments(779.96, 0.17, ODD8))
        large = one(with_moments(39482.14, 1012.37, EVEN8), with_moments(40307.22, 252.08, ODD8))
        assert small.verdict is Verdict.IMPROVEMENT
        assert small.effect == pytest.approx(1.39, abs=0.05)
        assert large.verdict is Verdict.INCONCLUSIVE
        assert large.blocks_needed > 0

    def test_a_small_sure_gain_is_below_the_threshold(self):
        comparison = one(with_moments(1159.40, 1.34, EVEN8), with_moments(1166.40, 0.89, ODD8))
        assert comparison.verdict is Verdict.BELOW_THRESHOLD
        assert comparison.delta == 1.0


class TestExactCounts:
    counts = {"evidence": "mechanism", "direction": "lower_is_better", "unit": "acquisitions"}

    @pytest.mark.parametrize(
        ("before", "after", "verdict", "effect"),
        [
            (33, 3, Verdict.IMPROVEMENT, -90.909),
            (33, 99, Verdict.REGRESSION, 200),
            (33, 33, Verdict.EQUIVALENT, 0),
            (33, 32, Verdict.IMPROVEMENT, -3.03),
            (3, 0, Verdict.IMPROVEMENT, -100),
            (0, 3, Verdict.REGRESSION, None),
            (0, 0, Verdict.EQUIVALENT, 0),
        ],
    )
    def test_two_integers_are_the_result(self, before, after, verdict, effect):
        comparison = one([before] * 2, [after] * 2, **self.counts)
        assert (comparison.verdict, comparison.exact) == (verdict, True)
        assert comparison.effect == (effect if effect is None else pytest.approx(effect, abs=0.01))
        assert comparison.p is comparison.p_adjusted is comparison.p_signflip is comparison.ci95 is None

    def test_one_block_is_not_enough(self):
        comparison = one([33], [3], **self.counts)
        assert comparison.verdict is Verdict.INCONCLUSIVE
        assert comparison.blocks_needed == 5

    def test_one_different_boot_makes_it_a_sample(self):
        comparison = one([33, 33, 33], [3, 3, 4], **self.counts)
        assert (comparison.verdict, comparison.exact) == (Verdict.INCONCLUSIVE, False)

    def test_a_stated_threshold_holds_for_counts_too(self):
        comparison = one([1000] * 3, [999] * 3, delta=1.0, **self.counts)
        assert comparison.verdict is Verdict.BELOW_THRESHOLD

    def test_a_clock_that_rounds_is_no_count(self):
        """Two latencies of 5 and 6 ms agree by rounding, not by being counted."""
        latency = {"unit": "ms", "direction": "lower_is_better"}
        assert one([5] * 3, [6] * 3, **latency).verdict is Verdict.INCONCLUSIVE
        assert one([5] * 6, [6] * 6, **latency).verdict is Verdict.REGRESSION
        assert one([1000] * 6, [1001] * 6, **latency).verdict is Verdict.BELOW_THRESHOLD


class TestCorners:
    def test_equal_non_integers(self):
        assert one([33.5] * 6, [33.5] * 6).verdict is Verdict.EQUIVALENT
        assert one([33.5] * 5, [33.5] * 5).verdict is Verdict.INCONCLUSIVE

    def test_constant_non_integers_that_differ(self):
        comparison = one([1.5] * 8, [2.5] * 8)
        assert comparison.verdict is Verdict.INCONCLUSIVE
        assert "no noise" in comparison.reason
        assert comparison.p is comparison.ci95 is None

    @pytest.mark.parametrize("values", [[0, 1, 2, 3, 4, 5], [-1, 1, 2, 3, 4, 5]])
    def test_no_ratio_of_zero_or_less(self, values):
        comparison = one([1, 2, 3, 4, 5, 7], values)
        assert comparison.verdict is Verdict.INCONCLUSIVE
        assert comparison.effect is None
        assert "scale `difference`" in comparison.reason

    def test_zero_is_fine_as_a_difference(self):
        comparison = one(
            [0, 0.1, 0, 0.2, 0, 0.1], [70, 71, 69, 70.5, 70, 71], unit="%", scale="difference", evidence="mechanism"
        )
        assert comparison.verdict is Verdict.IMPROVEMENT
        assert comparison.delta == 0.5

    def test_shares_that_reach_exactly_a_hundred(self):
        comparison = one([24.1, 25.0, 23.2, 24.4, 26.1, 22.0], [100.0] * 6, unit="%", scale="difference")
        assert comparison.verdict is Verdict.IMPROVEMENT
        assert comparison.candidate.stddev == 0

    @pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
    def test_what_is_no_number_is_refused(self, bad):
        with pytest.raises(SamplesError, match="was not measured has no row"):
            paired([1, 2], [3, bad])

    def test_huge_and_tiny_values(self):
        comparison = one([1e-300] * 5 + [2e-300], [1e300] * 6)
        assert comparison.verdict in {Verdict.IMPROVEMENT, Verdict.INCONCLUSIVE}
        for figure in (comparison.effect, *(comparison.ci95 or ())):
            assert figure is None or math.isfinite(figure)
        assert one([5e-324, 1e-323] * 3, [1e-323] * 6).verdict is not None
        assert one([-1e308] * 6, [1e308] * 6, scale="difference", unit="").verdict is not None

    def test_no_samples_at_all(self):
        assert compare(None) == []

    def test_baseline_alone_asks_nothing(self):
        samples = paired([1, 2, 3], [])
        assert compare(samples) == []


class TestBlocks:
    def test_unpaired_blocks_are_left_out_and_counted(self):
        comparison = one([10, 11, 12, 500], [10, 11, 12])
        assert (comparison.baseline.n, comparison.candidate.n) == (3, 3)
        assert comparison.baseline.mean == 11
        assert comparison.blocks_discarded == 1

    def test_n_counts_boots_and_the_value_is_the_median_without_the_warm_up(self):
        samples = Samples.concatenate(
            [
                paired([900] * 6, [900] * 6, repetition=0, warmup=True),
                paired([10] * 6, [20] * 6, repetition=1),
                paired([11] * 6, [21] * 6, repetition=2),
                paired([80] * 6, [90] * 6, repetition=3),
            ]
        )
        (comparison,) = compare(samples)
        assert (comparison.baseline.mean, comparison.candidate.mean, comparison.baseline.n) == (11, 21, 6)

    def test_blocks_of_two_units_are_different_blocks(self):
        samples = Samples.concatenate([paired([1, 2, 3], [1, 2, 3]), paired([1, 2, 4], [1, 2, 3], device="ryzen-2")])
        (comparison,) = compare(samples)
        assert comparison.baseline.n == 6

    def test_a_pair_on_two_units_is_no_pair(self):
        samples = Samples.concatenate([paired([1, 2], [], device="a"), paired([], [1, 2], device="b")])
        (comparison,) = compare(samples)
        assert comparison.verdict is Verdict.INCONCLUSIVE
        assert comparison.blocks_discarded == 4

    def test_two_boots_of_one_arm_in_a_block_are_refused(self):
        with pytest.raises(SamplesError, match="block 0 on ryzen-1 has two baseline boots"):
            compare(paired([1, 2], [1, 2], block=[0, 0, 0, 1]))

    def test_a_repetition_given_twice_is_refused(self):
        with pytest.raises(SamplesError, match="repetition 0 of boot baseline-0"):
            compare(Samples.concatenate([paired([1], [2]), paired([3], [4])]))

    def test_a_metric_described_in_two_ways_is_refused(self):
        with pytest.raises(SamplesError, match="unit 'KiB/s' and 'MiB/s'"):
            compare(paired([1, 2], [3, 4], unit=["MiB/s", "MiB/s", "MiB/s", "KiB/s"]))


class TestSettings:
    locality = {"metric": "l3_share", "unit": "%", "scale": "difference", "evidence": "mechanism"}
    boots = {
        "scope=system": [26.0, 22.0, 23.0, 24.0, 25.5, 23.5],
        "scope=cache": [83.0, 86.0, 83.0, 84.5, 85.0, 82.0],
        "scope=cache,strict=1": [100.0] * 6,
    }

    def test_every_setting_against_the_reference_within_the_boot(self):
        found = compare(studied(self.boots, **self.locality), references="scope=system")
        assert [(c.question, c.setting, c.verdict) for c in found] == [
            (Question.SETTING, "scope=cache", Verdict.IMPROVEMENT),
            (Question.SETTING, "scope=cache,strict=1", Verdict.IMPROVEMENT),
        ]
        assert found[0].effect == pytest.approx(60.0, abs=1)
        assert found[1].candidate.n == 6
        assert found[0].kernel == "baseline"
        assert found[0].reference == "scope=system"

    def test_without_a_reference_settings_are_not_compared(self):
        assert compare(studied(self.boots, **self.locality)) == []

    def test_a_boot_that_lacks_one_setting_is_left_out(self):
        boots = {**self.boots, "scope=cache": self.boots["scope=cache"][:5]}
        found = compare(studied(boots, **self.locality), references="scope=system")
        assert (found[0].candidate.n, found[0].blocks_discarded) == (5, 1)
        assert found[1].candidate.n == 6

    def test_noise_shared_by_a_boot_cancels(self):
        drift = np.linspace(0, 50, 8)
        noise = np.random.default_rng(5).normal(0, 0.1, 8)
        boots = {"scope=system": list(100 + drift), "scope=cache": list(110 + drift + noise)}
        (found,) = compare(studied(boots, scale="difference", unit="MiB", delta=5), references="scope=system")
        assert found.verdict is Verdict.IMPROVEMENT


class TestFamilies:
    def shifted(self, shift, **columns):
        rng = np.random.default_rng(11)
        noise = rng.normal(0, 0.5, 8)
        return paired(list(100.0 + np.zeros(8)), list(100.0 + shift + noise), **columns)

    def test_primaries_over_topologies_and_scenarios_are_one_family(self):
        alone = compare(self.shifted(0.9, delta=0.1))[0]
        parts = [
            self.shifted(0.9, delta=0.1, scenario=scenario, device_type=device_type)
            for scenario in ("HIGH", "MED", "LOW")
            for device_type in ("ryzen", "xeon")
        ]
        together = compare(Samples.concatenate(parts))
        assert alone.p == alone.p_adjusted
        assert len(together) == 6
        assert all(c.p_adjusted == pytest.approx(min(1, 6 * alone.p)) for c in together)

    def test_secondaries_share_a_rate_and_explanatory_ones_have_no_verdict(self):
        samples = Samples.concatenate(
            [
                self.shifted(0.9, delta=0.1),
                self.shifted(0.9, delta=0.1, metric="a", role="secondary"),
                self.shifted(0.0, delta=0.1, metric="b", role="secondary"),
                self.shifted(9.0, delta=0.1, metric="c", role="explanatory"),
            ]
        )
        by_name = {c.metric: c for c in compare(samples)}
        assert by_name["bandwidth"].p_adjusted == by_name["bandwidth"].p
        assert by_name["a"].p_adjusted == pytest.approx(2 * by_name["a"].p)
        explanatory = by_name["c"]
        assert explanatory.verdict is explanatory.p is explanatory.p_adjusted is explanatory.p_signflip is None
        assert explanatory.effect == pytest.approx(9, abs=0.5)

    def test_the_two_questions_are_two_families(self):
        boots = {"scope=a": [100.0, 101, 102, 100, 101, 103], "scope=b": [110.0, 112, 113, 110, 112, 114]}
        both = Samples.concatenate(
            [
                studied(boots),
                studied({k: [v + 0.1 * i for i, v in enumerate(vs)] for k, vs in boots.items()}, arm="candidate"),
            ]
        )
        found = compare(both, references="scope=a")
        assert {(c.question, c.kernel) for c in found} == {
            (Question.KERNEL, None),
            (Question.SETTING, "baseline"),
            (Question.SETTING, "candidate"),
        }
        for c in found:
            size = 2 if c.question is Question.KERNEL else 1
            assert c.p <= c.p_adjusted <= size * c.p + 1e-12


class TestDefaultThresholds:
    @pytest.mark.parametrize(
        ("columns", "delta"),
        [
            ({}, 1.0),
            ({"unit": "us", "direction": "lower_is_better", "metric": "clat_p99"}, 5.0),
            ({"unit": "%", "scale": "difference"}, 0.5),
            ({"unit": "migrations", "scale": "difference"}, 1.0),  # one percent of the baseline
            ({"delta": 3}, 3.0),
        ],
    )
    def test_by_kind_of_metric(self, columns, delta):
        assert one([100, 101, 99, 100], [100, 102, 100, 101], **columns).delta == delta


class TestNoEvidence:
    emulated = {"evidence": "none", "role": "explanatory"}

    @given(
        st.lists(st.floats(1e-3, 1e9), min_size=1, max_size=12),
        st.lists(st.floats(1e-3, 1e9), min_size=1, max_size=12),
        st.sampled_from(["primary", "secondary", "explanatory"]),
        st.sampled_from(["ratio", "difference"]),
    )
    def test_a_mean_and_nothing_else(self, baseline, candidate, role, scale):
        comparison = one(baseline, candidate, evidence="none", role=role, scale=scale)
        assert comparison.verdict is Verdict.NO_EVIDENCE
        assert {comparison.effect, comparison.ci95, comparison.p, comparison.p_adjusted} == {None}
        assert {comparison.p_signflip, comparison.delta, comparison.blocks_needed} == {None}
        assert comparison.baseline.stddev is comparison.candidate.stddev is None

    @pytest.mark.parametrize(
        "figure", [{"effect": 1.0}, {"p": 0.01}, {"ci95": (0, 1)}, {"verdict": Verdict.IMPROVEMENT}]
    )
    def test_the_contract_refuses_more(self, figure):
        honest = one([1, 2], [3, 4], **self.emulated).model_dump()
        with pytest.raises(ValidationError, match="is no evidence"):
            Comparison.model_validate({**honest, **figure})


@settings(max_examples=40, deadline=None)
@given(st.permutations(range(84)))
def test_every_input_order_gives_the_same_result(order):
    rng = np.random.default_rng(8)
    parts = [
        paired(list(rng.normal(100, 1, 7)), list(rng.normal(101, 1, 7)), scenario=scenario, repetition=repetition)
        for scenario in ("HIGH", "LOW")
        for repetition in range(3)
    ]
    samples = Samples.concatenate(parts)
    assert compare(samples.take(np.array(order))) == compare(samples)
