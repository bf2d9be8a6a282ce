"""What a program's log says of an exception."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator

import pytest
import structlog

from wqlab_contracts import logs


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    stream, before = io.StringIO(), structlog.get_config()
    logs.configure(stream)
    yield stream
    structlog.configure(**before)


def test_an_exception_is_a_line_with_its_traceback_and_without_variables(stream: io.StringIO) -> None:
    token = "".join(["wql", "_secret"])
    try:
        raise LookupError("no such device")
    except LookupError:
        structlog.get_logger().exception("tick_item_failed", item=7)
    assert token not in stream.getvalue()
    (line,) = stream.getvalue().splitlines()
    said = json.loads(line)
    assert said["event"] == "tick_item_failed" and said["level"] == "error" and said["item"] == 7
    assert said["exception"].startswith("Traceback") and "LookupError: no such device" in said["exception"]
