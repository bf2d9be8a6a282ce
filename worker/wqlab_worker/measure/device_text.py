"""Turn output of a device, which may be any bytes, into printable text that can be stored, shown and parsed."""

from __future__ import annotations

import re

_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def printable(text: str) -> str:
    r"""Replace control characters (except \t and \n) and lone surrogates with U+FFFD; convert \r\n to \n."""
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def decode_output(data: bytes) -> str:
    """Decode a device's output as printable text; never raises."""
    return printable(data.decode("utf-8", "replace"))
