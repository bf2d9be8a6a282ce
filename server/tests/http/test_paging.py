"""Cursors of lists."""

from __future__ import annotations

import pytest

from wqlab_server.http.paging import decode_cursor, encode_cursor
from wqlab_server.http.problems import ApiProblem


def test_cursor_round_trip_and_invalid_cursors() -> None:
    assert decode_cursor(encode_cursor(42)) == 42
    for bad in ("", "zzz", "é", encode_cursor(0), encode_cursor(2**40), "YmVmb3JlOi0x"):
        with pytest.raises(ApiProblem):
            decode_cursor(bad)
