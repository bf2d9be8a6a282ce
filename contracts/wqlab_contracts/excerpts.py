"""Shorten excerpts of logs and kernel reports. They keep beginning and end: the cause comes first, the result last."""

from __future__ import annotations

from collections.abc import Sequence

from .messages.base import EXCERPT_LIMIT


def shorten(text: str, limit: int = EXCERPT_LIMIT) -> str:
    """Return `text`. If it is longer than `limit` characters, replace its middle by a line that says how much."""
    if len(text) <= limit:
        return text
    half = limit // 2 - 40
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"


def shorten_lines(lines: Sequence[str], limit: int) -> list[str]:
    """Return `lines`. If there are more than `limit`, replace the middle by a line that says how many."""
    if len(lines) <= limit:
        return list(lines)
    end = limit // 2
    beginning = limit - end
    return [*lines[:beginning], f"[{len(lines) - limit} lines omitted]", *lines[len(lines) - end :]]
