"""Plain text: paragraphs and tables of at most 78 columns, and lines that are safe on a terminal. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

WIDTH = 76
_WIDEST = 78
"""Maximum width of tables, a little wider than prose."""
NOTHING = "n/a"
GAP = "  "
INTERVAL = "95 % interval"
_GLUE = re.compile(r"(?<=\d) (?=%)|(?<=\bp) (?=<)|(?<=<=) |(?<=\bthreshold) ")
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def wrapped(text: str, bullet: str = "", indent: str | None = None, width: int = WIDTH) -> list[str]:
    """Wrap a paragraph to lines of at most `width` columns.

    `bullet` precedes the first line and `indent` the others. A figure and its unit stay on one line. A word that is
    longer than a line is cut, except a URL.
    """
    rest = " " * len(bullet) if indent is None else indent
    lines: list[str] = []
    line, begun = bullet, False
    for word in filter(None, _GLUE.sub("\N{NO-BREAK SPACE}", " ".join(text.split())).split(" ")):
        if begun and len(line) + 1 + len(word) <= width:
            line += f" {word}"
            continue
        if begun:
            lines.append(line)
            line = rest
        begun = True
        room = len(word) if "://" in word else max(1, width - len(line))
        line, left = line + word[:room], word[room:]
        while left:
            lines.append(line)
            line, left = rest + left[: width - len(rest)], left[width - len(rest) :]
    return [each.replace("\N{NO-BREAK SPACE}", " ") for each in ([*lines, line] if begun else [])]


def table(header: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[int] = (0,)) -> list[str]:
    """Format aligned columns under a rule; the columns in `left` are flush left, the others right."""
    body = [list(row) for row in rows]
    widths = [max(len(row[i]) for row in [list(header), *body]) for i in range(len(header))]

    def line(row: Sequence[str]) -> str:
        columns = enumerate(zip(row, widths, strict=True))
        return GAP.join(c.ljust(width) if i in left else c.rjust(width) for i, (c, width) in columns).rstrip()

    return [line(header), "-" * min(WIDTH, sum(widths) + len(GAP) * (len(widths) - 1)), *map(line, body)]


def fitted(
    header: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = (0,), widest: int = _WIDEST
) -> list[str]:
    """Format a table whose lines have at most `widest` characters.

    If it is too wide, the first column is moved to separate lines, or else the intervals; if it is still too wide, each
    row becomes a paragraph.
    """
    candidates = [table(header, rows, left), _names_above(header, rows, left), _intervals_below(header, rows, left)]
    for lines in candidates:
        if lines and max(map(len, lines)) <= widest:
            return lines
    lines = []
    for row in rows:
        pairs = zip(header[1:], row[1:], strict=True)
        width = min(WIDTH, widest)
        lines += wrapped(f"{header[0]} {row[0]}", indent="  ", width=width)
        lines += wrapped(", ".join(f"{name} {cell}".strip() for name, cell in pairs if cell), "    ", width=width)
    return lines


def _names_above(header: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int]) -> list[str]:
    short = table(header, [["", *row[1:]] for row in rows], left)
    return [*short[:2], *(line for row, figures in zip(rows, short[2:], strict=True) for line in (row[0], figures))]


def _intervals_below(header: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int]) -> list[str]:
    if INTERVAL not in header:
        return []
    at = header.index(INTERVAL)
    bare = table(
        [cell for i, cell in enumerate(header) if i != at],
        [[cell for i, cell in enumerate(row) if i != at] for row in rows],
        [i - (i > at) for i in left],
    )
    lines = bare[:2]
    for row, line in zip(rows, bare[2:], strict=True):
        lines += [line, *([f"    {INTERVAL} {row[at]}"] if row[at] else [])]
    return lines


def printable(text: str) -> str:
    """Return one line without control and formatting characters.

    Such characters could repaint a terminal, reorder a line or start another. Tabs and line ends become blanks.
    """
    return "".join(_shown(character) for character in text)


def _shown(character: str) -> str:
    if character in "\n\t":
        return " "
    return "\N{REPLACEMENT CHARACTER}" if unicodedata.category(character) in _HIDDEN else character
