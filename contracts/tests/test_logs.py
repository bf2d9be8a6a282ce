"""Log lines of exceptions."""

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


def test_exception_is_logged_as_one_line_without_variables(stream: io.StringIO) -> None:
    token = "".join(["wql", "_secret"])
    try:
        raise LookupError("no such device")
    except LookupError:
        structlog.get_logger().exception("tick_item_failed", item=7)
    assert token not in stream.getvalue()
    (line,) = stream.getvalue().splitlines()
    record = json.loads(line)
    assert record["event"] == "tick_item_failed" and record["level"] == "error" and record["item"] == 7
    assert record["exception"].startswith("Traceback") and "LookupError: no such device" in record["exception"]
