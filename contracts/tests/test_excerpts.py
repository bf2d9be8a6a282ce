from __future__ import annotations

from wqlab_contracts.excerpts import shorten, shorten_lines


def test_long_text_keeps_beginning_and_end() -> None:
    text = "BUG: at the top\n" + "x" * 3000 + "\n---[ end trace ]---"
    short = shorten(text, 500)
    assert len(short) <= 500
    assert short.startswith("BUG: at the top") and short.endswith("---[ end trace ]---")
    assert "characters left out" in short
    assert shorten(text, len(text)) == text


def test_long_list_keeps_first_and_last_lines() -> None:
    lines = [f"line {number}" for number in range(100)]
    assert shorten_lines(lines, 5) == ["line 0", "line 1", "line 2", "[95 lines omitted]", "line 98", "line 99"]
    assert shorten_lines(lines, 1) == ["line 0", "[99 lines omitted]"]
    assert shorten_lines(lines, 100) == lines
