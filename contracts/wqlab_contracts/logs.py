"""How API, server and workers log: a JSON object a line, an exception's traceback in it as text."""

from __future__ import annotations

from typing import TextIO

import structlog


def configure(stream: TextIO | None = None) -> None:
    """From now on, to `stream` (None: standard output). A traceback shows no variables: tokens are among them."""
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
