"""Cursors of lists."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from wqlab_server.http.paging import MAX_ID, decode_cursor, decode_key, encode_cursor, encode_key
from wqlab_server.http.problems import ApiProblem


def test_cursor_round_trip_and_invalid_cursors() -> None:
    assert decode_cursor(encode_cursor(42)) == 42
    assert decode_cursor("9999999999") == MAX_ID
    for bad in ("", "zzz", "é", "٣", "0", "-1", "1 ", "1\n", "99999999999", "YmVmb3JlOjE"):
        with pytest.raises(ApiProblem):
            decode_cursor(bad)


def test_key_cursor_keeps_microseconds() -> None:
    key = (datetime(2026, 2, 28, 23, 59, 59, 999_999, tzinfo=UTC), 7, 0)
    assert decode_key(encode_key(key)) == key
    assert decode_key("9999999999999999-9999999999-0")[1:] == (MAX_ID, 0)
    for bad in ("", "1-2", "1-2-3-4", "-1-2-3", "10000000000000000-1-1", "1.5-2-3"):
        with pytest.raises(ApiProblem):
            decode_key(bad)
