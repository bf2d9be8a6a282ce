"""Figures of modelled devices: judged as on hardware with n = seeds, withheld if not validated, never mixed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from literal_samples import PLAN, one, paired, studied

from wqlab_comparison import Samples, Stated, TargetFacts, compare, conclude, summarise, words
from wqlab_comparison.modelled import UNKNOWN
from wqlab_comparison.sweeps import describe_sweep
from wqlab_contracts.api.report import Comparison
from wqlab_contracts.enums import Arm, ErrorKind, Evidence, Role, Verdict
from wqlab_contracts.messages import Failure

MODEL = {"evidence": "modelled", "delta": 1.0}
SEEDS = (900.25, 910.5, 895.0, 905.75, 899.5, 907.0)
LARGER = (1.071, 1.069, 1.075, 1.066, 1.07, 1.072)
NOISE = (1.012, 0.989, 1.008, 0.991, 1.01, 0.99)
FACTS = TargetFacts(
    plan=PLAN.for_instrumented(modelled=True),
    device_type="ryzen-3900x",
    emulated=True,
    arms=[Arm.BASELINE, Arm.CANDIDATE],
    settings=[""],
    not_validated={"bandwidth": ""},
)


def times(*factors: float) -> list[float]:
    return [seed * factor for seed, factor in zip(SEEDS, factors, strict=True)]


def modelled(baseline: Sequence[float], candidate: Sequence[float], **changes: Any) -> Comparison:
    """Compare bandwidth on a modelled device. `changes`: fields of the target's facts."""
    found = compare(paired(baseline, candidate, **MODEL), [replace(FACTS, **changes)])
    return next(each for each in found if each.metric == "bandwidth" and each.scenario == "HIGH")


@pytest.mark.parametrize(
    ("factors", "verdict", "reason"),
    [
        (LARGER, Verdict.IMPROVEMENT, "at least 1 %"),
        ([1 / each for each in LARGER], Verdict.REGRESSION, "at least 1 %"),
        ([1.001, 1.002, 1.0015, 1.001, 1.002, 1.0018], Verdict.BELOW_THRESHOLD, "less than 1 %"),
        (NOISE, Verdict.INCONCLUSIVE, "more seed"),
        ([1.0] * 6, Verdict.EQUIVALENT, "exactly the same figure with both kernels in each of 6 seeds"),
        # The machine repeats itself, so an equal change under each seed has no noise; hardware would be inconclusive.
        ([2.0] * 6, Verdict.IMPROVEMENT, "p .0312"),
    ],
)
def test_figures_are_judged_as_on_hardware_with_seeds_for_blocks(
    factors: Sequence[float], verdict: Verdict, reason: str
) -> None:
    found = modelled(SEEDS, times(*factors))
    assert (found.verdict, found.evidence) == (verdict, Evidence.MODELLED)
    assert reason in found.reason
    assert "block" not in found.reason


@pytest.mark.parametrize("factors", [LARGER, NOISE, [1.0] * 6])
def test_series_that_did_not_run_is_not_exercised_whatever_its_figures(factors: Sequence[float]) -> None:
    found = modelled(SEEDS, times(*factors), not_exercised="not exercised: none of the 2 changed lines ran")
    plain = modelled(SEEDS, times(*factors))
    assert (found.verdict, found.blocks_needed) == (Verdict.NOT_EXERCISED, None)
    assert found.reason == f"not exercised: none of the 2 changed lines ran; {plain.reason}"
    assert (found.effect, found.ci95) == (plain.effect, plain.ci95)
    conclusion = conclude([found])
    assert conclusion.verdict is Verdict.NOT_EXERCISED
    assert "bandwidth: not exercised: none of the 2 changed lines ran" in conclusion.headline


def test_failure_is_still_failed_if_the_series_did_not_run() -> None:
    facts = replace(FACTS, not_exercised="not exercised")
    failed = replace(facts, failure=Failure(kind=ErrorKind.INFRASTRUCTURE, summary="no power"))
    assert {each.verdict for each in compare(None, [failed]) if each.role is Role.PRIMARY} == {Verdict.FAILED}


def test_five_seeds_decide_nothing() -> None:
    found = modelled(SEEDS[:5], times(*LARGER)[:5])
    assert (found.verdict, found.blocks_needed) == (Verdict.INCONCLUSIVE, 1)


@pytest.mark.parametrize("emulated", [False, True])
def test_the_speed_of_other_emulated_devices_is_still_no_evidence(emulated: bool) -> None:
    found = one(SEEDS, times(*LARGER), evidence="none" if emulated else "performance")
    assert (found.verdict is Verdict.NO_EVIDENCE) is emulated
    assert (found.effect is None) is emulated


# --- withheld -------------------------------------------------------------------------------------------------------

WRONG = {"bandwidth": "not validated: 3 of 10 cells right; HIGH falls"}


@pytest.mark.parametrize("factors", [LARGER, NOISE, [1.0] * 6])
@pytest.mark.parametrize(("why", "text"), [(WRONG, WRONG["bandwidth"]), ({}, UNKNOWN)])
def test_without_validation_the_figure_is_shown_and_the_verdict_withheld(
    factors: Sequence[float], why: Mapping[str, str], text: str
) -> None:
    found, stated = modelled(SEEDS, times(*factors), not_validated=why), modelled(SEEDS, times(*factors))
    assert (found.verdict, found.not_validated) == (Verdict.WITHHELD, text)
    assert found.reason.startswith(f"{text}; ")
    assert (found.effect, found.ci95, found.p) == (stated.effect, stated.ci95, stated.p)
    assert stated.not_validated == ""


def test_samples_alone_are_withheld() -> None:
    found = one(SEEDS, times(*LARGER), **MODEL)
    assert (found.verdict, found.not_validated) == (Verdict.WITHHELD, UNKNOWN)


@pytest.mark.parametrize(
    ("factors", "floor", "verdict"),
    [
        (LARGER, 3.0, Verdict.IMPROVEMENT),
        (LARGER, 8.0, Verdict.WITHHELD),
        ([1 / each for each in LARGER], 8.0, Verdict.WITHHELD),
        ([1.001, 1.002, 1.0015, 1.001, 1.002, 1.0018], 0.5, Verdict.WITHHELD),
        ([1.0] * 6, 8.0, Verdict.EQUIVALENT),
        (NOISE, 8.0, Verdict.INCONCLUSIVE),
    ],
)
def test_an_effect_within_the_floor_of_nops_is_no_verdict(
    factors: Sequence[float], floor: float, verdict: Verdict
) -> None:
    found = modelled(SEEDS, times(*factors), floors={("HIGH", "", "bandwidth"): floor})
    assert found.verdict is verdict
    assert (f"within the noise floor of {floor:g} %" in found.reason) is (verdict is Verdict.WITHHELD)
    assert found.effect is not None


def test_the_floor_of_kernels_says_nothing_about_settings() -> None:
    samples = studied({"": SEEDS, "scope=cpu": times(*LARGER)}, **MODEL)
    facts = replace(
        FACTS, arms=[Arm.BASELINE], settings=["", "scope=cpu"], floors={("HIGH", "scope=cpu", "bandwidth"): 8.0}
    )
    found = compare(samples, [facts], references="")
    assert [each.verdict for each in found if each.candidate] == [Verdict.IMPROVEMENT]


# --- never mixed ----------------------------------------------------------------------------------------------------


def test_modelled_counted_and_measured_figures_are_three_families() -> None:
    kinds = ("modelled", "instrumented", "performance")
    parts = [paired(SEEDS, times(*LARGER), evidence=kind, delta=1.0, device_type=kind, device=kind) for kind in kinds]
    together = {each.evidence: each for each in compare(Samples.concatenate(parts))}
    assert all(each.p_adjusted == each.p for each in together.values())
    assert len(together) == len(kinds)


FASTER, SAME = modelled(SEEDS, times(*LARGER)), modelled(SEEDS, SEEDS)
COUNTED = one(
    SEEDS, times(*LARGER), evidence="instrumented", role="secondary", metric="instructions", direction="lower_is_better"
)


@pytest.mark.parametrize(
    ("comparisons", "text"),
    [
        ([FASTER], "Modelled as better: 7.05 % more MiB/s (bandwidth) on model (modelled)."),
        ([SAME], "Bandwidth modelled as the same on model (modelled)."),
        (
            [FASTER, COUNTED],
            "Worse: 7.05 % more instructions on model (modelled). "
            "Modelled as better: 7.05 % more MiB/s (bandwidth) on model (modelled).",
        ),
    ],
)
def test_a_summary_names_what_is_modelled(comparisons: Sequence[Comparison], text: str) -> None:
    verdict = conclude(comparisons).verdict
    model = Stated(
        "dm-crypt", "model", True, verdict, False, None, instrumented=True, modelled=True, comparisons=comparisons
    )
    assert summarise([model]) == f"{text} Speed was modelled, not measured."


def test_counts_beside_a_models_figures_are_named_and_give_no_modelled_verdict() -> None:
    found = conclude([FASTER, COUNTED], machine="ryzen-3900x")
    assert found.verdict is Verdict.IMPROVEMENT
    assert "; counted as worse: instructions: 7.05 % more [" in found.headline


# --- words ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("unit", "metric", "effect", "text"),
    [
        ("MiB/s", "bandwidth", 7.1234, "7.12 % more MiB/s (bandwidth)"),
        ("MiB/s", "bandwidth", -7.1234, "7.12 % less MiB/s (bandwidth)"),
        ("1/s", "cache_items_per_s", 30.2, "30.2 % more cache items/s"),
        ("1/s", "files_per_second", -2.0, "2.00 % fewer files/s"),
        ("ns", "cache_p95_ns", -9.83, "9.83 % lower cache_p95"),
        ("us", "fsync_p99", 4.2, "4.20 % higher fsync_p99"),
        ("MiB/s", "bandwidth", 0.0, ""),
    ],
)
def test_an_effect_is_worded_as_a_models(unit: str, metric: str, effect: float, text: str) -> None:
    found = modelled(SEEDS, times(*LARGER)).model_copy(update={"unit": unit, "metric": metric, "effect": effect})
    assert words.modelled(found) == text


@pytest.mark.parametrize(
    ("comparison", "begin"),
    [
        (modelled(SEEDS, times(*LARGER)), "7.05 % more MiB/s (bandwidth) ["),
        (modelled(SEEDS, times(*LARGER), not_validated=WRONG), "bandwidth +7.05 % ["),
        (modelled(SEEDS, SEEDS), "bandwidth: exactly the same figure"),
        (modelled(SEEDS, times(*NOISE)), "bandwidth: p "),
    ],
)
def test_a_headline_says_that_it_is_modelled_and_of_which_machine(comparison: Comparison, begin: str) -> None:
    headline = conclude([comparison], machine="ryzen-3900x").headline
    assert headline.startswith(f"modelled on a ryzen-3900x-like machine: {begin}")
    assert ("verdict withheld: not validated" in headline) is (comparison.verdict is Verdict.WITHHELD)
    for word in ("faster", "slower", "improve", "regress"):
        assert word not in headline.lower()


def test_no_models_figure_stands_beside_a_failure() -> None:
    failed = Failure(kind=ErrorKind.KERNEL, summary="panic")
    found = conclude([modelled(SEEDS, times(*LARGER))], failure=failed, machine="ryzen-3900x")
    assert (found.verdict, found.headline) == (Verdict.FAILED, "panic")


def test_a_sweep_names_points_whose_verdict_is_withheld() -> None:
    points = [(1, Verdict.EQUIVALENT), (2, Verdict.IMPROVEMENT), (4, Verdict.WITHHELD)]
    assert "withheld at 4" in describe_sweep("l3", points)
