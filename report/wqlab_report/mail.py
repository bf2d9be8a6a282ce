"""Compose the mail that answers a series with its report. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

from wqlab_comparison import words
from wqlab_contracts.api.bisections import Bisection
from wqlab_contracts.api.report import Report
from wqlab_contracts.enums import Verdict
from wqlab_contracts.mail import (
    OutgoingMail,
    ReplyTo,
    address_of,
    addresses,
    answer_to,
    of_commit,
    reply_subject,
    without_trailers,
)
from wqlab_contracts.messages.source_mail import SourceMail

from . import plain_text
from .content import failures
from .letters import lines, regression
from .letters.audience import Audience, audience_of, shown_to
from .letters.evidence import evidence
from .letters.regression import Lab
from .writers.text import LINES, listed, wrapped

SIGNATURE = ("-- ", "wqlab measures kernels automatically; it does not review patches.")
_CHANGES = 6
"""Most lines of a correction about what has changed."""


@dataclass(frozen=True)
class Sender:
    """The lab's own address, and who gets its replies."""

    address: str
    """Name and address of the lab; empty: one at the host of its pages."""
    reply_to: ReplyTo


@dataclass(frozen=True)
class Correction:
    """What a mail corrects."""

    first: OutgoingMail
    """The lab's first mail about the same revision."""
    changes: Mapping[str, tuple[str, str]]
    """Target -> verdict before and now."""


def thread_of(source: SourceMail | None, submission_id: int, owner: str) -> str:
    """Return what the mails about one revision have in common: its source mail, else the submission.

    Whoever uploads an mbox writes its Message-ID, so an upload shares a thread only with the owner's other uploads. No
    Message-ID has a space, so that no upload has the thread of a mail that the lab has read itself.
    """
    if source is None:
        return f"submission {submission_id}"
    return source.message_id if source.verified else f"upload of {owner} <{source.message_id}>"


def key_of(thread: str, event: str, submission_id: int) -> str:
    """Return what a mail says to whom. Its Message-ID follows from it, whether the lab or a person sends it."""
    return f"mail/{thread}/{event}/{submission_id}"


def preview(report: Report, source: SourceMail | None, sender: Sender) -> OutgoingMail:
    """Return the first mail about a series, with this report: a reply to its source mail."""
    number = report.submission.id
    key = key_of(thread_of(source, number, report.submission.owner), "reply", number)
    return compose(report, source, sender, report.submission.finished_at or report.generated_at, key=key)


def says(report: Report) -> dict[str, str]:
    """Return what a letter about the report says and a later one can correct: target -> verdict, or without one
    `submission` -> kind of its failure. Empty if nothing is mailed."""
    audience = audience_of(report)
    return verdicts(shown_to(report, audience)) if audience is not Audience.NOBODY else {}


def verdicts(report: Report) -> dict[str, str]:
    """Return target -> verdict, or without a target `submission` -> kind of its failure."""
    found = {failures.name(target): target.verdict.value for target in report.targets}
    failure = report.submission.failure
    return found | ({"submission": failure.kind.value} if failure is not None and not found else {})


def compose(
    report: Report,
    source: SourceMail | None,
    sender: Sender,
    date: datetime,
    *,
    key: str,
    correction: Correction | None = None,
) -> OutgoingMail:
    """Compose the mail with a report. `key` (see `key_of`) gives its Message-ID.

    Without a source mail it goes to the author of the first patch, if the author has an address. It has no
    recipients if nothing is decided, and goes only to the author if it has counts or modelled figures only.
    """
    audience = audience_of(report)
    own = sender.address or f"wqlab <wqlab@{urlsplit(report.lab_url).hostname or 'localhost'}>"
    digest = hashlib.sha256(f"{report.lab_url}\n{key}".encode()).hexdigest()[:16]
    message_id = f"wqlab-{report.submission.id}-{digest}@{address_of(own).rpartition('@')[2]}"
    to, cc = of_commit(report.submission.author), list[str]()
    subject, references, answered = f"[wqlab] {report.submission.title}", list[str](), None
    if source is not None:
        to, cc = answer_to(source, sender.reply_to if audience is Audience.EVERYONE else ReplyTo.AUTHOR, own)
        subject, answered = reply_subject(source.subject), source.message_id
        references = [*source.references, source.message_id]
    if correction is not None:
        answered = correction.first.message_id
        references = [*correction.first.references, answered]
        to, cc = correction.first.to, correction.first.cc
        audience = Audience.AUTHOR if len([*to, *cc]) == 1 else Audience.EVERYONE
    elif audience is Audience.NOBODY:
        to, cc = [], []
    return OutgoingMail(
        message_id=message_id,
        in_reply_to=answered,
        references=references,
        sender=own,
        to=to,
        cc=cc,
        subject=plain_text.printable(subject)[:500],
        date=date,
        body=body(report, audience, correction),
    )


def body(
    report: Report,
    audience: Audience,
    correction: Correction | None = None,
    signature: Sequence[str] = SIGNATURE,
) -> str:
    """Return the text of a mail to an audience, with its signature at most 60 lines of 72 columns."""
    head = _correction(correction) if correction is not None else []
    also = frozenset(correction.changes) if correction is not None else frozenset()
    text = evidence(report, audience, LINES - len(head) - len(signature) - 1, also)
    return "".join(f"{line}\n" for line in [*map(without_trailers, [*head, *text]), "", *signature])


def _correction(correction: Correction) -> list[str]:
    changes = [
        wrapped(f"{target}: {_word(before)} -> {_word(now)}", 2, "  ", "    ", lines.WIDTH)
        for target, (before, now) in correction.changes.items()
    ]
    title = "CORRECTION of the lab's earlier mail; the verdict has changed:"
    return [title, *listed(changes, _CHANGES, "  and {n} more"), ""]


def _word(value: str) -> str:
    return words.VERDICT[Verdict(value)] if value in set(Verdict) else f"failed ({value})"


def is_to_author_only(mail: OutgoingMail, source: SourceMail | None, report: Report) -> bool:
    """Return True if nobody but the author of the series gets the mail."""
    author = [source.sender] if source is not None else of_commit(report.submission.author)
    return [address_of(each).lower() for each in [*mail.to, *mail.cc]] == [address_of(each).lower() for each in author]


# --- a bisected regression -----------------------------------------------------------------------------------------


def culprit_mail(
    bisection: Bisection, report: Report, lab: Lab, also: Sequence[str], date: datetime, *, key: str
) -> OutgoingMail:
    """Compose the mail about the commit that a bisection has found: to its author and the addresses in `also`.

    `report` compares the commit with its parent. Raises ValueError if there is no such letter, see
    `letters.regression.not_told`.
    """
    text = regression.regression(bisection, report, lab)
    culprit = bisection.culprit
    to = of_commit(culprit.author) if culprit is not None else []
    cc = [each for each in addresses(also) if each not in to]
    digest = hashlib.sha256(f"{report.lab_url}\n{key}".encode()).hexdigest()[:16]
    return OutgoingMail(
        message_id=f"wqlab-bisection-{bisection.id}-{digest}@{address_of(lab.address).rpartition('@')[2]}",
        in_reply_to=None,
        references=[],
        sender=lab.address,
        to=to or cc,
        cc=cc if to else [],
        subject=plain_text.printable(regression.subject(bisection, report))[:500],
        date=date,
        body="".join(f"{line}\n" for line in [*map(without_trailers, text), "", *SIGNATURE]),
    )
