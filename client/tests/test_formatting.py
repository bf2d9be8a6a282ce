from __future__ import annotations

import json

import pytest
from rich.cells import cell_len
from rich.text import Text

from wqlab_client.formatting import align_columns, clean, duration, escape_json, rough_duration


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


HEADER = ("ID", "STATE", "PRIMARY VERDICTS", "TITLE")
ROWS = [
    ("120", Text("running", "cyan"), "", "workqueue: Take each pool lock once per flush 事事事"),
    ("7", "passed", "regression 1, below threshold 2", "https://lab.example.org/" + 70 * "x"),
]


@pytest.mark.parametrize("width", [8, 20, 30, 40, 60, 72, 80, 120, 200])
def test_table_fits_every_width_and_loses_nothing(width: int) -> None:
    blocks = align_columns(HEADER, ROWS, width)
    assert all(cell_len(line.plain) <= width for lines in blocks for line in lines)
    for row, lines in zip(ROWS, blocks[1:], strict=True):
        shown = sorted("".join(line.plain for line in lines).replace(" ", ""))
        titles = "".join(f"{title}:" for title, cell in zip(HEADER, row, strict=True) if str(cell))
        expected = "".join(str(cell) for cell in row) + ("" if blocks[0] else titles)
        assert shown == sorted(expected.replace(" ", "")), "as columns, or as a record"


def test_table_is_folded_at_words() -> None:
    lines = [line.plain for lines in align_columns(HEADER, ROWS[:1], 60) for line in lines]
    assert lines == [
        "ID   STATE    PRIMARY VERDICTS  TITLE",
        "120  running                    workqueue: Take each pool",
        "                                lock once per flush 事事事",
    ]


def test_table_without_a_width_has_one_line_a_row() -> None:
    assert [len(lines) for lines in align_columns(HEADER, ROWS, None)] == [1, 1, 1]
