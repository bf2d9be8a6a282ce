"""Write the report as Markdown for a merge request. All input is escaped, so that it cannot format or link."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import assert_never

from wqlab_comparison import words
from wqlab_contracts.api.report import Report
from wqlab_contracts.excerpts import shorten_lines

from ..document.blocks import (
    Badge,
    Block,
    Box,
    Bullets,
    Code,
    Commands,
    Drawing,
    Excerpt,
    Facts,
    Fold,
    Heading,
    Link,
    Paragraph,
    Section,
    Stated,
    Style,
    Table,
    Text,
    Verdicts,
    pieces,
)
from ..document.full import full
from ..plain_text import printable


def render_markdown(report: Report) -> str:
    first, *others = full(report)
    lines = [*_section(first, "##"), *(line for each in others for line in _section(each, "###"))]
    return "\n".join(lines).rstrip() + "\n"


def _section(section: Section, mark: str) -> list[str]:
    blocks = [block for part in section.parts for block in part.blocks]
    return [f"{mark} {_safe(section.title)}", "", *_spaced(blocks)]


def _spaced(blocks: Iterable[Block]) -> list[str]:
    """Return the lines of blocks, each with an empty line below it."""
    return [line for block in blocks if (found := _lines(block)) for line in (*found, "")]


def _lines(block: Block) -> list[str]:
    if isinstance(block, Paragraph):
        mark = {Style.PLAIN: "", Style.STRONG: "**", Style.NOTE: "_"}[block.style]
        return [f"{mark}{_inline(block.text)}{mark}"]
    if isinstance(block, Bullets):
        return _bullets(block, "")
    if isinstance(block, Table):
        header = [_safe(name) for name in block.header]
        sides = ["---" if number in block.left else "--:" for number in range(len(header))]
        return [_row(header), _row(sides), *(_row(map(_cell, row)) for row in block.rows)]
    if isinstance(block, Excerpt):
        return _fenced(shorten_lines(block.text.splitlines(), block.lines))
    if isinstance(block, Commands):
        return _fenced(block.lines)
    if isinstance(block, Heading):
        return [f"**{_inline(block.text)}**"]
    if isinstance(block, Facts):
        return ["; ".join(f"{_safe(name)} {_inline(value)}" for name, value in block.items)]
    if isinstance(block, Drawing):
        return _spaced(block.otherwise)[:-1]
    if isinstance(block, Box):
        return _spaced(block.blocks)[:-1]
    if isinstance(block, Fold):
        return []
    if isinstance(block, Verdicts):
        return _verdicts(block.items)
    assert_never(block)


def _bullets(block: Bullets, indent: str) -> list[str]:
    lines: list[str] = []
    for item in block.items[: block.few]:
        lines += _bullets(item, f"{indent}  ") if isinstance(item, Bullets) else [f"{indent}- {_inline(item)}"]
    left = len(block.items) - block.few
    return [*lines, f"{indent}- and {left} more, which the page lists"] if left > 0 else lines


def _verdicts(items: Sequence[Stated]) -> list[str]:
    """Return the verdict on the submission as a paragraph, and those on its targets as a table."""
    lines = [f"**{_safe(each.word)}**: {_safe(' '.join(each.found))}" for each in items if not each.subject]
    rows = [
        _row([_safe(each.subject), f"**{_safe(each.word)}**", *map(_safe, each.found)])
        for each in items
        if each.subject
    ]
    header = [_row(["plan on device type", "verdict", "main result"]), _row(["---"] * 3)] if rows else []
    return [*lines, *header, *rows]


def _cell(cell: str | Badge) -> str:
    if isinstance(cell, str):
        return _safe(cell)
    verdict = f"**{words.VERDICT[cell.verdict]}**" if cell.verdict else "no verdict"
    return ", ".join(filter(None, [verdict, _safe(cell.note)]))


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _inline(text: Text) -> str:
    return "".join(map(_piece, pieces(text)))


def _piece(piece: str | Link) -> str:
    if isinstance(piece, Link):
        return f"[{_safe(piece.label)}](<{piece.url}>)" if piece.label else f"<{piece.url}>"
    return f"`{_code(piece)}`" if isinstance(piece, Code) else _safe(piece)


def _safe(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]()#!|<>~&@]|:(?=//))", r"\\\1", printable(text))


def _code(text: str) -> str:
    return printable(text).replace("`", "'")


def _fenced(lines: Iterable[str]) -> list[str]:
    """Return a code block with a fence that is longer than any run of backticks in the lines."""
    body = [printable(line) for line in lines]
    fence = "`" * max(3, 1 + max((len(run) for line in body for run in re.findall("`+", line)), default=0))
    return [fence, *body, fence] if body else []
