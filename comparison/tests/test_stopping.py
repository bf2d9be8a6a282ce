"""Decisions at a look: stop for an effect, for equivalence or for futility, or go on."""

import numpy as np
import pytest
from literal_samples import PLAN, claims_difference, paired, target
from noise_shapes import differences, drifting
from sequential_runs import DEVICE_TYPE, facts, rates, run, samples

from wqlab_comparison import Samples, compare
from wqlab_comparison.looks import LOOKS
from wqlab_comparison.power import chance_of_decision
from wqlab_comparison.stopping import decide_look, look_at
from wqlab_contracts.enums import PAIR, Role, Verdict
from wqlab_contracts.messages.looks import LookReason

AT = (PLAN.name, DEVICE_TYPE)
QUIET = np.array([0.05, -0.06, 0.04, -0.03, 0.02, -0.05, 0.01, 0.06, -0.04, 0.03])
NOISY = np.array([9.0, -11, 13, -8, 10, -12, 9.5, -10.5, 12.5, -9.5])


def look(percent, blocks, planned=LOOKS, **changes):
    percent = np.atleast_2d(percent)
    return look_at(samples(percent, blocks), [facts(len(percent), planned, **changes)], AT, blocks)


class TestOneComparison:
    def test_effect_stops_the_run(self):
        found = look(QUIET + 3, 6)
        assert (found.reason, found.stops, found.text) == (LookReason.EFFECT, True, "effect found")

    def test_equivalence_stops_the_run(self):
        found = look(QUIET, 6)
        assert (found.reason, found.stops) == (LookReason.EQUIVALENT, True)

    def test_run_that_cannot_be_decided_is_given_up(self):
        found = look(NOISY, 6)
        assert found.reason is LookReason.FUTILE
        assert "16 blocks would probably not decide" in found.text

    def test_run_that_may_be_decided_goes_on(self):
        found = look(np.array([0.9, -0.5, 1.4, 0.1, 1.6, -0.2]), 6)
        assert (found.reason, found.stops, found.undecided) == (LookReason.OPEN, False, 1)
        assert 0.1 < found.expected_decisions < 1

    def test_last_look_ends_the_run(self):
        found = look(np.resize([1.9, -0.5, 2.4, -1.1, 2.6, -1.2], 16), 16)
        assert (found.reason, found.stops) == (LookReason.LAST, True)


class TestSeveralComparisons:
    def test_run_goes_on_while_one_scenario_is_undecided(self):
        undecided = np.array([0.9, -0.5, 1.4, 0.1, 1.6, -0.2])
        found = look([QUIET[:6] + 3, undecided], 6)
        assert (found.reason, found.decided, found.undecided) == (LookReason.OPEN, 1, 1)

    def test_undecided_comparison_that_is_given_up_does_not_hold_the_others(self):
        found = look([QUIET[:6] + 3, NOISY[:6]], 6)
        assert (found.reason, found.decided, found.undecided) == (LookReason.FUTILE, 1, 1)

    def test_every_comparison_decided(self):
        found = look([QUIET[:6] + 3, QUIET[:6]], 6)
        assert found.reason is LookReason.EFFECT
        assert found.text == "effect found in 1 of 2 primary comparisons, 1 without a relevant effect"

    def test_run_without_data_counts_in_the_family(self):
        """The verdict must hold when the other target has its figures, so they count before they exist."""
        d = np.array([2.0, 1.2, 4.5, 1.4, 1.8, 3.6])
        alone = look(d, 6)
        other = facts(40, LOOKS, device_type="xeon-2s")
        both = look_at(samples(np.atleast_2d(d), 6), [facts(1, LOOKS), other], AT, 6)
        assert (alone.reason, both.reason) == (LookReason.EFFECT, LookReason.OPEN)


class TestCounts:
    def test_equal_counts_stop_after_two_blocks(self):
        table = paired([34.0] * 2, [34.0] * 2, setting="scope=cache", metric="l3_share", unit="%", scale="difference",
                       evidence="mechanism", device_type=DEVICE_TYPE)  # fmt: skip
        plan = PLAN.model_copy(update={"scenarios": PLAN.scenarios[:1]})
        facts_of = target(plan=plan, arms=list(PAIR), settings=["scope=cache"], looks=(2, *LOOKS), ended=False)
        found = look_at(table, [facts_of], AT, 2)
        assert (found.reason, found.blocks) == (LookReason.EQUIVALENT, 2)

    def test_two_blocks_of_noisy_figures_decide_nothing(self):
        found = look(QUIET[:2] + 3, 2, (2, *LOOKS))
        assert found.reason is LookReason.OPEN


def test_settings_of_a_run_are_all_decided_before_it_stops():
    """Settings share the boots; a setting that is undecided keeps the run going."""
    undecided = np.array([0.9, -0.5, 1.4, 0.1, 1.6, -0.2])
    tables = [
        paired([1000.0] * 6, (1000 * np.exp((QUIET[:6] + 3) / 100)).tolist(), scenario="s0", setting=setting)
        if setting == "scope=system"
        else paired(
            (1000 * np.exp(undecided / 100)).tolist(),
            (1000 * np.exp((QUIET[:6] + 3 + undecided) / 100)).tolist(),
            scenario="s0",
            setting=setting,
        )
        for setting in ("scope=system", "scope=cache")
    ]
    facts_of = facts(1, LOOKS, settings=["scope=system", "scope=cache"])
    found = look_at(Samples.concatenate(tables), [facts_of], AT, 6)
    assert found.reason is LookReason.OPEN
    assert (found.decided, found.undecided) == (2, 2), "both kernels decide the kernel, neither setting is decided"


def test_plan_without_a_primary_comparison_stops():
    assert decide_look([], LOOKS, 6).reason is LookReason.FUTILE


class TestChance:
    def test_chance_grows_with_the_effect_and_with_quiet_devices(self):
        def chance(d, blocks=16):
            return chance_of_decision(np.array(d), float(np.mean(d)), (-1.0, 1.0), blocks, (0.0075, 0.0075))

        assert chance([3.0, 2.5, 3.5, 2.8, 3.2, 3.0]) > 0.99
        assert chance(QUIET[:6]) > 0.99
        assert chance(NOISY[:6]) < 0.1
        assert chance([1.0, 1.0, 1.0]) == 1.0, "no spread: the next blocks decide"

    def test_chance_agrees_with_simulated_runs(self):
        """Of runs whose chance of a decision at 16 blocks is around c, a share near c is decided there."""
        rng = np.random.default_rng(8)
        effects = rng.normal(0, 1.5, 200)
        expected, decided = [], []
        for effect in effects:
            d = differences("normal", rng, 1, 16, effect)[0]
            c = chance_of_decision(d[:6], float(np.mean(d[:6])), (-1.005, 0.995), 16, (0.05, 0.05))
            expected.append(c)
            decided.append(run(d, (16,)).primaries[0].verdict is not Verdict.INCONCLUSIVE)
        assert np.mean(decided) == pytest.approx(np.mean(expected), abs=0.1)


# --- rates, re-derived with fewer runs than benchmarks/looks.py -------------------------------------------------


def within(share: float, expected: float, runs: int, errors: float = 3.0) -> bool:
    """Return True if a share of so many runs is within three standard errors of the expected one, or .5 points."""
    return abs(share - expected) <= max(errors * np.sqrt(expected * (1 - expected) / runs), 0.005)


@pytest.mark.parametrize(
    "shape",
    [
        "normal",
        "drift",
        *(pytest.param(each, marks=pytest.mark.nightly) for each in ("t3", "sticky modes", "outliers")),
    ],
)
def test_false_claims_over_all_looks_are_at_most_five_percent(shape):
    rng, sets = np.random.default_rng(31), 250
    d = drifting(rng, sets, 16) if shape == "drift" else None
    d = d[..., 1] - d[..., 0] if d is not None else differences(shape, rng, sets, 16)
    claimed, _, _, _ = rates(iter(d))
    assert claimed <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / sets)


@pytest.mark.nightly
def test_family_of_six_makes_at_most_five_percent_false_claims():
    rng, sets = np.random.default_rng(32), 60
    d = differences("normal", rng, sets * 6, 16).reshape(sets, 6, 16)
    claimed, _, _, _ = rates(iter(d))
    assert claimed <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / sets)


def claims_of_targets(percent):
    """Return whether each target of one submission claims a difference. `percent`: shape (targets, blocks).

    All targets are looked at after the same numbers of blocks; each stops on its own.
    """
    names = [f"type-{index}" for index in range(len(percent))]
    blocks, open_targets = [0] * len(names), set(range(len(names)))
    for number in LOOKS:
        for index in open_targets:
            blocks[index] = number
        table = Samples.concatenate(
            [samples(percent[[index]], blocks[index], name) for index, name in enumerate(names)]
        )
        known = [facts(1, LOOKS, device_type=name, ended=index not in open_targets) for index, name in enumerate(names)]
        open_targets = {
            index for index in open_targets if not look_at(table, known, (PLAN.name, names[index]), number).stops
        }
    found = compare(table, [facts(1, LOOKS, device_type=name, ended=True) for name in names])
    primaries = {each.device_type: each for each in found if each.role is Role.PRIMARY and each.kernel is None}
    return [claims_difference(primaries[name]) for name in names]


def test_targets_that_stop_at_different_looks_make_at_most_five_percent_false_claims():
    rng, sets = np.random.default_rng(41), 60
    deviations = np.array([0.5, 1.0, 1.0, 2.0])[:, None]
    claimed = sum(any(claims_of_targets(rng.normal(size=(4, 16)) * deviations)) for _ in range(sets))
    assert claimed / sets <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / sets)


def test_blocks_saved_are_at_least_the_promised_ones():
    """Half of the boots at an effect of 3 %, a third at none."""
    rng, sets = np.random.default_rng(33), 120
    claimed, _, blocks, _ = rates(iter(differences("normal", rng, sets, 16, 3.0)))
    assert claimed == 1
    assert blocks <= 8
    _, equivalent, blocks, _ = rates(iter(differences("normal", rng, sets, 16)))
    assert blocks <= 16 * 2 / 3 + 0.6  # its standard error is .35
    assert within(equivalent, 0.90, sets)


def test_one_percent_is_found_as_often_as_documented():
    sets = 150
    claimed, _, _, _ = rates(iter(differences("normal", np.random.default_rng(34), sets, 16, 1.0)))
    assert within(claimed, 0.91, sets)


def test_equivalence_is_claimed_falsely_in_at_most_five_percent():
    sets = 150
    _, equivalent, _, _ = rates(iter(differences("normal", np.random.default_rng(35), sets, 16, 1.0)))
    assert equivalent <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / sets)


def test_interval_of_a_stopped_run_covers_the_effect():
    rng, sets = np.random.default_rng(36), 150
    covered = 0
    for d in differences("normal", rng, sets, 16, 1.0):
        low, high = run(d).primaries[0].ci95
        covered += low <= 100 * np.expm1(0.01) <= high
    assert covered / sets >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / sets)


def test_verdict_of_a_decided_comparison_stays_while_others_go_on():
    """The p over all looks never rises, so a claim at six blocks is still one at ten."""
    rng = np.random.default_rng(37)
    for d in differences("normal", rng, 30, 10, 2.0):
        (first,) = [each for each in compare(samples(np.atleast_2d(d), 6), [facts(1, LOOKS)]) if each.kernel is None]
        (later,) = [each for each in compare(samples(np.atleast_2d(d), 10), [facts(1, LOOKS)]) if each.kernel is None]
        if claims_difference(first):
            assert claims_difference(later)
