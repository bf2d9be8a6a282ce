"""Differences outside verdicts: paired, unpaired with an offset between runs, and without an interval."""

from __future__ import annotations

import numpy as np
import pytest

from wqlab_comparison.unpaired import paired, unpaired, without_interval
from wqlab_contracts.enums import Scale


def test_paired_boots_have_the_interval_of_their_differences() -> None:
    left, right = [100.0, 110, 120, 130, 140, 150], [101.0, 111.2, 121.1, 130.9, 141.3, 151]
    found = paired(left, right, Scale.DIFFERENCE)
    assert found.effect == pytest.approx(1.08, abs=0.05)
    assert found.ci95 is not None
    assert 0 < found.ci95[0] < found.ci95[1] < 2
    assert found.p == pytest.approx(2 / 2**6)
    wider = unpaired(left, right, Scale.DIFFERENCE)
    assert wider.ci95 is not None
    assert wider.ci95[1] - wider.ci95[0] > 10 * (found.ci95[1] - found.ci95[0])


def test_ratio_is_in_percent_and_needs_positive_values() -> None:
    assert unpaired([100, 100], [150, 150], Scale.RATIO).effect == pytest.approx(50)
    assert unpaired([100, 0], [150, 150], Scale.RATIO).effect is None
    assert paired([0], [1], Scale.RATIO).effect is None


@pytest.mark.parametrize(("left", "right"), [([1.0], [2.0, 3.0]), ([1.0, 1.0], [2.0, 2.0])])
def test_one_boot_or_no_spread_has_no_interval(left: list[float], right: list[float]) -> None:
    found = unpaired(left, right, Scale.DIFFERENCE)
    assert found.effect is not None
    assert (found.ci95, found.p) == (None, None)


def test_different_environments_have_no_interval() -> None:
    found = without_interval([1.0, 2.0, 3.0], [11.0, 12.0, 13.0], Scale.DIFFERENCE)
    assert (found.effect, found.ci95, found.p) == (10, None, None)


@pytest.mark.parametrize("shape", ["normal", "skewed"])
@pytest.mark.parametrize(("n", "m"), [(2, 2), (2, 6), (6, 6), (16, 6)])
def test_false_claims_of_unpaired_runs_are_at_most_five_percent(shape: str, n: int, m: int) -> None:
    """Each run has an offset as large as the deviation between its boots, and the kernels do not differ."""
    random = np.random.default_rng(12)
    claims, runs = 0, 3000
    for _ in range(runs):
        noise = random.normal(size=n + m) if shape == "normal" else random.exponential(size=n + m)
        sides = [100 + noise[:n] + random.normal(), 100 + noise[n:] + random.normal()]
        found = unpaired(sides[0].tolist(), sides[1].tolist(), Scale.DIFFERENCE)
        assert found.ci95 is not None
        claims += not found.ci95[0] <= 0 <= found.ci95[1]
    assert claims / runs <= 0.05 + 3 * (0.05 * 0.95 / runs) ** 0.5


def test_interval_excludes_zero_if_and_only_if_p_is_at_most_five_percent() -> None:
    random = np.random.default_rng(3)
    for _ in range(300):
        left, right = random.normal(10, 1, 4).tolist(), random.normal(13, 1, 5).tolist()
        found = unpaired(left, right, Scale.DIFFERENCE)
        assert found.ci95 is not None
        assert found.p is not None
        assert (found.p <= 0.05) == (not found.ci95[0] <= 0 <= found.ci95[1])
