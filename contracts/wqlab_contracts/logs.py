"""Configure logging of API, server and workers: one JSON object per line, with tracebacks as text."""

from __future__ import annotations

from typing import TextIO

import structlog


def configure(stream: TextIO | None = None) -> None:
    """Configure structlog to write to `stream` (None: standard output).

    Tracebacks show no variables, since those may hold tokens.
    """
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        logger_factory=structlog.PrintLoggerFactory(stream),
    )
