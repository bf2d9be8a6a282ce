"""Checks of the table of samples."""

import math

import pytest
from literal_samples import paired

from wqlab_comparison import Samples, SamplesError


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_value_that_is_not_finite_is_rejected(value):
    with pytest.raises(SamplesError, match="was not measured has no row"):
        paired([1, 2], [3, value])


def test_concatenated_samples_keep_order_and_text():
    one, other = paired([1], [2], scenario="a"), paired([3], [4], scenario="b")
    both = Samples.concatenate([one, other])
    assert both.value.tolist() == [1, 2, 3, 4]
    assert [both.scenario.words[code] for code in both.scenario.codes] == ["a", "a", "b", "b"]


def test_unknown_and_missing_columns_are_named():
    with pytest.raises(SamplesError, match=r"columns missing: .*arm.*; unknown: colour"):
        Samples.from_columns(value=[1.0], colour="red")
