"""Boots that fall into two modes, and the rate at which boots of one mode are said to."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from literal_samples import cell, one, paired
from pydantic import ValidationError

from wqlab_comparison import Samples, compare
from wqlab_comparison.modes import find_modes, split
from wqlab_comparison.reasons import reasons
from wqlab_contracts.api.report import ArmSummary, Mode
from wqlab_contracts.enums import Question

FAST, SLOW = [1000.0, 1003.0, 998.5, 1001.2, 999.4, 1002.1], [850.0, 852.5, 848.1, 851.0]


def test_boots_of_two_modes_are_described_with_levels_and_counts() -> None:
    baseline, candidate = [*FAST[:4], *SLOW[:4]], [FAST[4], SLOW[0] - 1, *FAST[:4], SLOW[1] - 1, SLOW[2] - 1]
    comparison = one(baseline, candidate)
    assert comparison.baseline is not None
    assert comparison.baseline.modes is not None
    assert [(round(mode.mean, 2), mode.n) for mode in comparison.baseline.modes] == [(850.4, 4), (1000.67, 4)]
    assert comparison.candidate is not None
    assert comparison.candidate.modes is not None
    assert [mode.n for mode in comparison.candidate.modes] == [3, 5]
    assert reasons([comparison])[0] == (
        "bandwidth (HIGH): baseline boots fall into two modes, 4 near 850.40 MiB/s and 4 near 1000.67 MiB/s; candidate "
        "boots fall into two modes, 3 near 849.20 MiB/s and 5 near 1000.42 MiB/s"
    )


def test_modes_of_one_arm_are_recognised() -> None:
    """A patch may remove a slow mode."""
    found = find_modes([*FAST[:4], *SLOW[:4]], [value + 0.3 for value in (*FAST, *FAST[:2])], 10)
    assert found[0] is not None
    assert found[1] is None


def test_effect_of_a_patch_is_not_two_modes() -> None:
    assert find_modes(FAST, [value / 2 for value in FAST], 10) == (None, None)


def test_one_slow_boot_is_an_outlier_and_not_a_mode() -> None:
    assert find_modes([*FAST, 850.0], [*FAST, 1000.3], 10) == (None, None)


def test_modes_closer_than_the_threshold_are_not_reported() -> None:
    values = np.array([0.01, 0.02, 0.03, 0.04, 5.01, 5.02, 5.03, 5.04])
    assert split(values, 1.0) is not None
    assert split(values, 10.0) is None


def test_neighbouring_counts_are_one_mode() -> None:
    assert split(np.array([33.0] * 8 + [34.0] * 8)) is None
    assert split(np.array([33.0] * 8 + [134.0] * 8)) is not None


def test_two_devices_of_different_speed_are_not_two_modes() -> None:
    first = paired(FAST, [value + 0.2 for value in FAST])
    other = paired([value / 2 for value in FAST[:4]], [value / 2 for value in FAST[:4]], device="ryzen-2")
    (comparison,) = compare(Samples.concatenate([first, other]))
    assert comparison.baseline is not None
    assert comparison.baseline.modes is None


def test_modes_of_a_reference_setting_are_named_once() -> None:
    modes = (Mode(mean=85, n=3), Mode(mean=100, n=3))
    arm, other = ArmSummary(mean=92, stddev=8, n=6, modes=modes), ArmSummary(mean=100, stddev=1, n=6)
    cells = [cell(setting=name, baseline=arm, candidate=other) for name in ("scope=cache", "scope=cpu")]
    assert all(each.question is Question.SETTING for each in cells)
    text = "l3_share (HIGH): scope=system boots fall into two modes, 3 near 85 locks and 3 near 100 locks"
    assert [each for each in reasons(cells) if "modes" in each] == [text]


def test_figure_without_evidence_has_no_modes() -> None:
    comparison = one([*FAST[:4], *SLOW], [*SLOW, *FAST[:4]], evidence="none", role="explanatory")
    assert comparison.baseline is not None
    assert comparison.baseline.modes is None
    arm = comparison.baseline.model_copy(update={"modes": (Mode(mean=1, n=3), Mode(mean=2, n=3))})
    with pytest.raises(ValidationError, match="is no evidence"):
        type(comparison).model_validate({**comparison.model_dump(exclude={"effect_unit"}), "baseline": arm})


ONE_MODE: dict[str, Callable[[np.random.Generator, tuple[int, int]], np.ndarray]] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "t3": lambda rng, shape: rng.standard_t(3, shape),
    "uniform": lambda rng, shape: rng.random(shape),
    "exponential": lambda rng, shape: rng.exponential(size=shape),
    "lognormal": lambda rng, shape: np.exp(rng.normal(size=shape)),
}


@pytest.mark.parametrize("boots", [6, 8, 10, 16])
@pytest.mark.parametrize("shape", ONE_MODE)
def test_boots_of_one_mode_are_hardly_ever_split(shape: str, boots: int) -> None:
    """At most one comparison in 50, and one in 200 if the boots are normal; docs/comparison.md has whole tables."""
    values = ONE_MODE[shape](np.random.default_rng(boots), (1500, 2 * boots))
    alarms = sum(find_modes(x[:boots], x[boots:], 0) != (None, None) for x in values.tolist())
    assert alarms <= (8 if shape == "normal" else 30)


@pytest.mark.parametrize(("boots", "least"), [(6, 0.8), (10, 0.95), (16, 0.98)])
def test_modes_15_percent_apart_are_found(boots: int, least: float) -> None:
    rng = np.random.default_rng(boots)
    values = rng.normal(1000, 6.7, (400, 2 * boots)) - 150 * (rng.random((400, 2 * boots)) < 0.4)
    assert np.mean([find_modes(x[:boots], x[boots:], 10) != (None, None) for x in values]) >= least
