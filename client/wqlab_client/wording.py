"""How values read in text for people; no I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime

from rich.cells import cell_len
from rich.text import Text

from wqlab_contracts.api.submissions import Eta, SubmissionSummary
from wqlab_contracts.enums import Arm, ErrorKind, JobState, Outcome, Verdict
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
"""Words that carry a colour; the word itself always says the same, and `no_evidence` never has one."""

ARM_LETTER = {Arm.BASELINE: "A", Arm.CANDIDATE: "B"}

# C0 and C1 controls except tab and newline, and the characters that reorder text on a screen.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def clean(text: str) -> str:
    """The text with control characters made visible.

    Titles, logs and consoles come from submitted code and must not steer the reader's terminal.
    """
    return _CONTROL.sub(_visible, text.replace("\r\n", "\n"))


def _visible(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return "^" + chr(code + 0x40)
    return "^?" if code == 0x7F else f"<{code:04x}>"


def one_line(text: str) -> str:
    return " ".join(clean(text).split())


def word(value: str, style: str | None = None) -> Text:
    """A closed vocabulary's word, `below_threshold` as `below threshold`, in its colour."""
    # A span, not the base style: what is appended must not take the colour.
    return Text.assemble((value.replace("_", " "), style or STYLES.get(value, "")))


def how_it_stands(state: str, outcome: Outcome | None) -> Text:
    return word(outcome or state)


def job_word(state: JobState, outcome: Outcome | None) -> str:
    return str(outcome or state)


def duration(seconds: float) -> str:
    """`0:07`, `12:30`, `1:02:03`."""
    whole = max(0, round(seconds))
    hours, rest = divmod(whole, 3600)
    minutes, secs = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{secs:02}" if hours else f"{minutes}:{secs:02}"


def rough(seconds: float) -> str:
    """`40 s`, `6 min`, `3 h`, `5 d`: how long ago, or how long still."""
    seconds = max(0.0, seconds)
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    if seconds < 129_600:
        return f"{seconds / 3600:.0f} h"
    return f"{seconds / 86_400:.0f} d"


def verdict_counts(verdicts: Mapping[Verdict, int]) -> Text:
    """`regression 1, improvement 2`, the worst first."""
    parts = [Text.assemble(word(verdict), f" {verdicts[verdict]}") for verdict in _BY_WEIGHT if verdicts.get(verdict)]
    return Text(", ").join(parts)


_BY_WEIGHT = (
    Verdict.FAILED,
    Verdict.REGRESSION,
    Verdict.IMPROVEMENT,
    Verdict.BELOW_THRESHOLD,
    Verdict.EQUIVALENT,
    Verdict.INCONCLUSIVE,
    Verdict.UNSUPPORTED,
    Verdict.NO_EVIDENCE,
)

_WHOSE = {
    ErrorKind.USER: "the series or request",
    ErrorKind.KERNEL: "the kernel under test",
    ErrorKind.INFRASTRUCTURE: "the lab's infrastructure",
    ErrorKind.CANCELED: "canceled",
}


def failure_line(failure: Failure) -> str:
    """`the kernel under test: panic in wq_worker ...`."""
    if failure.kind is ErrorKind.CANCELED:
        return one_line(failure.summary) or "canceled"
    return f"{_WHOSE[failure.kind]}: {one_line(failure.summary)}"


def ending(view: SubmissionSummary) -> Text:
    """How a finished submission ended, in one line."""
    text = how_it_stands(view.state, view.outcome)
    if view.failure is not None:
        text.append(f" ({failure_line(view.failure)})")
    counts = verdict_counts(view.verdicts)
    if counts.plain:
        text.append("; primary comparisons: ").append_text(counts)
    return text


def eta_line(eta: Eta, now: datetime) -> str:
    """`5/12 boots, about 6 min left`."""
    parts = []
    if eta.total_boots:
        parts.append(f"{eta.done_boots}/{eta.total_boots} boots")
    if eta.finish_at is not None:
        left = (eta.finish_at - now).total_seconds()
        parts.append(f"about {rough(left)} left" if left > 0 else "later than expected")
    return ", ".join(parts)


def aligned(
    header: Sequence[str] | None, rows: Sequence[Sequence[Text | str]], width: int | None, flexible: int = -1
) -> list[Text]:
    """The table as lines, two spaces between columns, nothing behind the last word of a line.

    In a `width`, the `flexible` column gives way, down to 12 columns; None cuts nothing.
    """
    cells = [[Text(title, style="bold") for title in header]] if header else []
    cells += [[cell.copy() if isinstance(cell, Text) else Text(one_line(cell)) for cell in row] for row in rows]
    widths = [max(cell_len(row[column].plain) for row in cells) for column in range(len(cells[0]))]
    if width is not None:
        flexible %= len(widths)
        excess = sum(widths) + 2 * (len(widths) - 1) - width
        widths[flexible] = max(widths[flexible] - max(0, excess), min(12, widths[flexible]))
    result = []
    for row in cells:
        for cell, columns in zip(row, widths, strict=True):
            cell.truncate(columns, overflow="ellipsis", pad=True)
        line = Text("  ").join(row)
        line.rstrip()
        result.append(line)
    return result
