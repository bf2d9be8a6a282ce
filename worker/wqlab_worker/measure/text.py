"""Text from a device: it may print any byte, and what it printed is stored, shown and parsed."""

from __future__ import annotations

import re

_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def printable(text: str) -> str:
    r"""Every control character but \t and \n, and every lone surrogate, becomes U+FFFD; \r\n is a line's end."""
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def decoded(data: bytes) -> str:
    """A device's output as printable text; never raises."""
    return printable(data.decode("utf-8", "replace"))
