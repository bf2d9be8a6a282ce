from __future__ import annotations

import pytest

from wqlab_client.sse import LINE_LIMIT, ServerEvent, lines, messages


def test_messages_do_not_depend_on_where_chunks_are_cut() -> None:
    stream = b'id: 1\nevent: boot_state\ndata: {"a":\ndata: 1}\n\n: alive\n\nid: 2\r\ndata: x\r\n\r\n'
    whole = [ServerEvent("1", "boot_state", '{"a":\n1}'), None, ServerEvent("2", "message", "x")]
    assert list(messages([stream])) == whole
    for cut in range(1, len(stream)):
        assert list(messages([stream[:cut], stream[cut:]])) == whole
    assert list(messages(stream[i : i + 1] for i in range(len(stream)))) == whole


def test_a_message_that_was_cut_off_is_not_given() -> None:
    assert list(messages([b"id: 1\ndata: whole\n\nid: 2\ndata: cut o"])) == [ServerEvent("1", "message", "whole")]
    assert list(messages([b"id: 2\ndata: no empty line behind it\n"])) == []


def test_line_separators_of_unicode_do_not_end_a_line() -> None:
    text = 'data: {"title": "one\u2028two\x85three"}\n\n'
    assert list(messages([text.encode()])) == [ServerEvent(None, "message", text[6:-2])]


def test_an_endless_line_is_refused() -> None:
    with pytest.raises(ValueError, match="longer than"):
        list(lines(b"x" * 1_000_000 for _ in range(LINE_LIMIT // 1_000_000 + 2)))
