"""False claims of ladders and what they find, by the shipped plan of boots and the shipped comparison.

docs/comparison.md quotes the rates of benchmarks/ladders.py; here there are fewer ladders, with a bound that accounts
for chance.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from wqlab_contracts.enums import BETWEEN, Verdict

from .simulated_ladders import CLAIMS, DRIFT, ladder


@pytest.mark.parametrize("drift", [pytest.param(0.0, marks=pytest.mark.nightly), DRIFT])
def test_at_most_one_ladder_in_twenty_claims_a_change_that_is_none(drift: float) -> None:
    random = np.random.default_rng(20)
    number = 300
    false = sum(bool(CLAIMS & set(ladder(random, 10, {}, drift).values())) for _ in range(number))
    assert false / number <= 0.05 + 3 * sqrt(0.05 * 0.95 / number)


def test_third_patch_that_regresses_and_fifth_that_repairs_are_found() -> None:
    random = np.random.default_rng(21)
    slow = {BETWEEN[2]: -0.05, BETWEEN[3]: -0.05}
    number, both, others = 60, 0, 0
    for _ in range(number):
        found = ladder(random, 10, slow, DRIFT)
        both += (found[3], found[5]) == (Verdict.REGRESSION, Verdict.IMPROVEMENT)
        others += any(found[patch] in CLAIMS for patch in (1, 2, 4, None))
    assert both / number >= 0.95
    assert others / number <= 0.05 + 3 * sqrt(0.05 * 0.95 / number)
