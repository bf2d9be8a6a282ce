"""Sections, lists and paragraphs are cut to a number of lines."""

from __future__ import annotations

from wqlab_report.writers.fitting import fit, listed, wrapped


def test_parts_are_taken_in_their_order_as_long_as_they_fit() -> None:
    sections = [[["a", "a"]], [["b", "b"], ["c"]]]
    assert fit(sections, 5) == (["a", "a", "b", "b", "c"], True)
    assert fit(sections, 4) == (["a", "a", "b", "b"], False)
    assert fit([], 0) == ([], True)


def test_a_part_that_does_not_fit_leaves_its_lines_to_later_ones() -> None:
    assert fit([[["a"], ["b", "b", "b"], ["c"]], [["d"]]], 3) == (["a", "c", "d"], False)


def test_a_section_is_left_out_with_its_heading() -> None:
    sections = [[["heading", "heading"], ["text"]], [["other"]]]
    assert fit(sections, 1) == (["other"], False)


def test_a_part_without_lines_is_no_loss() -> None:
    assert fit([[[], []], []], 0) == ([], True)


def test_long_paragraphs_and_lists_say_that_they_are_cut() -> None:
    assert wrapped("one two three four", 2, width=8) == ["one two", "thre ..."]
    assert wrapped("one two", 2, width=8) == ["one two"]
    items = [["a"], ["b", "b"], ["c"]]
    assert listed(items, 4, "and {n} more") == ["a", "b", "b", "c"]
    assert listed(items, 3, "and {n} more") == ["a", "and 2 more"]
    assert listed(items, 1, "and {n} more") == ["and 3 more"]
