"""Find characters in submitted text that would change what a terminal or a page shows."""

from __future__ import annotations

import re

_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""C0 and C1 control characters except the tab, line and paragraph separators, and bidirectional controls."""


def control_character(text: str) -> str | None:
    """Return the first control character of a line of text as `U+001B`, or None if it has none."""
    found = _CONTROL.search(text)
    return f"U+{ord(found[0]):04X}" if found else None


def valid_text(text: str) -> str:
    """Return text in which each byte that is no UTF-8, as kept by `surrogateescape`, is replaced by U+FFFD."""
    return text.encode("utf-8", errors="surrogateescape").decode("utf-8", errors="replace")
