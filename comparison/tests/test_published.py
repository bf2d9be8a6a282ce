"""Published changes and modelled effects: which are right."""

from __future__ import annotations

import pytest

from wqlab_comparison.published import Outcome, Score, counts, judge, score


@pytest.mark.parametrize(
    ("published", "control", "effect", "ci95", "outcome"),
    [
        (10.0, 2.6, 12.0, (8.0, 16.0), Outcome.RIGHT),
        (10.0, 2.6, 20.0, (15.0, 25.0), Outcome.RIGHT),
        (10.0, 2.6, 20.1, (15.0, 25.0), Outcome.SIZE_WRONG),
        (10.0, 2.6, 4.9, (4.0, 6.0), Outcome.SIZE_WRONG),
        (-40.0, 2.6, -30.0, None, Outcome.UNDECIDED),
        (10.0, 2.6, 5.0, (-1.0, 11.0), Outcome.UNDECIDED),
        (10.0, 2.6, -5.0, (-8.0, -2.0), Outcome.SIGN_WRONG),
        (10.0, 2.6, None, None, Outcome.MISSING),
        (-2.6, 2.6, 1.0, (0.5, 1.5), Outcome.STILL),
        (-2.6, 2.6, 9.0, (-1.0, 19.0), Outcome.STILL),
        (-2.6, 2.6, 9.0, (1.0, 19.0), Outcome.MOVED),
        (17.7, 17.9, 9.0, (1.0, 19.0), Outcome.UNTOLD),
        (17.7, 17.9, None, None, Outcome.MISSING),
    ],
)
def test_effect_is_judged_by_sign_size_and_control(
    published: float, control: float, effect: float | None, ci95: tuple[float, float] | None, outcome: Outcome
) -> None:
    assert judge(published, control, effect, ci95) is outcome


def test_aim_needs_nine_signs_of_ten_and_two_sizes_of_three() -> None:
    right, sign, wrong = Outcome.RIGHT, Outcome.SIZE_WRONG, Outcome.SIGN_WRONG
    assert score([right] * 6 + [sign] * 3 + [wrong]) == Score(9, 6, 10)
    assert score([right] * 6 + [sign] * 3).holds
    assert not score([right] * 5 + [sign] * 4).holds
    assert score([right] * 9 + [wrong]).holds
    assert not score([right] * 8 + [wrong]).holds
    assert not score([right] * 8 + [Outcome.MISSING]).holds
    assert not score([]).holds


@pytest.mark.parametrize(
    ("published", "control", "counted"),
    [(3.0, 0.0, False), (-3.1, 0.0, True), (17.9, 17.9, False), (18.0, 17.9, True)],
)
def test_cells_count_above_three_percent_and_their_control(published: float, control: float, counted: bool) -> None:
    assert counts(published, control) is counted
