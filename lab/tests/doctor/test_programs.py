"""Errors in the lines of real logs."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from wqlab_lab.doctor.programs import recent_error

SINCE = datetime(2026, 11, 25, 15, 0, tzinfo=UTC)
JSON = '{"what": "run", "item": 7, "event": "tick_item_failed", "level": "error", "timestamp": "2026-11-25T15:52:09Z"}'


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (JSON, "tick_item_failed run 7"),
        (f"[2026-11-25 15:52:09,731: WARNING/ForkPoolWorker-1] {JSON}", "tick_item_failed run 7"),
        ("2026-11-25 15:52:09.731 UTC [12] FATAL:  could not write: No space left on device", None),
        ("[2026-11-25 15:52:09,731: ERROR/MainProcess] consumer: Cannot connect to redis+socket", None),
        ("2026-11-25 15:52:09,731 WARN exited: api (exit status 1; not expected)", None),
    ],
)
def test_errors_are_found(line: str, message: str | None) -> None:
    assert recent_error(line, SINCE) == (message or line)


@pytest.mark.parametrize(
    "line",
    [
        JSON.replace("15:52", "14:59"),
        JSON.replace('"error"', '"info"'),
        "[2026-11-25 14:59:59,731: ERROR/MainProcess] consumer: Cannot connect",
        "[2026-11-25 15:52:09,731: INFO/MainProcess] Task wqlab.tick succeeded",
        "2026-11-25 15:52:09,731 WARN exited: api (exit status 0; expected)",
        "  File error.py, line 3: ERROR",
        "",
    ],
)
def test_other_lines_are_no_errors(line: str) -> None:
    assert recent_error(line, SINCE) is None
