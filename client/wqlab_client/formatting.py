"""Format values as text for people; no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import zip_longest
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from wqlab_contracts import text as submitted_text
from wqlab_contracts.enums import BETWEEN, PAIR, VERDICT_ORDER, ErrorKind, Outcome, Verdict

if TYPE_CHECKING:
    from wqlab_contracts.api.submissions import Eta, SubmissionSummary
    from wqlab_contracts.messages import Failure

STYLES = {
    "improvement": "green",
    "regression": "bold red",
    "failed": "bold red",
    "passed": "green",
    "running": "cyan",
    "canceled": "yellow",
    "quarantined": "bold red",
    "suspect": "yellow",
    "good": "green",
}
"""Colours of states, outcomes and verdicts. Colour never adds information, and `no_evidence` has none."""

ARM_LETTER = dict(zip((*PAIR, *BETWEEN), "ABCDEFGHIJKLMNOPQ", strict=True))
"""A is the baseline and B the candidate; in a walk C is the kernel after the first patch, and so on."""

_GAP = 2
"""Spaces between the columns of a table."""
_LEAST_COLUMN = 8
"""Width below which no column of a table is folded."""
_LONG_WORD = 20
"""Width down to which words are not folded."""

clean = submitted_text.clean
escape_json = submitted_text.escape_json


def one_line(text: str) -> str:
    """Replace control characters and join all lines with single spaces."""
    return " ".join(clean(text).split())


def word(value: str, style: str | None = None) -> Text:
    """Format an enum value in its colour, `below_threshold` as `below threshold`."""
    # A span, not the base style: appended text must not take the colour.
    return Text.assemble((value.replace("_", " "), style or STYLES.get(value, "")))


def status_text(state: str, outcome: Outcome | None) -> Text:
    """Format the outcome if there is one, else the state."""
    return word(outcome or state)


def duration(seconds: float) -> str:
    """Format seconds as `0:07`, `12:30` or `1:02:03`."""
    whole = max(0, round(seconds))
    hours, rest = divmod(whole, 3600)
    minutes, secs = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{secs:02}" if hours else f"{minutes}:{secs:02}"


def rough_duration(seconds: float) -> str:
    """Format seconds with one rounded unit: `40 s`, `6 min`, `3 h`, `5 d`."""
    seconds = max(0.0, seconds)
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    if seconds < 129_600:
        return f"{seconds / 3600:.0f} h"
    return f"{seconds / 86_400:.0f} d"


def verdict_counts(verdicts: Mapping[Verdict, int]) -> Text:
    """Format counts as `regression 1, improvement 2`, the worst verdict first."""
    parts = [
        Text.assemble(word(verdict), f" {verdicts[verdict]}") for verdict in VERDICT_ORDER if verdicts.get(verdict)
    ]
    return Text(", ").join(parts)


FAILURE_SOURCES = {
    ErrorKind.USER: "the series or request",
    ErrorKind.KERNEL: "the kernel under test",
    ErrorKind.INFRASTRUCTURE: "the lab's infrastructure",
    ErrorKind.CANCELED: "canceled",
}


def failure_line(failure: Failure) -> str:
    """Format a failure with its source: `the kernel under test: panic in wq_worker ...`."""
    if failure.kind is ErrorKind.CANCELED:
        return one_line(failure.summary) or "canceled"
    return f"{FAILURE_SOURCES[failure.kind]}: {one_line(failure.summary)}"


def outcome_text(view: SubmissionSummary) -> Text:
    """Format outcome, failure and verdict counts of a finished submission in one line."""
    text = status_text(view.state, view.outcome)
    if view.failure is not None:
        text.append(f" ({failure_line(view.failure)})")
    counts = verdict_counts(view.verdicts)
    if counts.plain:
        text.append("; primary comparisons: ").append_text(counts)
    modelled = verdict_counts(view.modelled_verdicts)
    if modelled.plain:
        text.append("; modelled: ").append_text(modelled)
    return text


def eta_line(eta: Eta, now: datetime) -> str:
    """Format the progress and the remaining time: `5/12 boots, about 6 min left`."""
    parts = []
    if eta.total_boots:
        parts.append(f"{eta.done_boots}/{eta.total_boots} boots")
    if eta.finish_at is not None:
        left = (eta.finish_at - now).total_seconds()
        parts.append(f"about {rough_duration(left)} left" if left > 0 else "later than expected")
    return ", ".join(parts)


def align_columns(
    header: Sequence[str] | None, rows: Sequence[Sequence[Text | str]], width: int | None
) -> list[list[Text]]:
    """Format a table: the lines of the header, then those of each row, without trailing spaces.

    There are two spaces between columns. If the table is wider than `width`, the widest columns are folded, at words
    where possible; nothing is cut. A table of more columns than fit is a list of `header: cell` lines for each row.
    """
    cells = [[Text(title, style="bold") for title in header]] if header else []
    cells += [[cell.copy() if isinstance(cell, Text) else Text(one_line(cell)) for cell in row] for row in rows]
    columns = list(zip(*cells, strict=True))
    widths = [max(cell_len(cell.plain) for cell in column) for column in columns]
    words = [max(cell_len(word) for cell in column for word in ("", *cell.plain.split())) for column in columns]
    if width is None:
        return [_fold_row(row, widths) for row in cells]
    room = width - _GAP * (len(widths) - 1)
    for least in ([max(_LEAST_COLUMN, min(each, _LONG_WORD)) for each in words], [_LEAST_COLUMN] * len(widths)):
        while sum(widths) > room and (wide := [n for n, each in enumerate(widths) if each > least[n]]):
            widths[max(wide, key=lambda column: widths[column])] -= 1
    if header and sum(widths) > room:
        return [[], *(_record(header, row, width) for row in cells[1:])]
    return [_fold_row(row, widths) for row in cells]


def _fold_row(row: Sequence[Text], widths: Sequence[int]) -> list[Text]:
    """Return the lines of a row whose cells have these widths."""
    folded = [_fold(cell, columns) for cell, columns in zip(row, widths, strict=True)]
    lines = []
    for parts in zip_longest(*folded):
        padded = [part or Text() for part in parts]
        for part, columns in zip(padded, widths, strict=True):
            part.pad_right(columns - cell_len(part.plain))
        line = Text(" " * _GAP).join(padded)
        line.rstrip()
        lines.append(line)
    return lines


def _record(header: Sequence[str], row: Sequence[Text], width: int) -> list[Text]:
    """Return a row as lines of `header: cell`, with an empty line at its end; empty cells are left out."""
    lines: list[Text] = []
    for title, cell in zip(header, row, strict=True):
        if cell.plain:
            lines += _fold(Text.assemble((f"{title}: ", "bold"), cell), width)
    return [*lines, Text()]


def _fold(cell: Text, columns: int) -> list[Text]:
    if cell_len(cell.plain) <= columns:
        return [cell.copy()]
    lines = list(cell.wrap(Console(), columns, overflow="fold"))
    for line in lines:
        line.rstrip()
    return lines
