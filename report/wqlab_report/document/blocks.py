"""Parts of a document. They say what is shown and in which order; each writer decides how it looks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from wqlab_comparison import words
from wqlab_contracts.enums import ErrorKind, Verdict

from ..figures.figures import Figure

ALL = 1_000_000
"""Limit of what is shown as a whole. Limits in lines are those of a plain text."""


class Code(str):
    """A piece of a text that is quoted as it is: a hash, an option, a place in a source."""

    __slots__ = ()


@dataclass(frozen=True)
class Link:
    """A piece of a text that is an address."""

    url: str
    label: str = ""
    """What a page shows instead of the address."""


Text = str | tuple[str | Link, ...]
"""A text, or its pieces."""


class Style(Enum):
    PLAIN = auto()
    STRONG = auto()
    NOTE = auto()
    """An explanation of how to read the blocks before it."""


@dataclass(frozen=True)
class Paragraph:
    text: Text
    lines: int = ALL
    style: Style = Style.PLAIN


@dataclass(frozen=True)
class Heading:
    """What the following blocks of a section are about."""

    text: Text


@dataclass(frozen=True)
class Facts:
    """A list of facts, each a label and its value: `Device` and `tiny-1`."""

    items: Sequence[tuple[str, Text]]
    wide: bool = False
    """True if the labels are long; a page then makes their column wide."""


@dataclass(frozen=True)
class Bullets:
    """A list. An item that is a list itself belongs to the item before."""

    items: Sequence[Text | Bullets]
    lines: int = ALL
    each: int = ALL
    """Most lines of an item."""
    more: str = "and {n} more"
    """Text in place of the items that are left out; `{n}` is their number."""
    mark: str = "* "
    """What begins an item in a plain text."""
    few: int = ALL
    """Most items in a comment."""


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
    """Lines of a log. A page shows all."""

    text: str
    lines: int = 20


@dataclass(frozen=True)
class Commands:
    """Lines for a shell."""

    lines: Sequence[str]


@dataclass(frozen=True)
class Stated:
    """A verdict on a subject, or on the submission if the subject is empty, with what was found."""

    subject: str
    verdict: Verdict
    found: Sequence[str]
    kind: str = ""
    """Kind of a failure."""
    anchor: str = ""
    """Section that has more about the subject."""

    @property
    def word(self) -> str:
        if self.kind == ErrorKind.CANCELED:
            return "CANCELED"
        return f"{words.VERDICT[self.verdict].upper()}{f' ({self.kind})' if self.kind else ''}"


@dataclass(frozen=True)
class Verdicts:
    items: Sequence[Stated]
    lines: int = ALL
    more: str = ""


@dataclass(frozen=True)
class Drawing:
    """Figures, and what is said instead where they cannot be drawn."""

    draw: Callable[[], Sequence[Figure]]
    otherwise: Sequence[Block] = ()


@dataclass(frozen=True)
class Box:
    """What a reader must not miss: a failure or a finding."""

    kind: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Fold:
    """What a page shows on request, and other formats do not have."""

    summary: str
    blocks: Sequence[Block]


Block = Paragraph | Heading | Facts | Bullets | Table | Excerpt | Commands | Verdicts | Drawing | Box | Fold


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
    anchor: str = ""


def plain(text: Text) -> str:
    """Return a text without the marks of its pieces."""
    return "".join(each.url if isinstance(each, Link) else each for each in pieces(text))


def pieces(text: Text) -> tuple[str | Link, ...]:
    return (text,) if isinstance(text, str) else text
