"""Failed boots have no figures. If one arm fails more often, verdicts in its favour are withheld."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from literal_samples import one, paired, studied, target, with_moments
from scipy.special import ndtri

from wqlab_comparison import Samples, compare, conclude
from wqlab_comparison.survivors import is_imbalanced
from wqlab_contracts.api.report import Comparison
from wqlab_contracts.enums import PAIR, Arm, Evidence, Question, Verdict

EVEN8, ODD8 = (-7, -5, -3, -1, 1, 3, 5, 7), (7, 1, -3, -5, -5, -3, 1, 7)
BANDWIDTH = with_moments(1000, 1, EVEN8)
COUNT: dict[str, Any] = {"evidence": "mechanism", "direction": "lower_is_better", "unit": "acquisitions"}


@pytest.mark.parametrize(
    ("more", "fewer", "p"),
    [
        (0, 0, None),
        (1, 0, 0.5),
        (2, 0, 0.25),
        (3, 1, 0.3125),
        (4, 1, 0.1875),
        (4, 2, 0.34375),
        (5, 2, 0.2266),
        (6, 3, 0.2539),
        (7, 3, 0.1719),
        (2, 2, None),
        (0, 5, None),
        (100_500, 100_000, 0.1324),
        (100_100, 100_000, 0.4117),
    ],
)
def test_imbalance_follows_the_exact_sign_test(more: int, fewer: int, p: float | None) -> None:
    """`p` is P(X >= more) of Binomial(more + fewer, 1/2), from a table (large counts: normal distribution)."""
    assert is_imbalanced(more, fewer) is (p is not None and p <= 0.25)


def measured(values: list[float], **lost: int) -> Comparison:
    """Return the bandwidth comparison of a run on hardware with discarded blocks per arm: `candidate=3`."""
    samples = paired(BANDWIDTH, values, setting="scope=cache")
    discarded = {Arm(arm): number for arm, number in lost.items()}
    facts = target(
        emulated=False,
        arms=list(PAIR),
        settings=["scope=cache"],
        discarded=discarded,
        blocks_discarded=sum(discarded.values()),
    )
    return next(c for c in compare(samples, [facts]) if c.metric == "bandwidth" and c.baseline)


BETTER = with_moments(1050, 1, ODD8)
WORSE = with_moments(950, 1, ODD8)
EQUAL = with_moments(1000, 1, ODD8)
HARDLY = with_moments(1005, 1, ODD8)


@pytest.mark.parametrize(
    ("values", "alone", "to_candidate", "to_baseline"),
    [
        (BETTER, Verdict.IMPROVEMENT, Verdict.INCONCLUSIVE, Verdict.IMPROVEMENT),
        (WORSE, Verdict.REGRESSION, Verdict.REGRESSION, Verdict.INCONCLUSIVE),
        (EQUAL, Verdict.EQUIVALENT, Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE),
        (HARDLY, Verdict.BELOW_THRESHOLD, Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE),
    ],
)
def test_verdict_favoured_by_discards_is_withheld(
    values: list[float], alone: Verdict, to_candidate: Verdict, to_baseline: Verdict
) -> None:
    assert measured(values).verdict is alone
    assert measured(values, candidate=1).verdict is alone, "one discarded block can be chance"
    assert measured(values, candidate=2, baseline=2).verdict is alone, "both arms fail alike"
    assert measured(values, candidate=2).verdict is to_candidate
    assert measured(values, baseline=2).verdict is to_baseline


def test_withheld_verdict_has_a_reason_and_keeps_its_figures() -> None:
    alone, found = measured(BETTER), measured(BETTER, candidate=3)
    assert found.reason == (
        "discards are imbalanced against the candidate: 3 blocks discarded for its boots, 0 for the baseline's; "
        f"the remaining boots may be its better ones, which alone would give improvement: {alone.reason}"
    )
    assert found.blocks_needed is None, "more blocks would not decide"
    assert found.blocks_discarded == 3
    assert (found.effect, found.ci95, found.p_adjusted) == (alone.effect, alone.ci95, alone.p_adjusted)
    mirrored = measured(WORSE, baseline=4, candidate=1)
    assert mirrored.reason.startswith(
        "discards are imbalanced against the baseline: 4 blocks discarded for its boots, 1 for the candidate's"
    )
    assert "would give regression: p " in mirrored.reason


def test_value_without_evidence_is_not_affected_by_discards() -> None:
    samples = paired([1.0, 2.0], [3.0, 4.0], setting="scope=cache", evidence="none", role="explanatory")
    facts = target(arms=list(PAIR), settings=["scope=cache"], discarded={Arm.CANDIDATE: 9}, blocks_discarded=9)
    found = next(c for c in compare(samples, [facts]) if c.baseline)
    assert (found.evidence, found.verdict) == (Evidence.NONE, Verdict.NO_EVIDENCE)


class TestTables:
    """Tables without discarded blocks show a failed boot as a block with one arm missing."""

    @pytest.mark.parametrize(
        ("baseline", "candidate", "verdict"),
        [
            ([33, 33, 33], [3, 3], Verdict.IMPROVEMENT),
            ([33, 33, 33, 33], [3, 3], Verdict.INCONCLUSIVE),
            ([33, 33, 33, 33], [33, 33], Verdict.INCONCLUSIVE),
            ([33, 33, 33, 33], [99, 99], Verdict.REGRESSION),
            ([33, 33], [99, 99, 99, 99], Verdict.INCONCLUSIVE),
            ([33, 33], [3, 3, 3, 3], Verdict.IMPROVEMENT),
        ],
    )
    def test_imbalanced_discards_affect_exact_counts(
        self, baseline: list[float], candidate: list[float], verdict: Verdict
    ) -> None:
        found = one(baseline, candidate, **COUNT)
        assert (found.verdict, found.exact) == (verdict, True)

    def test_headline_omits_a_withheld_verdict(self) -> None:
        found = conclude([one([33, 33, 33, 33], [3, 3], **COUNT)])
        assert found.verdict is Verdict.INCONCLUSIVE
        start = "bandwidth: discards are imbalanced against the candidate: 2 blocks discarded for its boots"
        assert found.headline.startswith(start)
        assert "the same in every boot" not in found.headline

    def test_missing_blocks_and_discarded_blocks_add_up(self) -> None:
        samples = paired(BANDWIDTH, BETTER[:7], setting="scope=cache")
        facts = target(
            emulated=False,
            arms=list(PAIR),
            settings=["scope=cache"],
            discarded={Arm.CANDIDATE: 1},
            blocks_discarded=1,
        )
        found = next(c for c in compare(samples, [facts]) if c.baseline and c.metric == "bandwidth")
        assert (found.verdict, found.blocks_discarded) == (Verdict.INCONCLUSIVE, 2)


class TestSettings:
    share: dict[str, Any] = {"metric": "l3_share", "unit": "%", "scale": "difference", "evidence": "mechanism"}

    def test_setting_missing_in_boots_is_no_improvement(self) -> None:
        boots = {"scope=system": [25.0] * 8, "scope=cache": [80.0] * 6}
        (found,) = compare(studied(boots, **self.share), references="scope=system")
        assert found.verdict is Verdict.INCONCLUSIVE
        imbalance = "missing figures are imbalanced against scope=cache: 2 boots without it, 0 without scope=system;"
        assert found.reason.startswith(imbalance)

    def test_discarded_boot_does_not_affect_setting_comparisons(self) -> None:
        boots = {"scope=system": [25.0] * 6, "scope=cache": [80.0] * 6}
        facts = target(
            emulated=True,
            settings=["scope=system", "scope=cache"],
            discarded={Arm.BASELINE: 5},
            blocks_discarded=5,
        )
        found = [c for c in compare(studied(boots, **self.share), [facts]) if c.baseline and c.candidate]
        assert [(c.question, c.verdict) for c in found] == [(Question.SETTING, Verdict.IMPROVEMENT)]


# --- simulations ------------------------------------------------------------------------------------------------------


def simulate_run(
    rng: np.random.Generator,
    blocks: int,
    fails: dict[Arm, float],
    slow_boots_fail: bool = False,
    lab_fails: float = 0.0,
) -> tuple[Samples, dict[Arm, int]]:
    """Return the samples of a run, in which failed blocks are repeated until all are complete, and its discards by arm.

    Both arms have the same distribution. A boot of an arm fails with probability `fails[arm]`; with `slow_boots_fail`
    the slowest boots fail. The lab interrupts a block with probability `lab_fails`; such a discard counts for no arm.
    """
    values: dict[Arm, list[float]] = {arm: [] for arm in PAIR}
    lost = dict.fromkeys(PAIR, 0)
    while len(values[Arm.BASELINE]) < blocks:
        drawn = dict(zip(PAIR, rng.normal(size=2).tolist(), strict=True))
        chance = dict(zip(PAIR, rng.random(2).tolist(), strict=True))
        if rng.random() < lab_fails:
            continue
        order = list(PAIR) if rng.random() < 0.5 else list(PAIR)[::-1]
        failed = [
            arm for arm in order if (drawn[arm] < ndtri(fails[arm]) if slow_boots_fail else chance[arm] < fails[arm])
        ]
        if failed:
            lost[failed[0]] += 1
            continue
        for arm, value in drawn.items():
            values[arm].append(1000 * float(np.exp(0.02 * value)))
    return paired(values[Arm.BASELINE], values[Arm.CANDIDATE], setting="scope=cache"), lost


def verdict_of(samples: Samples, lost: dict[Arm, int]) -> Verdict | None:
    facts = target(
        emulated=False,
        arms=list(PAIR),
        settings=["scope=cache"],
        discarded=lost,
        blocks_discarded=sum(lost.values()),
    )
    return next(c.verdict for c in compare(samples, [facts]) if c.metric == "bandwidth" and c.baseline)


def test_candidate_that_loses_its_slow_boots_is_no_improvement() -> None:
    """The kernels are equal; the slower half of the candidate's boots fails, so the figures alone look better."""
    rng = np.random.default_rng(31)
    fails = {Arm.BASELINE: 0.0, Arm.CANDIDATE: 0.5}
    runs = [simulate_run(rng, 10, fails, slow_boots_fail=True) for _ in range(150)]
    by_figures = sum(verdict_of(samples, {}) is Verdict.IMPROVEMENT for samples, _ in runs)
    claimed = sum(verdict_of(samples, lost) is Verdict.IMPROVEMENT for samples, lost in runs)
    assert by_figures >= 15
    assert claimed <= 3


@pytest.mark.parametrize(("fails", "expected"), [(0.02, 0.016), (0.05, 0.059)])
def test_chance_withholds_few_verdicts(fails: float, expected: float) -> None:
    """Runs of 10 blocks whose arms fail equally often; docs/comparison.md gives the exact shares."""
    rng = np.random.default_rng(32)
    runs = [simulate_run(rng, 10, dict.fromkeys(PAIR, fails)) for _ in range(3000)]
    share = sum(is_imbalanced(lost[Arm.CANDIDATE], lost[Arm.BASELINE]) for _, lost in runs) / len(runs)
    assert share == pytest.approx(expected, abs=0.013)


@pytest.mark.parametrize("lab_fails", [0.0, 0.3])
def test_fault_of_one_arm_is_detected_also_in_a_failing_lab(lab_fails: float) -> None:
    """Every third boot of the candidate fails; docs/comparison.md gives the share of runs in which this is detected."""
    rng = np.random.default_rng(33)
    fails = {Arm.BASELINE: 0.0, Arm.CANDIDATE: 1 / 3}
    runs = [simulate_run(rng, 10, fails, lab_fails=lab_fails) for _ in range(2000)]
    share = sum(is_imbalanced(lost[Arm.CANDIDATE], lost[Arm.BASELINE]) for _, lost in runs) / len(runs)
    assert share == pytest.approx(0.93, abs=0.02)


def test_failures_of_the_lab_withhold_no_verdict() -> None:
    """The lab interrupts a third of the blocks; the verdicts are those of the same figures without interruptions."""
    rng = np.random.default_rng(34)
    runs = [simulate_run(rng, 8, dict.fromkeys(PAIR, 0.0), lab_fails=1 / 3) for _ in range(60)]
    assert [verdict_of(samples, lost) for samples, lost in runs] == [verdict_of(samples, {}) for samples, _ in runs]
