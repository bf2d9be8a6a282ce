"""Fit the parts of a text into a number of lines. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wqlab_comparison import tables

MORE = "..."


@dataclass(frozen=True)
class Part:
    """A part of a text, in the order of the text."""

    rank: int
    """Parts of a lower rank are placed first."""
    forms: Sequence[Sequence[str]]
    """Its lines, and shorter forms of them, longest first. Without a form that fits, the part is left out."""
    section: str = ""
    """If not empty: the part is left out with the first part of this section, its heading."""
    optional: bool = False
    """True if other parts need not be shortened for it: it does not count as reduced."""


def part(rank: int, *forms: Sequence[str]) -> Part:
    """Return a part of the forms that are not empty."""
    return Part(rank, [form for form in forms if form])


def fit(parts: Sequence[Part], room: int) -> tuple[list[str], list[Part]]:
    """Return at most `room` lines, and the parts that are shortened or left out in them."""
    chosen: dict[int, Sequence[str]] = {}
    reduced: list[Part] = []
    has_heading: dict[str, bool] = {}
    for index, each in sorted(enumerate(parts), key=lambda pair: (pair[1].rank, pair[0])):
        if not each.forms:
            continue
        form = next((form for form in each.forms if len(form) <= room), None)
        if each.section and not has_heading.setdefault(each.section, form is not None):
            form = None
        if form is not None:
            chosen[index] = form
            room -= len(form)
        if form is not each.forms[0] and not each.optional:
            reduced.append(each)
    return [line for index in sorted(chosen) for line in chosen[index]], reduced


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
