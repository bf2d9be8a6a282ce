"""Conditions of each verdict, with corner cases."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from literal_samples import PLAN, one, paired, studied, target, with_moments
from pydantic import ValidationError

from wqlab_comparison import compare, significance
from wqlab_comparison.questions import facts_of
from wqlab_contracts.api.report import Comparison
from wqlab_contracts.enums import PAIR, Arm, Verdict

EVEN = (-2, -1, 0, 1, 2)
ODD = (2, -1, -2, -1, 2)  # uncorrelated with EVEN, so that a paired t is the published unpaired one
EVEN8, ODD8 = (-7, -5, -3, -1, 1, 3, 5, 7), (7, 1, -3, -5, -5, -3, 1, 7)


class TestPublishedFigures:
    """Published means of five runs, from the cover letter of the affinity scopes series and the wake list patch."""

    @pytest.mark.parametrize(
        ("system", "cache", "t", "percent"),
        [
            ((1159.40, 1.34), (1166.40, 0.89), 9.73, 0.60),  # HIGH
            ((1155.40, 0.89), (1154.40, 1.14), 1.55, -0.09),  # MED
            ((993.60, 1.82), (973.40, 1.52), 19.05, -2.03),  # LOW
            ((993.60, 1.82), (828.20, 4.49), 76.3, -16.65),  # LOW, strict
        ],
    )
    def test_effect_and_t_statistic_agree_with_the_published_ones(self, system, cache, t, percent):
        baseline, candidate = with_moments(*system, EVEN), with_moments(*cache, ODD)
        d = np.array(candidate) - np.array(baseline)
        mean, deviation = significance.mean_and_deviation(d)
        assert abs(mean) / deviation * math.sqrt(5) == pytest.approx(t, rel=0.01)
        comparison = one(baseline, candidate)
        assert comparison.effect == pytest.approx(percent, abs=0.1)
        assert (comparison.baseline.mean, comparison.baseline.stddev) == pytest.approx(system)
        assert comparison.baseline.n == 5

    def test_five_runs_give_no_verdict(self):
        comparison = one(with_moments(993.60, 1.82, EVEN), with_moments(828.20, 4.49, ODD))
        assert comparison.verdict is Verdict.INCONCLUSIVE
        assert comparison.p == 0.0625
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
        assert utilisation.p == 2 / 2**8
        assert utilisation.verdict is None
        assert "neither direction" in utilisation.reason

    def test_netperf_tcp_64_is_starred_and_16384_is_not(self):
        small = one(with_moments(769.28, 2.60, EVEN8), with_moments(779.96, 0.17, ODD8))
        large = one(with_moments(39482.14, 1012.37, EVEN8), with_moments(40307.22, 252.08, ODD8))
        assert small.verdict is Verdict.IMPROVEMENT
        assert small.effect == pytest.approx(1.39, abs=0.05)
        assert large.verdict is Verdict.INCONCLUSIVE
        assert large.blocks_needed is None
        assert "100 blocks would not decide" in large.reason

    def test_small_significant_gain_is_below_threshold(self):
        comparison = one(with_moments(1159.40, 1.34, EVEN8), with_moments(1166.40, 0.89, ODD8))
        assert comparison.verdict is Verdict.BELOW_THRESHOLD
        assert comparison.delta == 1.0


class TestRelevance:
    """A relevant effect has its whole interval beyond the threshold of 1 %."""

    @pytest.mark.parametrize(
        ("percent", "verdict", "text"),
        [
            ([1.3, 1.5, 1.2, 1.4, 1.6, 1.3], Verdict.IMPROVEMENT, "at least 1 %"),
            ([-1.3, -1.5, -1.2, -1.4, -1.6, -1.3], Verdict.REGRESSION, "at least 1 %"),
            ([0.7, 1.9, 1.1, 1.5, 0.8, 2.2], Verdict.INCONCLUSIVE, "it changed, but perhaps by less than 1 %"),
            ([3.0, 9.0, 0.5, 6.0, 2.0, 8.0], Verdict.INCONCLUSIVE, "it changed, but perhaps by less than 1 %"),
            ([0.4, 0.5, 0.6, 0.5, 0.4, 0.3], Verdict.BELOW_THRESHOLD, "significant, but less than 1 %"),
        ],
    )
    def test_near_end_of_the_interval_decides(self, percent, verdict, text):
        found = one([1000.0] * 6, [1000 * (1 + each / 100) for each in percent])
        assert found.verdict is verdict
        assert text in found.reason
        near = min(abs(end) for end in found.ci95)
        assert (near >= 1.0) == (verdict in {Verdict.IMPROVEMENT, Verdict.REGRESSION})

    def test_further_blocks_are_promised_only_if_the_noise_floor_is_measured(self):
        before, after = [1000.0] * 6, [1007.0, 1019.0, 1011.0, 1015.0, 1008.0, 1022.0]
        samples = paired(before, after, setting="scope=cache", plan=PLAN.name, device_type="ryzen-3900x")
        facts = {"emulated": False, "arms": list(PAIR), "settings": ["scope=cache"]}

        def reason(**more):
            found = compare(samples, [target(**facts, **more)])
            return next(each.reason for each in found if each.metric == "bandwidth" and each.baseline)

        assert " at least " in reason() and reason().endswith(" needed")
        assert reason(spreads={"bandwidth": 0.004}).endswith("would probably decide")
        assert "100 blocks would not decide" in reason(spreads={"bandwidth": 0.2})

    def test_six_seeds_that_agree_by_chance_promise_nothing(self):
        """As of the demo's series: six seeds looked as if two more would decide, and 24 seeds gave -0.02 %."""
        changes = [-0.9, -0.7, -0.6, -0.8, 0.2, -0.5]
        seeds = [1 + each / 100 for each in changes]
        found = one([120903.0] * 6, [120903 * each for each in seeds], delta=0.2, evidence="instrumented")
        assert found.verdict is Verdict.INCONCLUSIVE
        assert found.reason.endswith(" needed") and "probably" not in found.reason


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
    def test_constant_counts_are_exact(self, before, after, verdict, effect):
        comparison = one([before] * 2, [after] * 2, **self.counts)
        assert (comparison.verdict, comparison.exact) == (verdict, True)
        assert comparison.effect == (effect if effect is None else pytest.approx(effect, abs=0.01))
        assert comparison.p is comparison.p_adjusted is comparison.p_student is comparison.ci95 is None

    def test_one_block_is_not_enough(self):
        comparison = one([33], [3], **self.counts)
        assert comparison.verdict is Verdict.INCONCLUSIVE
        assert comparison.blocks_needed == 5

    def test_one_different_boot_makes_counts_inexact(self):
        comparison = one([33, 33, 33], [3, 3, 4], **self.counts)
        assert (comparison.verdict, comparison.exact) == (Verdict.INCONCLUSIVE, False)

    @pytest.mark.parametrize(("boots", "share"), [(2, 78), (6, 40), (10, 26)])
    def test_equal_counts_say_what_so_many_boots_exclude(self, boots, share):
        """A difference in 78 % of boots is missed by two boots in .22**2 = 5 % of the cases."""
        assert (1 - share / 100) ** boots <= 0.05 < (1 - (share - 1) / 100) ** boots
        reason = one([33] * boots, [33] * boots, **self.counts).reason
        assert (
            reason == f"exactly 33 in every boot ({boots} of each); excludes a difference in {share} % of boots or more"
        )

    def test_explicit_threshold_applies_to_exact_counts(self):
        comparison = one([1000] * 3, [999] * 3, delta=1.0, **self.counts)
        assert comparison.verdict is Verdict.BELOW_THRESHOLD

    def test_rounded_times_are_not_exact_counts(self):
        """Latencies of 5 and 6 ms are integers because of rounding."""
        latency = {"unit": "ms", "direction": "lower_is_better"}
        assert one([5] * 3, [6] * 3, **latency).verdict is Verdict.INCONCLUSIVE
        assert one([5] * 6, [6] * 6, **latency).verdict is Verdict.REGRESSION
        assert one([1000] * 6, [1001] * 6, **latency).verdict is Verdict.BELOW_THRESHOLD


class TestCorners:
    def test_equal_non_integers_are_equivalent_from_six_blocks(self):
        assert one([33.5] * 6, [33.5] * 6).verdict is Verdict.EQUIVALENT
        assert one([33.5] * 5, [33.5] * 5).verdict is Verdict.INCONCLUSIVE

    def test_different_constant_non_integers_are_inconclusive(self):
        comparison = one([1.5] * 8, [2.5] * 8)
        assert comparison.verdict is Verdict.INCONCLUSIVE
        assert "no noise" in comparison.reason
        assert comparison.p is comparison.ci95 is None

    @pytest.mark.parametrize("values", [[0, 1, 2, 3, 4, 5], [-1, 1, 2, 3, 4, 5]])
    def test_values_of_zero_or_less_have_no_ratio(self, values):
        comparison = one([1, 2, 3, 4, 5, 7], values)
        assert comparison.verdict is Verdict.INCONCLUSIVE
        assert comparison.effect is None
        assert "scale `difference`" in comparison.reason

    def test_zeros_are_compared_as_differences(self):
        comparison = one(
            [0, 0.1, 0, 0.2, 0, 0.1], [70, 71, 69, 70.5, 70, 71], unit="%", scale="difference", evidence="mechanism"
        )
        assert comparison.verdict is Verdict.IMPROVEMENT
        assert comparison.delta == 0.5

    def test_constant_shares_of_100_percent_are_compared(self):
        comparison = one([24.1, 25.0, 23.2, 24.4, 26.1, 22.0], [100.0] * 6, unit="%", scale="difference")
        assert comparison.verdict is Verdict.IMPROVEMENT
        assert comparison.candidate.stddev == 0

    def test_huge_and_tiny_values_give_finite_figures(self):
        comparison = one([1e-300] * 5 + [2e-300], [1e300] * 6)
        assert comparison.verdict in {Verdict.IMPROVEMENT, Verdict.INCONCLUSIVE}
        for figure in (comparison.effect, *(comparison.ci95 or ())):
            assert figure is None or math.isfinite(figure)
        assert one([5e-324, 1e-323] * 3, [1e-323] * 6).verdict is not None
        assert one([-1e308] * 6, [1e308] * 6, scale="difference", unit="").verdict is not None

    def test_no_samples_give_no_comparisons(self):
        assert compare(None) == []

    def test_baseline_alone_gives_no_comparisons(self):
        samples = paired([1, 2, 3], [])
        assert compare(samples) == []


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
    def test_default_threshold_depends_on_the_kind_of_metric(self, columns, delta):
        assert one([100, 101, 99, 100], [100, 102, 100, 101], **columns).delta == delta


class TestNoEvidence:
    emulated = {"evidence": "none", "role": "explanatory"}

    @given(
        st.lists(st.floats(1e-3, 1e9), min_size=1, max_size=12),
        st.lists(st.floats(1e-3, 1e9), min_size=1, max_size=12),
        st.sampled_from(["primary", "secondary", "explanatory"]),
        st.sampled_from(["ratio", "difference"]),
    )
    def test_metric_without_evidence_has_only_a_mean(self, baseline, candidate, role, scale):
        comparison = one(baseline, candidate, evidence="none", role=role, scale=scale)
        assert comparison.verdict is Verdict.NO_EVIDENCE
        assert {comparison.effect, comparison.ci95, comparison.p, comparison.p_adjusted} == {None}
        assert {comparison.p_student, comparison.delta, comparison.blocks_needed} == {None}
        assert comparison.baseline.stddev is comparison.candidate.stddev is None

    @pytest.mark.parametrize(
        "figure", [{"effect": 1.0}, {"p": 0.01}, {"ci95": (0, 1)}, {"verdict": Verdict.IMPROVEMENT}]
    )
    def test_comparison_without_evidence_rejects_other_figures(self, figure):
        honest = one([1, 2], [3, 4], **self.emulated).model_dump()
        with pytest.raises(ValidationError, match="is no evidence"):
            Comparison.model_validate({**honest, **figure})


SHARE = {
    "metric": "local_l3_share", "unit": "%", "scale": "difference", "evidence": "mechanism", "delta": 0.5,
    "emulator_delta": 11.0,
}  # fmt: skip
LOCAL = [68.0, 70.0, 69.5, 67.5, 71.0, 69.0, 70.5, 68.5, 69.2, 70.1]


@pytest.mark.parametrize(
    ("points", "verdict", "reason"),
    [
        (8, Verdict.BELOW_THRESHOLD, "less than 11 points (what the emulator's turn-taking changes)"),
        (-8, Verdict.BELOW_THRESHOLD, "less than 11 points (what the emulator's turn-taking changes)"),
        (16, Verdict.IMPROVEMENT, "at least 11 points (what the emulator's turn-taking changes)"),
        (-16, Verdict.REGRESSION, "at least 11 points (what the emulator's turn-taking changes)"),
    ],
)
def test_share_that_depends_on_turns_is_judged_beyond_what_they_change(points, verdict, reason):
    changed = [value + points + 0.1 * index for index, value in enumerate(LOCAL)]
    found = one(LOCAL, changed, **SHARE)
    assert (found.verdict, found.delta) == (verdict, 11.0)
    assert reason in found.reason
    assert one(LOCAL, changed, **{**SHARE, "emulator_delta": None}).delta == 0.5


def test_guaranteed_share_keeps_its_own_threshold():
    """Under strict, all works stay in their domain whatever turns the CPUs take: 100 % in every boot."""
    leaking = [99.0, 98.4, 98.9, 97.9, 98.8, 98.2, 98.6, 98.1, 99.1, 98.5]
    found = one([100.0] * 10, leaking, **SHARE)
    assert (found.verdict, found.delta) == (Verdict.REGRESSION, 0.5)
    exact = one([100.0] * 2, [97.0] * 2, **SHARE)
    assert (exact.verdict, exact.exact, exact.delta) == (Verdict.REGRESSION, True, 0.5)


def test_share_that_one_setting_guarantees_is_judged_beyond_turns_of_the_other():
    cache = [95.0 + index / 10 for index in range(10)]
    study = studied({"scope=strict": [100.0] * 10, "scope=cache": cache}, **SHARE)
    (found,) = compare(study, references="scope=strict")
    assert (found.verdict, found.delta) == (Verdict.BELOW_THRESHOLD, 11.0)
    assert one([100.0] * 10, cache, **SHARE).verdict is Verdict.REGRESSION


def test_share_that_becomes_guaranteed_is_judged_beyond_turns():
    assert one([92.0 + value / 100 for value in LOCAL], [100.0] * 10, **SHARE).verdict is Verdict.BELOW_THRESHOLD


def test_reason_of_a_count_says_what_it_depends_on():
    share = next(metric for metric in PLAN.metrics if metric.name == "l3_share")
    counted = share.model_copy(update={"depends_on": "the numbering of the CPUs"})
    plan = PLAN.model_copy(update={"metrics": [counted if each is share else each for each in PLAN.metrics]})
    facts = target(plan=plan, arms=[Arm.BASELINE, Arm.CANDIDATE], settings=["scope=cache"])
    columns = {"plan": PLAN.name, "metric": "l3_share", "setting": "scope=cache", "unit": "%", "evidence": "mechanism"}

    def reason(*values):
        found = compare(paired(*values, scale="difference", **columns), [facts])
        return next(each.reason for each in found if each.metric == "l3_share" and each.exact)

    assert (
        reason([34] * 2, [6] * 2) == "exactly 34 and 6 in every boot (2 of each); depends on the numbering of the CPUs"
    )
    assert "depends" not in reason([34] * 2, [34] * 2)


def test_only_emulated_devices_have_the_threshold_of_turns():
    share = PLAN.metrics[0].model_copy(update={"delta": 0.5, "emulator_delta": 11.0})
    assert [facts_of(share, emulated).emulator_delta for emulated in (True, False)] == [11.0, None]
    assert [share.least_effect(emulated) for emulated in (True, False)] == [11.0, 0.5]
