"""Comparison of all cells of a submission: questions, families of tests, planned cells."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from literal_samples import paired, studied, target

from wqlab_comparison import Samples, compare, conclude
from wqlab_contracts.api.report import UnsupportedView
from wqlab_contracts.enums import PAIR, UNEXPECTED_CAUSES, Arm, ErrorKind, NotMeasuredCause, Question, Role, Verdict
from wqlab_contracts.messages import Failure

LACKING = NotMeasuredCause.LACKING


class TestSettings:
    locality = {"metric": "l3_share", "unit": "%", "scale": "difference", "evidence": "mechanism"}
    boots = {
        "scope=system": [26.0, 22.0, 23.0, 24.0, 25.5, 23.5],
        "scope=cache": [83.0, 86.0, 83.0, 84.5, 85.0, 82.0],
        "scope=cache,strict=1": [100.0] * 6,
    }

    def test_settings_are_compared_with_the_reference_within_the_boot(self):
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

    def test_boot_without_a_setting_is_left_out(self):
        boots = {**self.boots, "scope=cache": self.boots["scope=cache"][:5]}
        found = compare(studied(boots, **self.locality), references="scope=system")
        assert (found[0].candidate.n, found[0].blocks_discarded) == (5, 1)
        assert found[1].candidate.n == 6

    def test_noise_shared_within_a_boot_cancels(self):
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

    def test_primaries_of_all_device_types_and_scenarios_are_one_family(self):
        alone = compare(self.shifted(0.9, delta=0.1))[0]
        parts = [
            self.shifted(0.9, delta=0.1, scenario=scenario, device_type=device_type)
            for scenario in ("HIGH", "MED", "LOW")
            for device_type in ("ryzen", "xeon")
        ]
        together = compare(Samples.concatenate(parts))
        assert alone.p == alone.p_adjusted
        assert len(together) == 6
        assert {c.p for c in together} == {alone.p}
        assert all(c.p_adjusted == pytest.approx(max(c.p, min(1, 6 * c.p_student))) for c in together)

    def test_secondaries_are_one_family_and_explanatory_metrics_have_no_verdict(self):
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
        assert by_name["a"].p_adjusted == pytest.approx(max(by_name["a"].p, 2 * by_name["a"].p_student))
        explanatory = by_name["c"]
        assert explanatory.verdict is explanatory.p is explanatory.p_adjusted is explanatory.p_student is None
        assert explanatory.effect == pytest.approx(9, abs=0.5)

    def test_kernel_and_setting_comparisons_are_two_families(self):
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
            assert c.p <= c.p_adjusted <= max(c.p, size * c.p_student) + 1e-12


class TestPlannedCells:
    def samples(self):
        share = {"metric": "l3_share", "unit": "%", "scale": "difference", "evidence": "mechanism"}
        return studied({"scope=system": [24.0, 25.0], "scope=cache": [80.0, 81.5]}, **share)

    def test_every_planned_cell_has_a_result(self):
        lack = UnsupportedView(
            scenario="HIGH",
            setting="scope=cache_shard",
            metric=None,
            arm=Arm.BASELINE,
            cause=LACKING,
            reason="Linux 6.12 lacks it",
        )
        found = compare(self.samples(), [target(unsupported=[lack])])
        cells = {(c.scenario, c.setting, c.metric): c for c in found}
        assert len(cells) == 2 * 2 * 2
        assert [c.scenario for c in found] == ["HIGH"] * 4 + ["LOW"] * 4
        unsupported = cells["HIGH", "scope=cache_shard", "l3_share"]
        assert (unsupported.verdict, unsupported.reason) == (Verdict.UNSUPPORTED, "Linux 6.12 lacks it")
        assert unsupported.baseline.n == 2
        assert unsupported.candidate is None
        assert unsupported.not_measured is LACKING
        missing = cells["LOW", "scope=cache", "l3_share"]
        assert (missing.verdict, missing.reason) == (Verdict.INCONCLUSIVE, "not measured")
        assert missing.not_measured is NotMeasuredCause.NOT_RUN
        assert cells["HIGH", "scope=cache", "bandwidth"].verdict is Verdict.NO_EVIDENCE
        assert cells["HIGH", "scope=cache", "bandwidth"].role is Role.EXPLANATORY

    def test_missing_samples_of_one_kernel_are_inconclusive_with_reason(self):
        lack = UnsupportedView(
            scenario="LOW",
            setting="scope=cache",
            metric=None,
            arm=Arm.CANDIDATE,
            cause=NotMeasuredCause.NO_SAMPLES,
            reason="fio moved no data",
        )
        reason = "candidate kernel: no samples: fio moved no data"
        facts = target(arms=[Arm.BASELINE, Arm.CANDIDATE], unsupported=[lack])
        share = {"metric": "l3_share", "unit": "%", "scale": "difference", "evidence": "mechanism"}
        both = paired([50.0] * 6, [50.0] * 6, setting="scope=cache", scenario="HIGH", **share)
        alone = paired([50.0] * 6, [], setting="scope=cache", scenario="LOW", **share)
        for samples, verdict in (([both, alone], Verdict.INCONCLUSIVE), ([both], Verdict.UNSUPPORTED)):
            cells = compare(Samples.concatenate(samples), [facts])
            (low,) = [
                cell
                for cell in cells
                if (cell.question, cell.scenario, cell.setting, cell.metric)
                == (Question.KERNEL, "LOW", "scope=cache", "l3_share")
            ]
            assert (low.verdict, low.reason) == (verdict, reason)
            assert low.not_measured is NotMeasuredCause.NO_SAMPLES
            primaries = [cell for cell in cells if cell.setting == "scope=cache"]
            assert (conclude(primaries).verdict is Verdict.EQUIVALENT) == (verdict is Verdict.UNSUPPORTED)
        lacks = replace(facts, unsupported=[lack.model_copy(update={"cause": LACKING, "reason": "no such scope"})])
        found = compare(Samples.concatenate([both, alone]), [lacks])
        assert "candidate kernel: no such scope" in {c.reason for c in found if c.verdict is Verdict.UNSUPPORTED}

    @pytest.mark.parametrize("cause", NotMeasuredCause)
    def test_cause_decides_the_verdict_whatever_the_words_are(self, cause):
        """A figure of one side that is missing for no known reason is a difference, not a missing feature."""
        lack = UnsupportedView(
            scenario="HIGH",
            setting="scope=cache",
            metric=None,
            arm=Arm.CANDIDATE,
            cause=cause,
            reason="not measured: x",
        )
        share = {"metric": "l3_share", "unit": "%", "scale": "difference", "evidence": "mechanism"}
        alone = paired([50.0] * 6, [], setting="scope=cache", **share)
        (found,) = [
            each
            for each in compare(alone, [target(arms=list(PAIR), unsupported=[lack])])
            if (each.question, each.scenario, each.setting, each.metric)
            == (Question.KERNEL, "HIGH", "scope=cache", "l3_share")
        ]
        verdict = Verdict.INCONCLUSIVE if cause in UNEXPECTED_CAUSES else Verdict.UNSUPPORTED
        assert (found.verdict, found.not_measured) == (verdict, cause)

    def test_unmeasured_cells_of_a_failed_run_are_failed(self):
        failure = Failure(kind=ErrorKind.KERNEL, summary="candidate panicked in both boots")
        found = compare(None, [target(arms=list(PAIR), failure=failure)])
        primaries = [c for c in found if c.role is Role.PRIMARY]
        assert primaries
        assert {c.verdict for c in primaries} == {Verdict.FAILED}
        assert {c.reason for c in primaries} == {"kernel: candidate panicked in both boots"}
        assert {c.not_measured for c in primaries} == {NotMeasuredCause.RUN_FAILED}

    def test_setting_missing_in_the_candidate_is_unsupported(self):
        lack = UnsupportedView(
            scenario="*", setting="scope=cache", metric=None, arm=Arm.CANDIDATE, cause=LACKING, reason="gone"
        )
        found = compare(None, [target(arms=list(PAIR), settings=["scope=cache"], unsupported=[lack])])
        kernel = next(c for c in found if c.question == "kernel")
        assert (kernel.verdict, kernel.reason) == (Verdict.UNSUPPORTED, "candidate kernel: gone")

    def test_unsupported_study_has_the_reason_in_the_headline(self):
        lacks = [
            UnsupportedView(
                scenario="*",
                setting=each,
                metric=None,
                arm=Arm.BASELINE,
                cause=LACKING,
                reason="Linux 6.1 has no scopes",
            )
            for each in ("scope=system", "scope=cache")
        ]
        found = compare(None, [target(settings=["scope=system", "scope=cache"], unsupported=lacks)])
        concluded = conclude(found, boots={Arm.BASELINE: 1})
        assert concluded.verdict is Verdict.UNSUPPORTED
        assert concluded.headline.endswith("scope=cache unsupported; Linux 6.1 has no scopes")

    def test_discarded_blocks_are_counted_in_every_cell(self):
        found = compare(self.samples(), [target(blocks_discarded=2)])
        assert {c.blocks_discarded for c in found} == {2}


def test_baseline_is_shown_if_the_candidate_has_no_samples():
    samples = Samples.concatenate([paired([1.0, 2.0], [3.0]), paired([1.0, 2.0], [], scenario="LOW")])
    low = next(c for c in compare(samples) if c.scenario == "LOW")
    assert (low.baseline.n, low.candidate, low.verdict) == (2, None, Verdict.INCONCLUSIVE)
    assert low.blocks_discarded == 2


@settings(max_examples=40)
@given(st.permutations(range(84)))
def test_input_order_does_not_change_the_result(order):
    rng = np.random.default_rng(8)
    parts = [
        paired(list(rng.normal(100, 1, 7)), list(rng.normal(101, 1, 7)), scenario=scenario, repetition=repetition)
        for scenario in ("HIGH", "LOW")
        for repetition in range(3)
    ]
    samples = Samples.concatenate(parts)
    assert compare(samples.take(np.array(order))) == compare(samples)
