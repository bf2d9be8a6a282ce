"""Split lines of a console, `dmesg` or `journalctl -k` into the message and what printk and others put before it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..linear_patterns import LinearPattern

_ANSI = LinearPattern(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|[@-Z\\-_])")
_CONTROL = LinearPattern(r"[\x00-\x08\x0b-\x1f\x7f\x{fffd}]")
_CALLER = r"(?:\[ *([TC]\d+|\d{1,3}: *[^\]\s][^\]]{0,15}: *\d{1,7})\] ?)?"
"""The caller that CONFIG_PRINTK_CALLER adds to a line. Android kernels print `[CPU: command: thread]` instead."""
_ONLY_CALLER = r"\[ *([TC]\d+)\] "
_WORD = r"\pL{2,5}\.?"
"""Name of a day or month in the language of the machine."""
_DATE = r"(?:(?:[^\s:\"'`(]{1,20} +){0,3}\d[\d./-]{0,9}[.,]? +(?:[^\s:\"'`(]{1,20} +){0,2})?"
"""Words with the number of a day before the time of day, or none."""
_TIME = r"\[ *(\d+\.\d{1,9})(?:,\d{1,2}| / [\d:. -]{14,28})? ?\] ?"
"""printk's time; two vendors add the CPU or the date."""
_STAMP = rf"{_TIME}{_CALLER}"
_LEVEL = r"(?:<\d{1,2}>|[a-z0-9]{3,8} *:[a-z]{3,6} *: )?"
"""printk's level; facility and level of `dmesg --decode`."""
_PREFIX = LinearPattern(
    rf"{_LEVEL}(?:{_STAMP}"
    # `dmesg -T`, conserver
    rf"|\[{_WORD} +(?:{_WORD} +\d{{1,2}}|\d{{1,2}} {_WORD}) [\d:]{{8}} \d{{4}}\] ?(?:{_TIME})?{_CALLER}"
    # syslog and journalctl: date, time of day and host. A sentence has no number where the day is, or more words.
    rf"| {{0,8}}(?:{_DATE}(?:\S{{0,16}}\d\d:\d\d\S{{0,24}})|\.\.\.) +(?:(?:[AP]M|[A-Z]{{3,5}}|[+-]?\d{{4}}) +){{0,2}}"
    rf"(?:[^\s:]{{1,64}} +)?(?:[a-z0-9]{{3,8}}\.[a-z]{{3,6}} +)?kernel(?:: |  | - - - )(?:{_STAMP}|{_ONLY_CALLER})?"
    rf"|kernel: (?:{_STAMP})?|{_ONLY_CALLER})?"
)
_OTHER_PREFIX = LinearPattern(
    rf"{_LEVEL}(?:\d{{4}}-\d\d-\d\dT[\d:]{{8}},\d{{6}}[+-]\d\d:\d\d "  # `dmesg --time-format=iso`
    rf"|\s{{0,8}}\d{{4}}-\d\d-\d\dT[\d:]{{8}}\.\d{{1,6}}  {_LEVEL}"  # KernelCI
    rf"|\[(?:[A-Z][a-z]{{2}}[ \d]\d \d\d:\d\d| *\+\d{{1,6}}[.,]\d{{6}})\] {_CALLER}"  # `dmesg --human`
    r"|\[ *(\d+\.\d{1,9}) <[ \d.+]{1,20}>\] \S{1,64} kernel: "  # `journalctl -o short-delta`
    r"|(?:[\w.+~-]{1,64},)?\d{1,4},\d{1,20},(\d{1,20}),[^;,]{1,2}(?:,caller=([TC]\d+)|,[^;,]{1,60}){0,4};"  # /dev/kmsg
    r"| {0,8}(\d+\.\d{6}): {1,4}<\d> \([\d-]{5} [\d:.]{8,20}\) "  # a vendor's /proc/last_kmsg
    rf"|(?:\[[ .]{{0,12}}|[\d.]{{0,16}})\] {_CALLER})"  # a time that somebody has cut out or off
)
_USUAL_PREFIX = re.compile(
    r"(?:<\d{1,2}>)?\[ {0,12}(\d{1,12}\.\d{1,9})\] ?"
    r"(?:\[ {0,12}([TC]\d{1,10}|\d{1,3}: {0,12}[^\]\s][^\]]{0,15}: {0,6}\d{1,7})\] ?)?",
    re.ASCII,
)
"""The prefix that nearly all lines have; Python's pattern takes a tenth of the time of RE2's."""
_BEHIND_TIME = re.compile(
    r"(?:\S{1,64} )?kernel: "  # `journalctl -o short-monotonic`
    # CPU, thread or level of vendors' kernels
    r"|(?:<\d>)?[-. ]{0,2}\(\d{1,2}\)\[(\d{1,7}):[^\]]{1,20}\] ?|c\d{1,2} {1,2}"
    r"| \[\d{1,2}: {0,12}[^\]]{1,16}: {0,6}(\d{1,7})\] ?"
    r"|\[[A-Z]\] ?",
    re.ASCII,
)
_MARKS = ("(", "<", "-(", ".(", " (", " [", "c", "[")
"""What may begin behind a time, other than a host."""
_LOGCAT = re.compile(
    r"(?:\d{4}-)?\d\d-\d\d [\d:]{8}\.\d{3,6} (?:[ \w]{0,12} 0 {1,8}0 [VDIWEF] ([^:]{0,40}?) {0,8}: "
    r"|[VDIWEF]/([^:(]{0,40}?) {0,8}\( {0,8}0\): )",
    re.ASCII,
)
"""A line of the kernel in Android's log, whose tag is what the message has before its first colon."""
_HOST_LENGTH = 80
_LAVA = re.compile(r"""- \{"?dt"?: .{10,40}, "?lvl"?: "?target"?, "?msg"?: (["'])(.*)\1\}""")
"""A line of a LAVA job's log."""
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
    """printk's caller id: `T` and the thread, or `C` and the CPU, or the thread; empty if the line has none."""
    time_s: float | None = None
    """printk's time; None if the line has none."""


def read_line(text: str) -> ConsoleLine:
    """Split a line. Text of others before printk's prefix, as a prompt, is no part of the message."""
    if not text:
        return ConsoleLine(text, text)
    if (usual := _USUAL_PREFIX.match(text)) is not None:
        begin, caller = usual.end(), usual[2]
        if text.find("kernel: ", begin, begin + _HOST_LENGTH) >= 0 or text.startswith(_MARKS, begin):
            behind = _BEHIND_TIME.match(text, begin)
            begin, caller = (behind.end(), behind[1] or behind[2] or caller) if behind else (begin, caller)
        return ConsoleLine(text, text[begin:], _thread(caller), float(usual[1]))
    if (logged := _LOGCAT.match(text)) is not None:
        tag = logged[1] or logged[2] or ""
        message = text[logged.end() :]
        return ConsoleLine(text, message if tag in {"", "kernel"} else f"{tag}: {message}")
    prefix, other = _PREFIX.match(text), _OTHER_PREFIX.match(text)
    if prefix and prefix.end() and not other:
        groups = prefix.groups()
        stamp = groups[0] or groups[2] or groups[4] or groups[7]
        caller = groups[1] or groups[3] or groups[5] or groups[6] or groups[8] or groups[9]
        return ConsoleLine(text, text[prefix.end() :], _thread(caller), float(stamp) if stamp else None)
    if other:
        human, delta, microseconds, caller, last, cut = other.groups()
        stamp = delta or last
        time_s = float(microseconds) / 1e6 if microseconds else float(stamp) if stamp else None
        return ConsoleLine(text, text[other.end() :], _thread(human or caller or cut), time_s)
    if "] " in text and (inside := _STAMP_INSIDE.search(text)) and not text[: inside.start()].endswith(tuple(_QUOTES)):
        groups = inside.groups()
        return ConsoleLine(text, text[inside.end() :], _thread(groups[1]), float(groups[0]))
    return ConsoleLine(text, text)


def _thread(caller: str | None) -> str:
    """Return what is the same in all lines of a caller: not the CPU, from which Android's kernels may migrate."""
    return (caller or "").rpartition(":")[2].strip()


def without_prefix(text: str) -> str:
    """Return a line without printk's first prefix."""
    prefix = _PREFIX.match(text)
    return text[prefix.end() :] if prefix else text


def clean(line: bytes) -> str:
    """Remove terminal sequences and control bytes, and write a space for a no-break space of a mail. Text before a
    carriage return is kept, since it may be part of a report."""
    text = line.decode("utf-8", "replace").rstrip("\r\n").removesuffix("^M")
    if text.startswith("- {") and (logged := _LAVA.fullmatch(text)) is not None:
        text = logged[2]
    if text.isascii() and text.isprintable():
        return text
    return _CONTROL.sub("", _ANSI.sub("", text.replace("\xa0", " ")))
