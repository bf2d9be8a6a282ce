"""Parts of a document. They say what is shown and in which order; each writer decides how it looks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from wqlab_contracts.enums import Verdict

ALL = 1_000_000
"""Limit of what is shown as a whole. Limits are those of a mail, in lines; pages have none but those of excerpts."""


class Code(str):
    """A piece of a text that is quoted as it is: a hash, an option, a place in a source."""

    __slots__ = ()


class Link(str):
    """A piece of a text that is an address."""

    __slots__ = ()


Text = str | tuple[str, ...]
"""A text, or its pieces."""


class Style(Enum):
    PLAIN = auto()
    STRONG = auto()
    NOTE = auto()
    """What says how to read something else."""


@dataclass(frozen=True)
class Paragraph:
    text: Text
    lines: int = ALL
    style: Style = Style.PLAIN


@dataclass(frozen=True)
class Bullets:
    """A list. An item that is a list itself belongs to the item before."""

    items: Sequence[Text | Bullets]
    lines: int = ALL
    each: int = ALL
    """Most lines of an item."""
    more: str = "and {n} more"
    """What is said instead of items that are left out."""
    mark: str = "* "
    """What begins an item in a plain text."""


@dataclass(frozen=True)
class Badge:
    """A verdict in a table."""

    verdict: Verdict | None
    note: str = ""


@dataclass(frozen=True)
class Table:
    header: Sequence[str]
    rows: Sequence[Sequence[str | Badge]]
    left: Sequence[int] = (0,)
    """Columns that are flush left; the others are figures."""
    shortened: int | None = None
    """Column of long texts, which may be cut in a plain text."""


@dataclass(frozen=True)
class Excerpt:
    """Lines of a log."""

    text: str
    lines: int


@dataclass(frozen=True)
class Commands:
    """Lines for a shell."""

    lines: Sequence[str]


@dataclass(frozen=True)
class Stated:
    """A verdict on a subject, or on the submission if the subject is empty, with what was found."""

    subject: str
    verdict: str
    found: Sequence[str]


@dataclass(frozen=True)
class Verdicts:
    items: Sequence[Stated]
    lines: int = ALL
    more: str = ""


Block = Paragraph | Bullets | Table | Excerpt | Commands | Verdicts


@dataclass(frozen=True)
class Part:
    """What a mail shows or leaves out as a whole."""

    blocks: Sequence[Block]
    apart: bool = True
    """True: an empty line is above it."""


@dataclass(frozen=True)
class Section:
    """Parts that say nothing without the first one."""

    parts: Sequence[Part]
    title: str = ""
    """Its heading. A mail has none: the first part says what the section is about."""


def plain(text: Text) -> str:
    """Return a text without the marks of its pieces."""
    return text if isinstance(text, str) else "".join(text)
