"""Shorten excerpts of logs and kernel reports. They keep beginning and end: the cause comes first, the result last."""

from __future__ import annotations

from collections.abc import Sequence

from .messages.base import shorten

__all__ = ["shorten", "shorten_lines"]


def shorten_lines(lines: Sequence[str], limit: int) -> list[str]:
    """Return `lines`. If there are more than `limit`, replace the middle by a line that says how many."""
    if len(lines) <= limit:
        return list(lines)
    end = limit // 2
    beginning = limit - end
    return [*lines[:beginning], f"[{len(lines) - limit} lines omitted]", *lines[len(lines) - end :]]
