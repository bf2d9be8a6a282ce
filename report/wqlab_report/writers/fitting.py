"""Cut texts, lists and sections to a number of lines. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from wqlab_comparison import tables

MORE = "..."

Section = Sequence[Sequence[str]]
"""Lines of the parts of a section, in the order of the text; without the first part the others are not shown."""


def fit(sections: Sequence[Section], room: int) -> tuple[list[str], bool]:
    """Return the parts that fit into `room` lines, from the first on, and True if these are all."""
    lines, complete = list[str](), True
    for section in sections:
        for number, part in enumerate(section):
            if len(lines) + len(part) <= room:
                lines += part
                continue
            complete = False
            if number == 0:
                break
    return lines, complete


def wrapped(text: str, limit: int, bullet: str = "", indent: str | None = None, width: int = tables.WIDTH) -> list[str]:
    """Wrap a paragraph to at most `limit` lines; a longer one ends with `...`."""
    lines = tables.wrapped(text, bullet, indent, width)
    if len(lines) <= limit:
        return lines
    last = lines[limit - 1][: width - len(MORE) - 1].rstrip()
    return [*lines[: limit - 1], f"{last} {MORE}"]


def listed(items: Sequence[Sequence[str]], limit: int, more: str) -> list[str]:
    """Return the lines of the first items that fit into `limit` lines; `more` tells by `{n}` how many are missing."""
    lines: list[str] = []
    for index, item in enumerate(items):
        rest = len(items) - index
        if len(lines) + len(item) > limit - (1 if rest > 1 else 0):
            return [*lines, more.format(n=rest)] if limit else []
        lines += item
    return lines
