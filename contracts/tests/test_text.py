"""Control characters in text."""

from __future__ import annotations

import pytest

from wqlab_contracts.text import control_character


@pytest.mark.parametrize("character", ["\0", "\x01", "\n", "\r", "\x1b", "\x7f", "\x9b", "\u2028", "\u202e", "\u2066"])
def test_control_character_is_named(character: str) -> None:
    assert control_character(f"a{character}b") == f"U+{ord(character):04X}"


@pytest.mark.parametrize("text", ["", "a\tb", "Björn", "workqueue: 中文 \N{GRINNING FACE}"])
def test_usual_text_has_none(text: str) -> None:
    assert control_character(text) is None
