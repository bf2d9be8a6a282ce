"""Paragraphs and tables of plain texts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from wqlab_report import plain_text

TEXT = st.lists(st.text("abc=,:.%<", min_size=1, max_size=200), max_size=20).map(" ".join)


@given(TEXT, st.sampled_from(["", "* ", "    "]), st.integers(20, 78))
def test_wrapped_paragraph_fits_the_width_and_keeps_its_text(text: str, bullet: str, width: int) -> None:
    lines = plain_text.wrapped(text, bullet, width=width)
    assert all(len(line) <= width for line in lines)
    together = "".join(
        line.removeprefix(bullet if index == 0 else " " * len(bullet)) for index, line in enumerate(lines)
    )
    assert together.replace(" ", "") == text.replace(" ", "")


def test_url_is_not_broken() -> None:
    url = "https://git.example.org/" + "a" * 90
    assert plain_text.wrapped(f"of {url} then", "* ") == ["* of", f"  {url}", "  then"]


def test_figure_and_unit_stay_on_one_line() -> None:
    assert plain_text.wrapped("lower is better, threshold 1 %", width=28) == ["lower is better,", "threshold 1 %"]


@given(st.lists(st.tuples(*[st.text("abc=,[ ", max_size=60)] * 4), min_size=1, max_size=4))
def test_table_with_wide_cells_fits_the_width(rows: list[tuple[str, ...]]) -> None:
    for line in plain_text.fitted(["", "baseline", "95 % interval", "verdict"], rows):
        assert len(line) <= 78
