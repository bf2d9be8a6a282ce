"""Write the report as a self-contained HTML file: no script, no external resources, all input escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import assert_never

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from wqlab_comparison import words
from wqlab_contracts.api.report import Report
from wqlab_contracts.enums import Verdict

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
from ..figures.figures import Figure
from .first_screen import clean, first_screen, title

PLACES = frozenset({"takes the cache line", "wrote it last"})
"""Columns of long texts, which are wrapped."""


def render_html(report: Report) -> str:
    head, *others = full(report)
    verdicts = [block for block in _of(head) if isinstance(block, Verdicts)]
    return _template().render(
        title=clean(title(report)),
        first=first_screen(report),
        head=_blocks(verdicts),
        sections=[(clean(section.title), section.anchor, _blocks(_of(section))) for section in others],
    )


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("wqlab_report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return environment.get_template("report.html.j2")


def _of(section: Section) -> list[Block]:
    return [block for part in section.parts for block in part.blocks]


def _blocks(blocks: Iterable[Block]) -> Markup:
    return Markup("\n").join(map(_block, blocks))


def _block(block: Block) -> Markup:
    if isinstance(block, Paragraph):
        return _paragraph(block)
    if isinstance(block, Heading):
        return Markup("<h3>{}</h3>").format(_inline(block.text))
    if isinstance(block, Facts):
        items = Markup("\n").join(
            Markup("<dt>{}</dt><dd>{}</dd>").format(clean(name), _inline(value)) for name, value in block.items
        )
        return Markup("<dl{}>{}</dl>").format(Markup(' class="wide"') if block.wide else "", items)
    if isinstance(block, Bullets):
        return _bullets(block)
    if isinstance(block, Table):
        return _table(block)
    if isinstance(block, Excerpt):
        return Markup("<pre>{}</pre>").format(clean(block.text))
    if isinstance(block, Commands):
        text = clean("\n".join(block.lines))
        return Markup('<pre class="shell" role="group" aria-label="Command" tabindex="0">{}</pre>').format(text)
    if isinstance(block, Verdicts):
        return _verdicts(block.items)
    if isinstance(block, Drawing):
        return Markup("\n").join(map(_figure, block.draw()))
    if isinstance(block, Box):
        return Markup('<div class="{}">{}</div>').format(block.kind, _blocks(block.blocks))
    if isinstance(block, Fold):
        return Markup("<details><summary>{}</summary>\n{}</details>").format(block.summary, _blocks(block.blocks))
    assert_never(block)


def _paragraph(block: Paragraph) -> Markup:
    forms = {
        Style.PLAIN: Markup("<p>{}</p>"),
        Style.STRONG: Markup("<p><b>{}</b></p>"),
        Style.NOTE: Markup('<p class="soft">{}</p>'),
    }
    return forms[block.style].format(_inline(block.text))


def _bullets(block: Bullets) -> Markup:
    lines = [_bullets(item) if isinstance(item, Bullets) else _item(item) for item in block.items]
    return Markup('<ul class="why">{}</ul>').format(Markup("\n").join(lines))


def _item(item: Text) -> Markup:
    return Markup("<li>{}</li>").format(_inline(item))


def _table(block: Table) -> Markup:
    sides = [_side(name, left=number in block.left) for number, name in enumerate(block.header)]
    header = Markup("").join(
        Markup("<th{}>{}</th>").format(side, clean(name)) for side, name in zip(sides, block.header, strict=True)
    )
    rows = Markup("\n").join(
        Markup("<tr>{}</tr>").format(
            Markup("").join(
                Markup("<td{}>{}</td>").format(side, _cell(cell)) for side, cell in zip(sides, row, strict=True)
            )
        )
        for row in block.rows
    )
    return Markup(
        '<div class="scroll" role="group" aria-label="Table" tabindex="0"><table><tr>{}</tr>\n{}</table></div>'
    ).format(header, rows)


def _side(name: str, *, left: bool) -> Markup:
    """Return the class of a column."""
    if name in PLACES:
        return Markup(' class="left place"')
    if left:
        return Markup(' class="left"')
    return Markup(' class="wrap"') if ":" in name else Markup("")


def _cell(cell: str | Badge) -> Markup:
    if isinstance(cell, str):
        return _breakable(clean(cell))
    chip = _chip(cell.verdict) if cell.verdict else Markup("no verdict")
    return Markup("{}, {}").format(chip, clean(cell.note)) if cell.note else chip


def _chip(verdict: Verdict, kind: str = "") -> Markup:
    word = f"{words.SIGN[verdict]} {words.VERDICT[verdict]}"
    return Markup('<span class="chip {}">{}</span>{}').format(verdict.value, word, f" ({kind})" if kind else "")


def _verdicts(items: Sequence[Stated]) -> Markup:
    """Return the verdict on the submission as a paragraph, and those on its targets as a list."""
    submission = [
        Markup("<p>{} {}</p>").format(_chip(each.verdict, each.kind), clean(" ".join(each.found)))
        for each in items
        if not each.subject
    ]
    targets = [
        Markup('<li class="{}">{} {}<br>{}</li>').format(
            each.verdict.value, _chip(each.verdict), _subject(each), clean(" ".join(each.found))
        )
        for each in items
        if each.subject
    ]
    listed = [Markup('<ul class="verdicts">\n{}</ul>').format(Markup("\n").join(targets))] if targets else []
    return Markup("\n").join([*submission, *listed])


def _subject(stated: Stated) -> Markup:
    name = escape(clean(stated.subject))
    return Markup('<a href="#{}">{}</a>').format(stated.anchor, name) if stated.anchor else name


def _figure(figure: Figure) -> Markup:
    """Return a drawing with its data as a table. The SVG is escaped by the module that draws it."""
    left = [number for number, name in enumerate(figure.header) if name in FIGURE_TEXTS]
    return Markup('<h3>{}</h3>\n<div class="figure"><figure>{}<figcaption>{}</figcaption></figure>\n{}</div>').format(
        clean(figure.title),
        Markup(figure.svg),  # noqa: S704 - escaped where it is drawn
        clean(figure.note),
        _table(Table(figure.header, figure.rows, left)),
    )


FIGURE_TEXTS = frozenset({"file", "function", "access", "to", "kernel"})
"""Columns of a figure's data that are no figures."""


def _inline(text: Text) -> Markup:
    return Markup("").join(map(_piece, pieces(text)))


def _piece(piece: str | Link) -> Markup:
    if isinstance(piece, Link):
        return Markup('<a href="{}" rel="noreferrer">{}</a>').format(piece.url, clean(piece.label or piece.url))
    return Markup("<code>{}</code>").format(clean(piece)) if isinstance(piece, Code) else escape(clean(piece))


def _breakable(text: str) -> Markup:
    """Escape a text, and let long names and paths break behind `/` and `_` where the page's CSS shows `wbr`."""
    return Markup("<wbr>").join(re.split("(?<=[/_])", text))
