"""Lines of a letter: plain text of at most 72 columns, except console lines, URLs and long words of a command. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from .. import plain_text
from ..writers.text import wrapped

WIDTH = 72
LABEL = 11
"""Columns of a fact's label, with the blanks behind it."""


def paragraph(text: str, limit: int = 3, indent: str = "") -> list[str]:
    """Wrap a text to at most `limit` lines; further lines begin with `indent`."""
    return wrapped(text, limit, "", indent, WIDTH)


def bullets(texts: Sequence[str], limit: int, each: int = 3) -> list[str]:
    """Return a list of at most `limit` lines; its last line says how many items are left out."""
    lines: list[str] = []
    for number, text in enumerate(texts):
        item = wrapped(text, each, "* ", "  ", WIDTH)
        rest = len(texts) - number
        if len(lines) + len(item) > limit - (rest > 1):
            return [*lines, f"* and {rest} more"]
        lines += item
    return lines


def fact(label: str, text: str, limit: int = 2) -> list[str]:
    """Return `Label:   text`, further lines below the text; nothing if there is no text."""
    return wrapped(text, limit, f"{label}:".ljust(LABEL), " " * LABEL, WIDTH) if text else []


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a table; the first column is flush left."""
    return plain_text.fitted(header, rows, widest=WIDTH)


def joined(sections: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of the sections that have any, with an empty line between two."""
    lines: list[str] = []
    for section in sections:
        if section:
            lines += ["", *section] if lines else list(section)
    return [plain_text.printable(line.rstrip()) for line in lines]
