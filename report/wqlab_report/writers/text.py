"""Write the report as plain text for a mailing list: at most 60 lines of 78 columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import assert_never

from wqlab_comparison import words
from wqlab_contracts.api.report import Report
from wqlab_contracts.excerpts import shorten_lines

from .. import plain_text
from ..document.blocks import (
    Badge,
    Block,
    Box,
    Bullets,
    Commands,
    Drawing,
    Excerpt,
    Facts,
    Fold,
    Heading,
    Paragraph,
    Part,
    Section,
    Stated,
    Style,
    Table,
    Verdicts,
    plain,
)
from ..document.brief import brief

LINES = 60
"""Most lines of the text."""
WIDEST = 78
"""Most columns of a line."""
LEAST_TEXT = 20
"""Fewest characters of a text that is cut for a table."""
INDENT = "    "
REST = {"* ": "  ", "  ": "    ", "": "  ", "Ran: ": "  "}
"""What begins the further lines of an item, by what begins its first one."""


def render_text(report: Report, most: int = LINES) -> str:
    """Render at most `most` lines of 78 columns, except for console lines, URLs and long command words."""
    mail = brief(report)
    top, end, more = lines_of(mail.top), lines_of(mail.end), lines_of([mail.more])
    room = most - len(top) - len(end)
    middle, fits = fitting(mail.sections, room)
    if not (fits and mail.complete):
        middle, _ = fitting(mail.sections, room - len(more))
        end += more
    return "\n".join(plain_text.printable(line.rstrip()) for line in [*top, *middle, *end]) + "\n"


def fitting(sections: Iterable[Section], room: int) -> tuple[list[str], bool]:
    """Return the parts that fit into `room` lines, from the first on, and True if these are all."""
    lines, complete = list[str](), True
    for section in sections:
        for number, part in enumerate(section.parts):
            found = _part(part)
            if len(lines) + len(found) <= room:
                lines += found
                continue
            complete = False
            if number == 0:
                break
    return lines, complete


def _part(part: Part) -> list[str]:
    found = lines_of(part.blocks)
    return ["", *found] if part.apart and found else found


def lines_of(blocks: Iterable[Block]) -> list[str]:
    """Return blocks as lines, each within its limit."""
    return [line for block in blocks for line in _lines(block)]


def _lines(block: Block) -> list[str]:
    if isinstance(block, Paragraph):
        return _paragraph(block)
    if isinstance(block, Bullets):
        return _bullets(block)
    if isinstance(block, Table):
        return _table(block)
    if isinstance(block, Excerpt):
        return [f"| {line}" for line in shorten_lines(block.text.splitlines(), block.lines)]
    if isinstance(block, Commands):
        return [f"{INDENT}{line}" for line in block.lines]
    if isinstance(block, Heading):
        return _paragraph(Paragraph(block.text))
    if isinstance(block, Facts):
        return _paragraph(Paragraph("; ".join(f"{name} {plain(value)}" for name, value in block.items)))
    if isinstance(block, Drawing):
        return lines_of(block.otherwise)
    if isinstance(block, Box):
        return lines_of(block.blocks)
    if isinstance(block, Fold):
        return []
    if isinstance(block, Verdicts):
        return listed([_stated(each) for each in block.items], block.lines, block.more[:WIDEST])
    assert_never(block)


def _paragraph(block: Paragraph) -> list[str]:
    text = " ".join(plain(block.text).split())
    if len(text) <= WIDEST:
        return [text]
    return wrapped(text, block.lines, indent="" if block.style is Style.NOTE else "  ")


def _bullets(block: Bullets) -> list[str]:
    items: list[list[str]] = []
    for item in block.items:
        if isinstance(item, Bullets):
            items[-1] += [f"  {line}" for line in _bullets(item)]
        else:
            items.append(wrapped(plain(item), block.each, block.mark, REST[block.mark]))
    return listed(items, block.lines, f"{block.mark}{block.more}")


def _stated(stated: Stated) -> list[str]:
    """Return a target's verdict with what was found under it, or a submission's verdict and its reason."""
    if not stated.subject:
        return wrapped(f"{stated.word}: {' '.join(stated.found)}", 5, indent="  ")
    title = wrapped(f"{stated.subject}: {stated.word}", 2, indent="  ")
    return [*title, *(line for text in stated.found for line in wrapped(text, 3, "  "))]


def _table(table: Table) -> list[str]:
    rows = [[_cell(cell) for cell in row] for row in table.rows]
    if table.shortened is not None:
        rows = _with_short_texts(table.header, rows, table.shortened)
    return plain_text.fitted(table.header, rows, table.left)


def _cell(cell: str | Badge) -> str:
    if isinstance(cell, str):
        return cell
    return ", ".join(filter(None, [words.VERDICT[cell.verdict] if cell.verdict else plain_text.NOTHING, cell.note]))


def _with_short_texts(header: Sequence[str], rows: Sequence[list[str]], column: int) -> list[list[str]]:
    """Return the rows with texts in a column that leave room for the other columns."""
    others = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header)) if i != column]
    room = max(LEAST_TEXT, plain_text.WIDTH - sum(others) - 2 * len(others))
    return [[_cut(cell, room) if i == column else cell for i, cell in enumerate(row)] for row in rows]


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 3]}..."


def wrapped(
    text: str, limit: int, bullet: str = "", indent: str | None = None, width: int = plain_text.WIDTH
) -> list[str]:
    """Wrap a paragraph to at most `limit` lines; a longer one ends with `...`."""
    lines = plain_text.wrapped(text, bullet, indent, width)
    if len(lines) <= limit:
        return lines
    last = lines[limit - 1][: width - 4].rstrip()
    return [*lines[: limit - 1], f"{last} ..."]


def listed(items: Sequence[Sequence[str]], limit: int, more: str) -> list[str]:
    """Return the lines of the first items that fit into `limit` lines, and `more` if items are missing.

    `more` has `{n}` for their number and `{s}` for the plural: `and {n} more device{s}`.
    """
    lines: list[str] = []
    for index, item in enumerate(items):
        rest = len(items) - index
        if len(lines) + len(item) > limit - (1 if rest > 1 else 0):
            return [*lines, more.format(n=rest, s="" if rest == 1 else "s")] if limit else []
        lines += item
    return lines
