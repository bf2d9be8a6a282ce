"""Names of metrics with their units, as tables show them."""

from __future__ import annotations

import pytest
from letter_examples import measured

from wqlab_report.content import cells


@pytest.mark.parametrize(
    ("metric", "unit", "name"),
    [
        ("wait_p99_us", "ms", "wait_p99 (ms)"),
        ("wait_p50_us", "us", "wait_p50 (us)"),
        ("items_per_s", "1/s", "items_per_s (1/s)"),
        ("reads", "", "reads"),
    ],
)
def test_name_of_a_time_does_not_end_in_its_unit(metric: str, unit: str, name: str) -> None:
    (cell, *_) = measured().targets[0].comparisons
    assert cells.metric(cell.model_copy(update={"metric": metric, "unit": unit})) == name
