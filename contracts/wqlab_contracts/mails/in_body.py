"""Read the headers that a patch has in its text, below scissors too, as `git mailinfo --scissors` does."""

from __future__ import annotations

import re
from dataclasses import dataclass

_HEADER = re.compile(r"(from|subject|date):[ \t]*(.*)", re.IGNORECASE)
_SEPARATOR = re.compile(r">?From [0-9a-f]{40} \w{3} \w{3} ")
_DIFF_LINE = re.compile(r"^(?:diff -|Index: |--- \S|---[ \t\r]*$)", re.MULTILINE)
_MESSAGE_LIMIT = 1_000_000
"""Longest text, in characters, before a diff in which headers are looked for."""
_CUT_MARKS = (">8", "8<", ">%", "%<")
_SCISSORS_LENGTH = 200
"""Longest line, in characters, that is read as scissors."""


@dataclass(frozen=True)
class InBody:
    """A patch mail's text."""

    text: str
    """Message and diff, without the headers and what is above scissors."""
    subject: str = ""
    author: str = ""
    date: str = ""
    is_cut: bool = False
    """True if there were scissors above it."""


def read_in_body(text: str) -> InBody:
    """Return the headers in a text, and the rest of it."""
    headers: dict[str, str] = {}
    kept: list[str] = []
    last = ""
    in_headers = True
    is_cut = False
    diff = _DIFF_LINE.search(text)
    message, rest = (text[: diff.start()], text[diff.start() :]) if diff else (text, "")
    if len(message) > _MESSAGE_LIMIT:
        return InBody(text)
    for line in message.split("\n"):
        if in_headers:
            if not line.strip():
                in_headers = not headers
                continue
            if last and line[0] in " \t":
                headers[last] += " " + line.strip()
                continue
            if _SEPARATOR.match(line):
                continue
            if (found := _HEADER.match(line)) is not None and found[1].lower() not in headers:
                last = found[1].lower()
                headers[last] = found[2].strip()
                continue
            in_headers = False
        if is_scissors(line):
            headers, kept, last, in_headers, is_cut = {}, [], "", True, True
            continue
        kept.append(line)
    plain = {name: " ".join(value.split()) for name, value in headers.items()}
    text = "\n".join(kept) + rest
    return InBody(text, plain.get("subject", ""), plain.get("from", ""), plain.get("date", ""), is_cut)


def is_scissors(line: str) -> bool:
    """Return True for a line like `-- >8 --`, by the rule of git."""
    text = line.strip()
    if not 8 <= len(text) <= _SCISSORS_LENGTH:
        return False
    perforation = gap = cuts = place = 0
    inside = False
    while place < len(text):
        if text[place].isspace():
            perforation, gap = (perforation + 1, gap + 1) if inside else (perforation, gap)
        elif text[place] == "-":
            inside, perforation = True, perforation + 1
        elif text[place : place + 2] in _CUT_MARKS:
            inside, perforation, cuts, place = True, perforation + 2, cuts + 1, place + 1
        else:
            inside = False
        place += 1
    return cuts > 0 and len(text) < perforation * 3 and gap * 2 < perforation
