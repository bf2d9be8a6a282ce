"""Server-sent events (the `text/event-stream` format of the HTML standard), read from chunks of bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

LINE_LIMIT = 4_000_000


@dataclass(frozen=True)
class ServerEvent:
    id: str | None
    """The stream position to resume after, if this message carried one."""
    name: str
    data: str


def lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """Lines without their end. Only LF and CRLF end a line: JSON may hold U+2028 and its like unescaped.

    An unfinished last line is dropped, as the format asks. Raises ValueError for a line over LINE_LIMIT bytes.
    """
    rest = b""
    for chunk in chunks:
        *complete, rest = (rest + chunk).split(b"\n")
        if len(rest) > LINE_LIMIT:
            raise ValueError(f"a line of the event stream is longer than {LINE_LIMIT} bytes")
        for line in complete:
            yield line.removesuffix(b"\r").decode("utf-8", errors="replace")


def messages(chunks: Iterable[bytes]) -> Iterator[ServerEvent | None]:
    """Complete messages; None for each comment line, which servers send to keep a connection alive."""
    event_id: str | None = None
    name, data = "message", list[str]()
    for line in lines(chunks):
        if line == "":
            if data:
                yield ServerEvent(event_id, name, "\n".join(data))
            event_id, name, data = None, "message", []
            continue
        if line.startswith(":"):
            yield None
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            data.append(value)
        elif field == "event":
            name = value
        elif field == "id" and "\0" not in value:
            event_id = value
