from __future__ import annotations

import json

import pytest

from wqlab_client.formatting import clean, duration, escape_json, rough_duration


@pytest.mark.parametrize(
    ("seconds", "exact", "about"),
    [
        (0, "0:00", "0 s"),
        (59.6, "1:00", "60 s"),
        (600, "10:00", "10 min"),
        (7322, "2:02:02", "2 h"),
        (-5, "0:00", "0 s"),
    ],
)
def test_durations_are_formatted(seconds: float, exact: str, about: str) -> None:
    assert duration(seconds) == exact
    assert rough_duration(seconds) == about


def test_json_escapes_what_controls_a_terminal() -> None:
    hostile = {"title": "a\x9b2J\x7f\u202eb\u2066\u200f\x85c", "plain": "\u00e4 \u20ac"}
    text = json.dumps(hostile, ensure_ascii=False, indent=2)
    shown = escape_json(text)
    assert clean(shown) == shown
    assert json.loads(shown) == hostile
    assert "\u00e4 \u20ac" in shown
