"""Split lines of a console, `dmesg` or `journalctl -k` into the message and what printk and others put before it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..linear_patterns import LinearPattern

_ANSI = LinearPattern(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|[@-Z\\-_])")
_CONTROL = LinearPattern(r"[\x00-\x08\x0b-\x1f\x7f\x{fffd}]")
_STAMP = r"\[ *(\d+\.\d{1,9})\] ?(?:\[ *([TC]\d+)\] ?)?"
"""printk's time and caller id (CONFIG_PRINTK_CALLER)."""
_PREFIX = LinearPattern(
    r"(?:<\d{1,2}>|[a-z0-9]{3,8} *:[a-z]{3,6} *: )?"  # printk's level; facility and level of `dmesg --decode`
    rf"(?:{_STAMP}|\[[A-Z][a-z]{{2}} [A-Z][a-z]{{2}} [ \d]\d [\d:]{{8}} \d{{4}}\] ?(?:\[ *([TC]\d+)\] ?)?"  # `dmesg -T`
    rf"|(?:[A-Z][a-z]{{2}} [ \d]\d [\d:]{{8}}|\d{{4}}-\d\d-\d\dT\S{{8,32}}) \S+ kernel: (?:{_STAMP})?)?"  # journalctl
)
_USUAL_PREFIX = re.compile(r"\[ {0,12}(\d{1,12}\.\d{1,9})\] ?(?:\[ {0,12}([TC]\d{1,10})\] ?)?", re.ASCII)
"""The prefix that nearly all lines have; Python's pattern takes a tenth of the time of RE2's."""
_STAMP_INSIDE = LinearPattern(_STAMP)
_QUOTES = "\"'`(\u201c"


@dataclass(frozen=True)
class ConsoleLine:
    """One line of a console."""

    text: str
    """The line without terminal sequences."""
    message: str
    """The text behind printk's prefix."""
    caller: str = ""
    """printk's caller id: `T` and the thread, or `C` and the CPU; empty without CONFIG_PRINTK_CALLER."""
    time_s: float | None = None
    """printk's time; None if the line has none."""


def read_line(text: str) -> ConsoleLine:
    """Split a line. Text of others before printk's prefix, as a prompt, is no part of the message."""
    if not text:
        return ConsoleLine(text, text)
    if (usual := _USUAL_PREFIX.match(text)) is not None:
        return ConsoleLine(text, text[usual.end() :], usual[2] or "", float(usual[1]))
    prefix = _PREFIX.match(text)
    if prefix and prefix.end():
        groups = prefix.groups()
        stamp, caller = groups[0] or groups[3], groups[1] or groups[2] or groups[4]
        return ConsoleLine(text, text[prefix.end() :], caller or "", float(stamp) if stamp else None)
    if "] " in text and (inside := _STAMP_INSIDE.search(text)) and not text[: inside.start()].endswith(tuple(_QUOTES)):
        groups = inside.groups()
        return ConsoleLine(text, text[inside.end() :], groups[1] or "", float(groups[0]))
    return ConsoleLine(text, text)


def without_prefix(text: str) -> str:
    """Return a line without printk's first prefix."""
    prefix = _PREFIX.match(text)
    return text[prefix.end() :] if prefix else text


def clean(line: bytes) -> str:
    """Remove terminal sequences and control bytes. Text before a carriage return is kept, since it may be part of a
    report."""
    text = line.decode("utf-8", "replace").rstrip("\r\n")
    if text.isascii() and text.isprintable():
        return text
    return _CONTROL.sub("", _ANSI.sub("", text))
