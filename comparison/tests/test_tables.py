"""Tables and paragraphs of text reports."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from literal_samples import cell

from wqlab_comparison import tables, words
from wqlab_contracts.api.report import ArmSummary
from wqlab_contracts.enums import Question

TEXT = st.lists(st.text("abc=,:.%<", min_size=1, max_size=200), max_size=20).map(" ".join)


@given(TEXT, st.sampled_from(["", "* ", "    "]), st.integers(20, 78))
def test_wrapped_paragraph_fits_the_width_and_keeps_its_text(text: str, bullet: str, width: int) -> None:
    lines = tables.wrapped(text, bullet, width=width)
    assert all(len(line) <= width for line in lines)
    together = "".join(
        line.removeprefix(bullet if index == 0 else " " * len(bullet)) for index, line in enumerate(lines)
    )
    assert together.replace(" ", "") == text.replace(" ", "")


def test_url_is_not_broken() -> None:
    url = "https://git.example.org/" + "a" * 90
    assert tables.wrapped(f"of {url} then", "* ") == ["* of", f"  {url}", "  then"]


def test_figure_and_unit_stay_on_one_line() -> None:
    assert tables.wrapped("lower is better, threshold 1 %", width=28) == ["lower is better,", "threshold 1 %"]


@given(st.lists(st.tuples(*[st.text("abc=,[ ", max_size=60)] * 4), min_size=1, max_size=4))
def test_table_with_wide_cells_fits_the_width(rows: list[tuple[str, ...]]) -> None:
    for line in tables.fitted(["", "baseline", "95 % interval", "verdict"], rows):
        assert len(line) <= 78


def test_exact_counts_have_integer_changes() -> None:
    exact = cell(question=Question.KERNEL, kernel=None, reference="baseline", effect=-30.0, exact=True)
    assert words.effect(exact) == "-30 locks"
    [row] = [line for line in tables.kernel_tables([exact]) if line.startswith("HIGH")]
    assert row.split() == ["HIGH", "34", "4", "-30", "exact", "inconclusive"]


@pytest.mark.parametrize(
    ("deviations", "places"),
    [((50.9, 61.5), 0), ((1.34, 0.89), 2), ((None, None), 2), ((0.0, 12.0), 0)],
)
def test_decimal_places_of_a_mean_depend_on_its_deviation(deviations: tuple[float | None, ...], places: int) -> None:
    arms = [ArmSummary(mean=2913.5, stddev=deviation, n=2) for deviation in deviations]
    assert words.decimals(arms) == places


def test_unmeasured_metric_has_no_table() -> None:
    missing = cell(metric="other", baseline=None, candidate=None)
    assert not any("other" in line for line in tables.setting_tables([cell(), missing]))
    assert tables.setting_tables([missing]) == []
