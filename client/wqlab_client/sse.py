"""Read server-sent events (the `text/event-stream` format of the HTML standard) from chunks of bytes.

httpx-sse parses the format, but buffers an event of any size. So this module limits the size of an event.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import httpx
from httpx_sse import EventSource, ServerSentEvent

EVENT_LIMIT = 4_000_000
"""Bytes of one event, and so of one line."""
_EVENT_END = re.compile(rb"\n\r?\n|\r\r")


def parse_events(chunks: Iterable[bytes]) -> Iterator[ServerSentEvent]:
    """Yield the complete events that carry data.

    Comment lines are skipped, and an unfinished last event is dropped, as the format requires.
    Raises ValueError for an event over EVENT_LIMIT bytes.
    """
    response = httpx.Response(200, headers={"Content-Type": "text/event-stream"}, content=_limit_event_size(chunks))
    for event in EventSource(response).iter_sse():
        if event.data:
            yield event


def _limit_event_size(chunks: Iterable[bytes]) -> Iterator[bytes]:
    size, tail = 0, b""
    for chunk in chunks:
        recent = tail + chunk
        ends = [match.end() for match in _EVENT_END.finditer(recent)]
        size = len(recent) - ends[-1] if ends else size + len(chunk)
        if size > EVENT_LIMIT:
            raise ValueError(f"an event of the stream is longer than {EVENT_LIMIT} bytes")
        tail = recent[-2:]
        yield chunk
