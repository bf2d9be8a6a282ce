"""Compose the mails with results that an account has subscribed to. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from wqlab_comparison import tables
from wqlab_contracts.api.report import Report
from wqlab_contracts.mail import OutgoingMail, reply_subject, without_trailers
from wqlab_contracts.messages.source_mail import SUBJECT_LIMIT, SourceMail

from . import mail as answers
from .mail import SIGNATURE, Correction
from .render.fitting import wrapped
from .render.text import LINES

REASON_LINES = 3
"""Most lines that say what the account has subscribed to."""
COLLECTED_LIMIT = 200
"""Most results in one mail; their numbers alone fit into it."""


@dataclass(frozen=True)
class Recipient:
    """Who gets a mail, and why."""

    address: str
    subscriptions: Sequence[str]
    """What the subscriptions behind the mail are about, in words."""
    account_url: str
    """Page on which they can be changed."""


@dataclass(frozen=True)
class Result:
    """A result in a mail that collects several."""

    submission_id: int
    title: str
    said: Mapping[str, str]
    """Target -> verdict."""


def compose(
    report: Report,
    source: SourceMail | None,
    recipient: Recipient,
    *,
    sender: str,
    message_id: str,
    date: datetime,
    first: OutgoingMail | None = None,
    changes: Mapping[str, tuple[str, str]],
) -> OutgoingMail:
    """Compose the mail with a report, in at most 60 lines.

    It is in the thread of the series, or of the account's `first` mail about it. `changes`: what it corrects, target ->
    verdict before and now.
    """
    subject, references = f"[wqlab] {report.submission.title}", list[str]()
    if source is not None:
        subject, references = reply_subject(source.subject), [*source.references, source.message_id]
    if first is not None:
        references = [*first.references, first.message_id]
    correction = Correction(first, changes) if first is not None and changes else None
    return OutgoingMail(
        message_id=message_id,
        in_reply_to=references[-1] if references else None,
        references=references,
        sender=sender,
        to=[recipient.address],
        cc=[],
        subject=tables.printable(subject)[:SUBJECT_LIMIT],
        date=date,
        body=answers.body(report, correction, _signature(recipient)),
    )


def compose_collected(
    results: Sequence[Result],
    recipient: Recipient,
    *,
    sender: str,
    message_id: str,
    date: datetime,
    when: str,
    lab_url: str,
) -> OutgoingMail:
    """Compose the mail that lists results above the daily limit, one a line, the oldest first; at most 60 lines.

    Of COLLECTED_LIMIT results, those that have no line of their own are named by their numbers. `when`:
    `of 2026-01-02 (UTC)`.
    """
    count = f"{len(results)} more {'result' if len(results) == 1 else 'results'} {when}"
    signature = _signature(recipient)
    lines = [
        f"{count}, above the daily limit of single mails:",
        "",
        *_lines(results, LINES - len(signature) - 5),
        "",
        "The report of number N is at",
        f"{lab_url}/r/N",
    ]
    return OutgoingMail(
        message_id=message_id,
        in_reply_to=None,
        references=[],
        sender=sender,
        to=[recipient.address],
        cc=[],
        subject=f"[wqlab] {count}",
        date=date,
        body="".join(f"{line}\n" for line in [*map(without_trailers, lines), *signature]),
    )


def _lines(results: Sequence[Result], room: int) -> list[str]:
    """Return a line for each result; if there are too many, the numbers of the last ones in a paragraph."""
    shown = results
    while True:
        numbers = ", ".join(str(each.submission_id) for each in results[len(shown) :])
        rest = tables.wrapped(f"and {len(results) - len(shown)} more: {numbers}") if numbers else []
        if len(shown) + len(rest) <= room:
            return [*map(_line, shown), *rest]
        if not shown:
            return wrapped(f"all by their numbers: {numbers}", room)
        shown = shown[: max(len(shown) - (len(shown) + len(rest) - room), 0)]


def _line(result: Result) -> str:
    text = f"{result.submission_id:>6}  {answers.worst(result.said).upper():<15}  {tables.printable(result.title)}"
    return text if len(text) <= tables.WIDTH else f"{text[: tables.WIDTH - 3]}..."


def _signature(recipient: Recipient) -> list[str]:
    """Return the lines after the text: who writes, why, and where to change it."""
    why = wrapped(f"You subscribed to: {'; '.join(recipient.subscriptions)}.", REASON_LINES)
    return [*SIGNATURE, *why, recipient.account_url]
