from __future__ import annotations

from collections.abc import Iterable

import pytest

from wqlab_client.sse import EVENT_LIMIT, parse_events


def parsed(chunks: Iterable[bytes]) -> list[tuple[str, str, str]]:
    return [(event.id, event.event, event.data) for event in parse_events(chunks)]


def test_events_do_not_depend_on_where_chunks_are_cut() -> None:
    stream = b'id: 1\nevent: boot_state\ndata: {"a":\ndata: 1}\n\n: alive\n\nid: 2\r\ndata: x\r\n\r\n'
    whole = [("1", "boot_state", '{"a":\n1}'), ("2", "message", "x")]
    assert parsed([stream]) == whole
    for cut in range(1, len(stream)):
        assert parsed([stream[:cut], stream[cut:]]) == whole
    assert parsed(stream[i : i + 1] for i in range(len(stream))) == whole


def test_unfinished_event_is_dropped() -> None:
    assert parsed([b"id: 1\ndata: whole\n\nid: 2\ndata: cut o"]) == [("1", "message", "whole")]
    assert parsed([b"id: 2\ndata: no empty line follows\n"]) == []


def test_comments_and_events_without_data_are_skipped() -> None:
    assert parsed([b": alive\n\n", b"id: 3\n\n", b"event: ping\n\n", b": alive\n"]) == []


def test_unicode_line_separators_do_not_end_a_line() -> None:
    text = 'data: {"title": "one\u2028two\x85three"}\n\n'
    assert parsed([text.encode()]) == [("", "message", text[6:-2])]


def test_invalid_utf8_is_replaced() -> None:
    assert parsed([b"data: caf\xe9\n\n"]) == [("", "message", "caf\ufffd")]


@pytest.mark.parametrize("chunk", [b"x" * 1_000_000, (b"data: " + b"y" * 1000 + b"\n") * 1000])
def test_oversized_event_is_refused(chunk: bytes) -> None:
    with pytest.raises(ValueError, match="longer than"):
        parsed(chunk for _ in range(EVENT_LIMIT // 1_000_000 + 2))


def test_many_small_events_may_exceed_the_limit_together() -> None:
    chunk = b"data: " + b"y" * 100_000 + b"\n\n"
    assert len(parsed(chunk for _ in range(60))) == 60
