"""Sections, lists and paragraphs are cut to a number of lines."""

from __future__ import annotations

from wqlab_report.document.blocks import Bullets, Paragraph, Part, Section, Style
from wqlab_report.writers.text import fitting, lines_of, listed, wrapped


def section(*parts: str) -> Section:
    """Return a section with a line for each letter of its parts."""
    return Section([Part([Paragraph(line) for line in part], apart=False) for part in parts])


def test_parts_are_taken_in_their_order_as_long_as_they_fit() -> None:
    sections = [section("aa"), section("bb", "c")]
    assert fitting(sections, 5) == (["a", "a", "b", "b", "c"], True)
    assert fitting(sections, 4) == (["a", "a", "b", "b"], False)
    assert fitting([], 0) == ([], True)


def test_a_part_that_does_not_fit_leaves_its_lines_to_later_ones() -> None:
    assert fitting([section("a", "bbb", "c"), section("d")], 3) == (["a", "c", "d"], False)


def test_a_section_is_left_out_with_its_heading() -> None:
    assert fitting([section("hh", "t"), section("o")], 1) == (["o"], False)


def test_a_part_has_an_empty_line_above_it_if_it_says_something() -> None:
    assert fitting([Section([Part([Paragraph("a")]), Part([])])], 2) == (["", "a"], True)


def test_items_and_further_lines_are_indented() -> None:
    text = "word " * 20
    assert [line[:5] for line in lines_of([Bullets([text])])] == ["* wor", "  wor"]
    assert [line[:5] for line in lines_of([Bullets([text], mark="  ")])] == ["  wor", "    w"]
    assert [line[:5] for line in lines_of([Bullets(["a", Bullets(["b"])])])] == ["* a", "  * b"]
    assert [line[:5] for line in lines_of([Paragraph(text)])] == ["word ", "  wor"]
    assert [line[:5] for line in lines_of([Paragraph(text, style=Style.NOTE)])] == ["word ", "word "]


def test_long_paragraphs_and_lists_say_that_they_are_cut() -> None:
    assert wrapped("one two three four", 2, width=8) == ["one two", "thre ..."]
    assert wrapped("one two", 2, width=8) == ["one two"]
    items = [["a"], ["b", "b"], ["c"]]
    assert listed(items, 4, "and {n} more") == ["a", "b", "b", "c"]
    assert listed(items, 3, "and {n} more") == ["a", "and 2 more"]
    assert listed(items, 1, "and {n} more") == ["and 3 more"]
