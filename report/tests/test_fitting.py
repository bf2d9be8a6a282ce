"""Parts of a text are fitted into a number of lines."""

from __future__ import annotations

from dataclasses import replace

from wqlab_report.writers.fitting import fit, listed, part, wrapped


def test_parts_of_a_lower_rank_are_placed_first_and_the_order_stays() -> None:
    parts = [part(2, ["a", "a"]), part(1, ["b", "b"]), part(3, ["c"])]
    assert fit(parts, 5) == (["a", "a", "b", "b", "c"], [])
    assert fit(parts, 3) == (["b", "b", "c"], [parts[0]])
    assert fit(parts, 0) == ([], [parts[1], parts[0], parts[2]])


def test_the_longest_form_that_fits_is_taken() -> None:
    parts = [part(1, ["long"] * 5, ["short"]), part(2, ["next"])]
    assert fit(parts, 6) == (["long"] * 5 + ["next"], [])
    assert fit(parts, 3) == (["short", "next"], [parts[0]])


def test_an_optional_part_that_is_left_out_is_no_loss() -> None:
    needed, optional = part(1, ["needed"]), replace(part(2, ["more", "more"], ["more"]), optional=True)
    assert fit([needed, optional], 3) == (["needed", "more", "more"], [])
    assert fit([needed, optional], 2) == (["needed", "more"], [])
    assert fit([needed, optional], 1) == (["needed"], [])


def test_a_part_without_lines_is_no_loss() -> None:
    assert fit([part(1, []), part(1)], 0) == ([], [])


def test_a_section_is_left_out_with_its_heading() -> None:
    heading, text = replace(part(1, ["heading", "heading"]), section="a"), replace(part(2, ["text"]), section="a")
    assert fit([heading, text], 3) == (["heading", "heading", "text"], [])
    assert fit([heading, text], 1) == ([], [heading, text])
    assert fit([heading, replace(text, section="b")], 1) == (["text"], [heading])


def test_long_paragraphs_and_lists_say_that_they_are_cut() -> None:
    assert wrapped("one two three four", 2, width=8) == ["one two", "thre ..."]
    assert wrapped("one two", 2, width=8) == ["one two"]
    items = [["a"], ["b", "b"], ["c"]]
    assert listed(items, 4, "and {n} more") == ["a", "b", "b", "c"]
    assert listed(items, 3, "and {n} more") == ["a", "and 2 more"]
    assert listed(items, 1, "and {n} more") == ["and 3 more"]
