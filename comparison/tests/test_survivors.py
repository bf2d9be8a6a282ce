"""Boots that failed are no figures. Where they follow one arm, what is left proves nothing in that arm's favour."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from literal_samples import one, paired, studied, target, with_moments
from scipy.special import ndtri

from wqlab_comparison import Samples, compare, conclude
from wqlab_comparison.survivors import leans
from wqlab_contracts.api.report import Comparison
from wqlab_contracts.enums import Arm, Evidence, Question, Verdict

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
def test_a_lean_is_what_a_coin_would_not_do(more: int, fewer: int, p: float | None) -> None:
    """p: P(X >= more) of Binomial(more + fewer, 1/2), from a table; the large ones by the normal approximation."""
    assert leans(more, fewer) is (p is not None and p <= 0.25)


def measured(values: list[float], **lost: int) -> Comparison:
    """The bandwidth of a run on hardware that discarded blocks: `candidate=3`."""
    samples = paired(BANDWIDTH, values, setting="scope=cache")
    discarded = {Arm(arm): number for arm, number in lost.items()}
    facts = target(
        emulated=False,
        arms=list(Arm),
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
def test_a_verdict_that_losses_flatter_is_withheld(
    values: list[float], alone: Verdict, to_candidate: Verdict, to_baseline: Verdict
) -> None:
    assert measured(values).verdict is alone
    assert measured(values, candidate=1).verdict is alone, "one loss is chance"
    assert measured(values, candidate=2, baseline=2).verdict is alone, "both lose: that is the lab"
    assert measured(values, candidate=2).verdict is to_candidate
    assert measured(values, baseline=2).verdict is to_baseline


def test_the_reason_says_it_in_words_and_the_figures_stay() -> None:
    alone, found = measured(BETTER), measured(BETTER, candidate=3)
    assert found.reason == (
        "discards lean to the candidate: 3 blocks lost to its boots, 0 to the baseline's; what is left may be its "
        f"better boots, which alone would say improvement: {alone.reason}"
    )
    assert found.blocks_needed is None, "more of the same would not decide"
    assert found.blocks_discarded == 3
    assert (found.effect, found.ci95, found.p_adjusted) == (alone.effect, alone.ci95, alone.p_adjusted)
    mirrored = measured(WORSE, baseline=4, candidate=1)
    assert mirrored.reason.startswith("discards lean to the baseline: 4 blocks lost to its boots, 1 to the candidate's")
    assert "would say regression: p " in mirrored.reason


def test_a_value_without_evidence_stays_one_and_infers_nothing_from_losses() -> None:
    samples = paired([1.0, 2.0], [3.0, 4.0], setting="scope=cache", evidence="none", role="explanatory")
    facts = target(arms=list(Arm), settings=["scope=cache"], discarded={Arm.CANDIDATE: 9}, blocks_discarded=9)
    found = next(c for c in compare(samples, [facts]) if c.baseline)
    assert (found.evidence, found.verdict) == (Evidence.NONE, Verdict.NO_EVIDENCE)


class TestTables:
    """What a CSV can show: blocks in which one arm is missing."""

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
    def test_exact_counts_of_survivors(self, baseline: list[float], candidate: list[float], verdict: Verdict) -> None:
        found = one(baseline, candidate, **COUNT)
        assert (found.verdict, found.exact) == (verdict, True)

    def test_the_headline_does_not_claim_what_was_withheld(self) -> None:
        found = conclude([one([33, 33, 33, 33], [3, 3], **COUNT)])
        assert found.verdict is Verdict.INCONCLUSIVE
        assert found.headline.startswith("bandwidth: discards lean to the candidate: 2 blocks lost to its boots")
        assert "the same in every boot" not in found.headline

    def test_losses_of_table_and_run_add_up(self) -> None:
        samples = paired(BANDWIDTH, BETTER[:7], setting="scope=cache")
        facts = target(
            emulated=False,
            arms=list(Arm),
            settings=["scope=cache"],
            discarded={Arm.CANDIDATE: 1},
            blocks_discarded=1,
        )
        found = next(c for c in compare(samples, [facts]) if c.baseline and c.metric == "bandwidth")
        assert (found.verdict, found.blocks_discarded) == (Verdict.INCONCLUSIVE, 2)


class TestSettings:
    share: dict[str, Any] = {"metric": "l3_share", "unit": "%", "scale": "difference", "evidence": "mechanism"}

    def test_a_setting_that_boots_lack_is_not_called_better(self) -> None:
        boots = {"scope=system": [25.0] * 8, "scope=cache": [80.0] * 6}
        (found,) = compare(studied(boots, **self.share), references="scope=system")
        assert found.verdict is Verdict.INCONCLUSIVE
        told = "missing figures lean to scope=cache: 2 boots without it, 0 without scope=system; what is left"
        assert found.reason.startswith(told)

    def test_a_lost_boot_takes_every_setting_with_it(self) -> None:
        boots = {"scope=system": [25.0] * 6, "scope=cache": [80.0] * 6}
        facts = target(
            emulated=True,
            settings=["scope=system", "scope=cache"],
            discarded={Arm.BASELINE: 5},
            blocks_discarded=5,
        )
        found = [c for c in compare(studied(boots, **self.share), [facts]) if c.baseline and c.candidate]
        assert [(c.question, c.verdict) for c in found] == [(Question.SETTING, Verdict.IMPROVEMENT)]


# --- how often --------------------------------------------------------------------------------------------------------


def a_run(
    rng: np.random.Generator, blocks: int, fails: dict[Arm, float], slow_ones_die: bool = False
) -> tuple[Samples, dict[Arm, int]]:
    """The figures of a run whose failed blocks were repeated until all are whole, and the blocks lost per arm.

    The arms do not differ: both draw from one distribution. Any boot of an arm fails with probability `fails`; with
    `slow_ones_die` those do that would have been its slowest.
    """
    values: dict[Arm, list[float]] = {arm: [] for arm in Arm}
    lost = dict.fromkeys(Arm, 0)
    while len(values[Arm.BASELINE]) < blocks:
        drawn = dict(zip(Arm, rng.normal(size=2).tolist(), strict=True))
        chance = dict(zip(Arm, rng.random(2).tolist(), strict=True))
        order = list(Arm) if rng.random() < 0.5 else list(Arm)[::-1]
        died = [arm for arm in order if (drawn[arm] < ndtri(fails[arm]) if slow_ones_die else chance[arm] < fails[arm])]
        if died:
            lost[died[0]] += 1
            continue
        for arm, value in drawn.items():
            values[arm].append(1000 * float(np.exp(0.02 * value)))
    return paired(values[Arm.BASELINE], values[Arm.CANDIDATE], setting="scope=cache"), lost


def verdict_of(samples: Samples, lost: dict[Arm, int]) -> Verdict | None:
    facts = target(
        emulated=False,
        arms=list(Arm),
        settings=["scope=cache"],
        discarded=lost,
        blocks_discarded=sum(lost.values()),
    )
    return next(c.verdict for c in compare(samples, [facts]) if c.metric == "bandwidth" and c.baseline)


def test_survivors_of_a_candidate_that_loses_its_slow_boots_are_no_improvement() -> None:
    """Two equal kernels; the slower half of the candidate's boots dies. The figures alone call that better."""
    rng = np.random.default_rng(31)
    fails = {Arm.BASELINE: 0.0, Arm.CANDIDATE: 0.5}
    runs = [a_run(rng, 10, fails, slow_ones_die=True) for _ in range(150)]
    by_figures = sum(verdict_of(samples, {}) is Verdict.IMPROVEMENT for samples, _ in runs)
    claimed = sum(verdict_of(samples, lost) is Verdict.IMPROVEMENT for samples, lost in runs)
    assert by_figures >= 30
    assert claimed <= 3


@pytest.mark.parametrize(("fails", "expected"), [(0.02, 0.016), (0.05, 0.059)])
def test_chance_withholds_few_verdicts(fails: float, expected: float) -> None:
    """Of runs of 10 blocks on devices that fail either arm's boots alike; docs/comparison.md gives the exact shares."""
    rng = np.random.default_rng(32)
    runs = [a_run(rng, 10, dict.fromkeys(Arm, fails)) for _ in range(3000)]
    share = sum(leans(lost[Arm.CANDIDATE], lost[Arm.BASELINE]) for _, lost in runs) / len(runs)
    assert share == pytest.approx(expected, abs=0.013)
