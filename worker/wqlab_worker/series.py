"""Reads a series as mail: which messages carry patches, what it is called, what it says it is based on.

Pure text work; nothing here runs anything.
"""

from __future__ import annotations

import email.header
import hashlib
import re
from dataclasses import dataclass
from email.message import Message
from email.parser import Parser

from .failures import UserError

PATCH_LIMIT = 250

_FROM_LINE = re.compile(r"^From \S+ +\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}.*$", re.MULTILINE)
_HEADER = re.compile(r"^[A-Za-z][A-Za-z0-9-]*:", re.MULTILINE)
_DIFF = re.compile(r"^(?:diff --git |--- [^\s].*\n\+\+\+ )", re.MULTILINE)
_BASE = re.compile(r"^base-commit: ([0-9a-f]{40})\s*$", re.MULTILINE)
_CHANGE_ID = re.compile(r"^[Cc]hange-[Ii]d: ([A-Za-z0-9][A-Za-z0-9._-]{3,120})\s*$", re.MULTILINE)
_TRACKED_CHANGE_ID = re.compile(r'"change-id": "([A-Za-z0-9][A-Za-z0-9._-]{3,120})"')
_COUNTER = re.compile(r"\[[^\]]*\b(\d+)/(\d+)[^\]]*\]")
_PREFIXES = re.compile(r"\s*(?:\[[^\]]*\]\s*)+")
_VERSION = re.compile(r"(?:(?<=[\s\[])|(?<=patch))v(\d+)(?=[\s\],;])", re.IGNORECASE)


@dataclass(frozen=True)
class Mail:
    subject: str
    author: str
    text: str
    """The whole message, headers included, without the mbox `From ` line."""
    body: str
    message_id: str | None = None

    @property
    def has_patch(self) -> bool:
        return _DIFF.search(self.body) is not None

    @property
    def counter(self) -> tuple[int, int] | None:
        """(2, 3) for `[PATCH v2 2/3] ...`; None without a counter."""
        match = _COUNTER.match(self.subject)
        return (int(match[1]), int(match[2])) if match else None

    @property
    def version(self) -> int:
        """2 for `[PATCH v2 2/3] ...`; 1 when the subject names none."""
        prefixes = _PREFIXES.match(self.subject)
        named = _VERSION.search(prefixes[0]) if prefixes else None
        return int(named[1]) if named else 1

    @property
    def known_as(self) -> str:
        """Its Message-ID, or the one that `with_message_ids` gives it."""
        return self.message_id or hashlib.sha256(self.text.encode(errors="replace")).hexdigest()[:32] + "@wqlab.invalid"


def read_mbox(text: str) -> list[Mail]:
    """The messages of an mbox, or of a single raw message. Raises UserError when there is no patch in it."""
    text = text.replace("\r\n", "\n")
    mails = [_mail(part) for part in _split(text)]
    if not any(mail.has_patch for mail in mails):
        raise UserError(
            "the mbox holds no patch",
            excerpt=text[:500],
            advice="Send what `git format-patch --stdout --base=auto` prints, or a thread saved by `b4 mbox`.",
        )
    return mails


def with_message_ids(mails: list[Mail]) -> str:
    """The mbox with a Message-ID in every message: b4 needs them, and `git format-patch` writes none by default.

    Messages without one become replies to the first, in the order they came.
    """
    parts, first = [], ""
    for mail in mails:
        own = f"<{mail.known_as}>"
        head = "" if mail.message_id else f"Message-ID: {own}\n" + (f"In-Reply-To: {first}\n" if first else "")
        first = first or own
        body = re.sub(r"^(>*From )", r">\1", mail.text, flags=re.MULTILINE)
        parts.append(f"From wqlab@localhost Thu Jan  1 00:00:00 1970\n{head}{body.rstrip()}\n\n")
    return "".join(parts)


def of_one_version(received: list[Mail], patches: list[Mail]) -> list[Mail]:
    """The mails of `received` that are the version `patches` were taken from: its cover letter, then its patches.

    A thread holds older versions, with bases and cover letters of their own, and replies. A re-sent part of a series
    takes the missing patches from the version before; what they say counts last.
    """
    taken = {mail.known_as for mail in patches}
    chosen = [mail for mail in received if mail.known_as in taken]
    version = max(mail.version for mail in chosen or patches)
    chosen = chosen or [mail for mail in received if mail.has_patch and mail.version == version]
    # Of two cover letters with one version, b4 takes the later.
    cover = cover_letter([mail for mail in reversed(received) if mail.version == version])
    return [*([cover] if cover else []), *sorted(chosen, key=lambda mail: mail.version != version)]


def base_commit(texts: list[str]) -> str | None:
    """The `base-commit:` that the series names."""
    return next((match[1] for text in texts if (match := _BASE.search(text))), None)


def change_id(texts: list[str]) -> str | None:
    """The series' change-id, from a trailer or from b4's tracking data; the same in every version."""
    for text in texts:
        if match := _CHANGE_ID.search(text) or _TRACKED_CHANGE_ID.search(text):
            return match[1]
    return None


def check_complete(mails: list[Mail]) -> None:
    """Raises UserError, naming the first missing patch, unless [PATCH 1/N] ... [PATCH N/N] are all there."""
    counters = [mail.counter for mail in mails if mail.counter and mail.has_patch]
    if not counters:
        return
    total = max(total for _, total in counters)
    missing = sorted(set(range(1, total + 1)) - {number for number, _ in counters})
    if missing:
        names = ", ".join(f"{number}/{total}" for number in missing[:10])
        raise UserError(f"the series is incomplete: patch {names} is missing")


def cover_letter(mails: list[Mail]) -> Mail | None:
    """[PATCH 0/N], when the series has one."""
    return next((mail for mail in mails if mail.counter and mail.counter[0] == 0 and not mail.has_patch), None)


def _split(text: str) -> list[str]:
    # As git's mailsplit: people join files without the blank line that mbox wants.
    starts = list(_FROM_LINE.finditer(text))
    if not starts:
        return [text.lstrip()] if _HEADER.match(text.lstrip()) else []
    ends = [match.start() for match in starts[1:]] + [len(text)]
    return [text[match.end() + 1 : end] for match, end in zip(starts, ends, strict=True)]


def _mail(text: str) -> Mail:
    message = Parser().parsestr(text)
    message_id = re.fullmatch(r"<([^<>\s]+)>", _header(message, "Message-ID"))
    return Mail(
        subject=_header(message, "Subject"),
        author=_header(message, "From"),
        text=text,
        body=_body(message),
        message_id=message_id[1] if message_id else None,
    )


def _header(message: Message, name: str) -> str:
    raw = str(message.get(name, ""))
    try:
        decoded = str(email.header.make_header(email.header.decode_header(raw)))
    except (LookupError, UnicodeError, ValueError):
        decoded = raw
    return " ".join(decoded.split())


def _body(message: Message) -> str:
    texts = []
    for part in message.walk():
        if part.get_content_maintype() == "text":
            payload = part.get_payload(decode=True)
            if isinstance(payload, bytes):
                texts.append(payload.decode(errors="replace"))
    return "\n".join(texts)
