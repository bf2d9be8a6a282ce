"""Write the chosen mails of a series in one plain form, which every tool reads alike. Pure.

b4 chooses patches by their subjects, and git takes author and subject from the text. Written here, `[v2,1/3]` is
`[PATCH v2 1/3]`, an attachment is the text, and the headers in a text are those of the mail; so what is applied is what
was chosen.
"""

from __future__ import annotations

import email.header
import email.utils
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from ..mail import address_of, parse_addresses
from .mbox import Mail
from .subjects import format_subject

_FROM = re.compile(r"^(>*From )", re.MULTILINE)
_SEPARATOR = "From wqlab@localhost Thu Jan  1 00:00:00 1970\n"
_IN_BODY_HEADER = re.compile(r"\s*(?:from|subject|date):", re.IGNORECASE)


@dataclass(frozen=True)
class ChosenMails:
    """Mails of one version of a series."""

    version: int
    patches: Sequence[Mail]
    """In the order of application."""
    cover: Mail | None = None
    others: Sequence[Mail] = field(default_factory=tuple)
    """Replies, whose trailers are taken, and older versions."""


def canonical_mbox(chosen: ChosenMails) -> str:
    """Return the mails as an mbox (mboxrd) in UTF-8."""
    total = len(chosen.patches)
    single = total == 1 and chosen.cover is None and chosen.patches[0].counter is None
    cover = chosen.cover
    written: list[str] = []
    if cover is not None:
        written.append(_write(cover, format_subject(cover.title, chosen.version, (0, total)), None))
    parent = None if cover is None else cover.effective_message_id
    for number, mail in enumerate(chosen.patches, 1):
        subject = format_subject(mail.title, chosen.version, None if single else (number, total))
        written.append(_write(mail, subject, parent))
    taken = {mail.effective_message_id for mail in (*chosen.patches, *([cover] if cover else []))}
    for mail in chosen.others:
        subject_of_other = _subject_of_other(mail, chosen.version)
        if subject_of_other is not None and mail.effective_message_id not in taken:
            parent = mail.in_reply_to or next(reversed(mail.references), None)
            written.append(_write(mail, subject_of_other, parent if mail.is_reply else None))
    return "".join(written)


def _subject_of_other(mail: Mail, version: int) -> str | None:
    """Return the subject of a reply, or of a patch of another version; None for mails that could be mistaken."""
    if mail.is_reply:
        return f"Re: {mail.title}"
    if not mail.is_patch or mail.version == version:
        return None
    # Always with a version and a number: where they are missing, b4 infers them from other mails.
    number, total = mail.counter or (1, 1)
    return f"[PATCH v{mail.version} {number}/{total}] {mail.title}"


def _write(mail: Mail, subject: str, parent: str | None) -> str:
    """Return a mail that answers the Message-ID `parent`, or none."""
    is_patch = bool(mail.patch) and not mail.is_reply and not mail.is_cover
    text = mail.in_body.text if is_patch else mail.body
    references = mail.references if mail.is_reply else ()
    lines = [
        f"From: {_address(mail.patch_author if is_patch else mail.author)}",
        f"Subject: {_encoded(subject)}",
        f"Date: {_date(mail)}",
        f"Message-ID: <{mail.effective_message_id}>",
        *([f"In-Reply-To: <{parent}>"] if parent else []),
        *([f"References: {' '.join(f'<{each}>' for each in references)}"] if references else []),
        "MIME-Version: 1.0",
        "Content-Type: text/plain; charset=utf-8",
        "Content-Transfer-Encoding: 8bit",
    ]
    if is_patch and _IN_BODY_HEADER.match(text):
        text = f"From: {mail.patch_author}\n\n{text}"
    body = _FROM.sub(r">\1", text.strip("\n"))
    return _SEPARATOR + "\n".join(lines) + f"\n\n{body}\n\n"


def _date(mail: Mail) -> str:
    """Return the date of a patch, that in its text before that of its mail, if it can be read."""
    for text in (mail.in_body.date if mail.is_patch else "", mail.date):
        try:
            return email.utils.format_datetime(email.utils.parsedate_to_datetime(text))
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
    return email.utils.format_datetime(datetime(1970, 1, 1, tzinfo=UTC))


def _address(text: str) -> str:
    if not address_of(text):
        return _encoded(text)
    return email.utils.formataddr(parse_addresses(text)[0])


def _encoded(text: str) -> str:
    """Return the text of a header in ASCII (RFC 2047), in one line."""
    if text.isascii() and "=?" not in text:
        return text
    return email.header.Header(text, "utf-8").encode(maxlinelen=0)
