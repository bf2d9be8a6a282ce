"""Find and escape characters in submitted text that would change what a terminal or a page shows."""

from __future__ import annotations

import re

_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""C0 and C1 control characters except the tab, line and paragraph separators, and bidirectional controls."""


_ON_SCREEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""C0 and C1 control characters except tab and newline, and the characters that reorder text on a screen."""


def clean(text: str) -> str:
    """Replace control characters by visible ones.

    Titles, logs and consoles come from submitted code and must not control the reader's terminal.
    """
    return _ON_SCREEN.sub(_visible, text.replace("\r\n", "\n"))


def escape_json(text: str) -> str:
    """Return a JSON document with control characters as `\\u009b`; its own line breaks stay."""
    return _ON_SCREEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _visible(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return "^" + chr(code + 0x40)
    return "^?" if code == 0x7F else f"<{code:04x}>"


def control_character(text: str) -> str | None:
    """Return the first control character of a line of text as `U+001B`, or None if it has none."""
    found = _CONTROL.search(text)
    return f"U+{ord(found[0]):04X}" if found else None


def valid_text(text: str) -> str:
    """Return text in which each byte that is no UTF-8, as kept by `surrogateescape`, is replaced by U+FFFD."""
    return text.encode("utf-8", errors="surrogateescape").decode("utf-8", errors="replace")
