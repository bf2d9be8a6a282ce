"""Parse a patch series in mbox form: patches, versions, cover letter, base commit and change-id.

Used by the worker that applies a series and by the server that previews it. The input is untrusted: every pattern
here takes time linear in its input, and headers and nested MIME parts, which could take longer, are limited first.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from functools import cached_property

from ..text import control_character, valid_text
from .in_body import InBody, read_in_body
from .mail_parts import (
    CONTAINER,
    DIFF,
    HEADER_LIMIT,
    PART_LIMIT,
    decoded_header,
    header,
    in_utf8,
    parse_headers,
    read_text,
    sender,
)
from .subjects import Subject, parse_subject, without_reply

__all__ = ["HEADER_LIMIT", "PART_LIMIT"]
PATCH_LIMIT = 250
MAIL_LIMIT = 2_000
HEAD_LIMIT = 100_000
"""Characters that are read of the first mail's headers."""
LINE_LIMIT = 200_000
"""Maximum number of lines that the parser reads one by one: headers, and whole mails that have MIME parts. Each costs
it 5 microseconds and 200 bytes."""
REFERENCE_LIMIT = 50

_FROM_LINE = re.compile(
    r"^From [^\s][^\n]{0,300}?[ \t]\w{3}[ \t]+\w{3}[ \t]+\d{1,2}[ \t]+\d{1,2}:\d\d(?::\d\d)?[ \t]"
    r"[^\n=]{0,40}\d{4}[^\n=]{0,40}$",
    re.MULTILINE,
)
"""Separator of mails: of git and b4, and of archives whose days and hours may have one digit."""
_COMMIT_LINE = re.compile(r"From [0-9a-f]{40} ")
_ESCAPING = re.compile(r"From (?:mboxrd@z|wqlab@localhost) ")
"""Begins the separator of programs that escape lines of a mail that begin with `From `, such as b4."""
_HEADER = re.compile(r"^[A-Za-z][A-Za-z0-9-]*:", re.MULTILINE)
_BASE = re.compile(r"^base-commit: ([0-9a-f]{40})\s*$", re.MULTILINE)
_PREREQUISITE = re.compile(r"^prerequisite-patch-id: ([0-9a-f]{40})\s*$", re.MULTILINE)
_CHANGE_ID = re.compile(r"^[Cc]hange-[Ii]d: ([A-Za-z0-9][A-Za-z0-9._-]{3,120})\s*$", re.MULTILINE)
_TRACKED_CHANGE_ID = re.compile(r'"change-id": "([A-Za-z0-9][A-Za-z0-9._-]{3,120})"')
_ESCAPED = re.compile(r"^>(>*From )", re.MULTILINE)
_QUOTATION = re.compile(r"\s{0,20}(?:[^\s>+-][^\n]{0,300}\n){0,3}[^\n]{0,300}:[ \t]{0,20}\n\s{0,20}>|\s{0,20}>")
"""A quotation at the beginning of a text, with the line above it that says who wrote it."""
_NO_UTF8 = re.compile("[\udc80-\udcff]")
_NOT_BLANK = re.compile(r"\S")
_MESSAGE_ID = re.compile(r"<([^<>\s]+)>")


@dataclass(frozen=True)
class Role:
    """Version and number of a mail, as its thread says them."""

    version: int
    counter: tuple[int, int] | None
    title: str | None = None
    """Title of a cover letter that ended with the version."""


@dataclass(frozen=True)
class Mail:
    """One message of an mbox."""

    subject: str
    author: str
    text: str
    """The whole message with headers, without the mbox `From ` line."""
    body: str
    message_id: str | None = None
    in_reply_to: str | None = None
    references: tuple[str, ...] = ()
    """The last ids of the References header, at most REFERENCE_LIMIT, that of the direct parent last."""
    date: str = ""
    """Text of the Date header."""
    readable: bool = True
    """False if the message has more than PART_LIMIT MIME containers; `body` is then empty."""
    patch: str = ""
    """Text of the part with the diff, from which patch and message are taken; empty if there is none."""
    problem: str = ""
    """Why the patch that the mail seems to have cannot be taken."""
    role: Role | None = None
    """What the mail is in its thread, if that differs from what its own subject says."""

    @cached_property
    def parsed(self) -> Subject:
        """What the subject says; that in the text counts if only it has a number."""
        own = parse_subject(self.subject)
        if own.is_reply or own.counter is not None or not self.in_body.subject:
            return own
        named = parse_subject(self.in_body.subject)
        return named if named.counter is not None else own

    @cached_property
    def in_body(self) -> InBody:
        """Headers in the text of a patch, and the text without them."""
        return read_in_body(self.patch) if self.patch else InBody(self.body)

    @property
    def has_patch(self) -> bool:
        return bool(self.patch or self.problem)

    @property
    def is_patch(self) -> bool:
        """Return True for a patch that is neither a reply nor part of a cover letter."""
        return self.has_patch and not self.is_reply and not self.is_cover

    @property
    def is_cover(self) -> bool:
        """Return True for a cover letter, which may show a diff of the whole series. A reply without `Re:` is none."""
        if self.is_reply or self.counter is None or self.counter[0] != 0:
            return False
        return not ((self.in_reply_to or self.references) and self.begins_with_quotation)

    @property
    def is_reply(self) -> bool:
        """Return True if the subject is that of a reply, by the rule of b4; a list's name may be before `Re:`."""
        return self.parsed.is_reply

    @property
    def begins_with_quotation(self) -> bool:
        """Return True for what may be a reply, although its subject has no `Re:`."""
        return _QUOTATION.match(self.in_body.text) is not None

    @property
    def counter(self) -> tuple[int, int] | None:
        """Return (2, 3) for `[PATCH v2 2/3] ...`; None without a counter."""
        return self.role.counter if self.role else self.parsed.counter

    @property
    def version(self) -> int:
        """Return 2 for `[PATCH v2 2/3] ...`; 1 if neither the subject nor the cover letter names a version."""
        return self.role.version if self.role else self.parsed.version or 1

    @property
    def title(self) -> str:
        """Return the subject without `[PATCH v2 2/3]`; that in the text of a patch counts."""
        if self.role and self.role.title is not None:
            return self.role.title
        return strip_prefix(self.in_body.subject) if self.in_body.subject else self.parsed.title

    @property
    def patch_in_reply(self) -> Mail | None:
        """Return the patch below scissors in a reply as a mail of its own, without a number; None if it has none."""
        if not (self.is_reply and self.patch and self.in_body.is_cut):
            return None
        mail = replace(self, subject=without_reply(self.subject), role=None)
        return replace(mail, role=Role(parse_subject(self.in_body.subject).version or 1, None))

    @property
    def patch_author(self) -> str:
        """Return the author of a patch: the sender, unless the text names another."""
        return self.in_body.author or self.author

    @property
    def effective_message_id(self) -> str:
        """Return the Message-ID, or the one that `add_message_ids` generates."""
        return self.message_id or hashlib.sha256(self.text.encode(errors="replace")).hexdigest()[:32] + "@wqlab.invalid"


def parse_mails(text: str, *, escaped: bool = False) -> list[Mail]:
    """Parse an mbox or a single raw message. Return an empty list for other text.

    `escaped` tells that lines of the mails that begin with `From ` are escaped by `>` (mboxrd), as in archives; `git
    format-patch` escapes none.
    """
    escaped = escaped or _ESCAPING.match(text.lstrip()) is not None
    return [_mail(_ESCAPED.sub(r"\1", part) if escaped else part) for part in split(text)]


def decode(data: bytes) -> str:
    """Return the text of an mbox file. Raises ValueError, which says why, for a patch that is not UTF-8.

    Mails in the character set that they name become UTF-8. Other bytes of other mails, such as replies, are replaced.
    """
    text = data.decode("utf-8", "surrogateescape")
    if _NO_UTF8.search(text) is None:
        return text
    text = text.replace("\r\n", "\n")
    pieces: list[str] = []
    place = 0
    for part in split(text):
        begin = text.index(part, place)
        pieces += [text[place:begin], in_utf8(part) if _NO_UTF8.search(part) else part]
        place = begin + len(part)
    text = "".join(pieces) + text[place:]
    first = _NO_UTF8.search(text)
    if first is None:
        return text
    where = f"(byte {len(text[: first.start()].encode())})"
    mails = parse_mails(text)
    if not mails:
        raise ValueError(f"it is not UTF-8 {where}: create it with `git format-patch --stdout`")
    if bad := [mail for mail in mails if mail.is_patch and _NO_UTF8.search(mail.text)]:
        raise ValueError(
            f"patch {bad[0].title[:100]!r} is not UTF-8 {where}: create it with `git format-patch --stdout`"
        )
    return valid_text(text)


def parse_first_headers(text: str) -> Mail | None:
    """Parse the headers of the first message, without its body. Return None if there is no message."""
    head = text.lstrip().replace("\r\n", "\n").partition("\n\n")[0][:HEAD_LIMIT]
    if head.startswith("From "):
        head = head.partition("\n")[2]
    return _mail(head) if _HEADER.match(head) else None


def size_problem(parts: list[str]) -> str | None:
    """Return why the mails of an mbox are too many, or have too many lines, for the parser; None if they are not."""
    if len(parts) > MAIL_LIMIT:
        return f"the mbox has {len(parts)} mails; at most {MAIL_LIMIT} are read. Save only the thread of the series"
    lines = 0
    for part in parts:
        parsed = part if CONTAINER.search(part) else part.partition("\n\n")[0]
        lines += parsed.count("\n") + 1
    if lines > LINE_LIMIT:
        return f"the mbox has {lines} lines in headers and mails with MIME parts; at most {LINE_LIMIT} are read"
    return None


def header_problem(text: str) -> str | None:
    """Return why an mbox is refused: its size, or a control character in a header; None if it is not.

    A control character could change what a terminal shows, or what a reader takes for the author. Replies in the thread
    are checked too, because their trailers are taken.
    """
    parts = split(text)
    if (problem := size_problem(parts)) is not None:
        return problem
    for number, part in enumerate(parts, start=1):
        message = parse_headers(part.partition("\n\n")[0])
        for name in ("Subject", "From", "Date", "Message-ID", "In-Reply-To"):
            if (character := control_character(decoded_header(message, name))) is not None:
                return f"the {name} of message {number} has the control character {character}; remove it"
    return None


def split(text: str) -> list[str]:
    """Split an mbox into the texts of its messages.

    Like git mailsplit, this needs no blank line between messages, since people concatenate files without one. A raw
    message has no separator before it. What follows a separator begins with a header; the line `From COMMIT` of `git
    format-patch` belongs to the text of a mail that has nothing before it, or that is raw and has no diff before it.
    """
    text = text.replace("\r\n", "\n")
    start = len(text) - len(text.lstrip())
    is_raw = _HEADER.match(text, start) is not None
    begins = [start] if is_raw else []
    ends: list[int] = []
    body, searched = _body(text, start), start
    for found in _FROM_LINE.finditer(text):
        if begins:
            if not _HEADER.match(text, found.end() + 1):
                continue
            if _COMMIT_LINE.match(found[0]):
                if body == found.start():
                    continue
                if is_raw and not ends and DIFF.search(text, searched, found.start()) is None:
                    searched = found.start()
                    continue
            ends.append(found.start())
        begins.append(found.end() + 1)
        body = _body(text, begins[-1])
    return [text[begin:end] for begin, end in zip(begins, [*ends, len(text)], strict=True)] if begins else []


def _body(text: str, begin: int) -> int:
    """Return where the text of a mail begins; -1 if it has none."""
    end = text.find("\n\n", begin)
    found = _NOT_BLANK.search(text, end) if end >= 0 else None
    return found.start() if found else -1


def add_message_ids(mails: list[Mail]) -> str:
    """Return an mbox in which every message has a Message-ID.

    b4 needs them, and `git format-patch` writes none by default. Messages without one become replies to the first
    message, in their order.
    """
    parts, first = [], ""
    for mail in mails:
        own = f"<{mail.effective_message_id}>"
        head = "" if mail.message_id else f"Message-ID: {own}\n" + (f"In-Reply-To: {first}\n" if first else "")
        first = first or own
        body = re.sub(r"^(>*From )", r">\1", mail.text, flags=re.MULTILINE)
        parts.append(f"From wqlab@localhost Thu Jan  1 00:00:00 1970\n{head}{body.rstrip()}\n\n")
    return "".join(parts)


def base_commit(texts: list[str]) -> str | None:
    """Return the first `base-commit:` in `texts`, or None."""
    return next((match[1] for text in texts if (match := _BASE.search(text))), None)


def prerequisites(texts: list[str]) -> list[str]:
    """Return the ids of all patches that `texts` name as prerequisites, each once, in order."""
    return list(dict.fromkeys(match[1] for text in texts for match in _PREREQUISITE.finditer(text)))


def change_id(texts: list[str]) -> str | None:
    """Return the change-id of a series, from a trailer or from b4's tracking data, or None.

    All versions of a series have the same change-id.
    """
    for text in texts:
        if match := _CHANGE_ID.search(text) or _TRACKED_CHANGE_ID.search(text):
            return match[1]
    return None


def missing(mails: list[Mail]) -> list[str]:
    """Return `2/3` for each patch missing from [PATCH 1/N] ... [PATCH N/N]; empty without counters."""
    counters = [mail.counter for mail in mails if mail.counter and mail.is_patch]
    total = max((total for _, total in counters), default=0)
    return [f"{number}/{total}" for number in sorted(set(range(1, total + 1)) - {number for number, _ in counters})]


def strip_prefix(subject: str) -> str:
    """Return a subject without its bracketed prefixes."""
    return parse_subject(subject).title


def _mail(text: str) -> Mail:
    message = parse_headers(text.partition("\n\n")[0])
    found = read_text(text)
    return Mail(
        subject=header(message, "Subject"),
        author=sender(message),
        text=text,
        body=found.body,
        message_id=_id(header(message, "Message-ID")),
        in_reply_to=_first_id(header(message, "In-Reply-To")),
        references=tuple(_MESSAGE_ID.findall(header(message, "References", last=True))[-REFERENCE_LIMIT:]),
        date=header(message, "Date"),
        readable=found.is_readable,
        patch=found.patch,
        problem=found.problem,
    )


def _id(text: str) -> str | None:
    found = _MESSAGE_ID.fullmatch(text)
    return found[1] if found else None


def _first_id(text: str) -> str | None:
    found = _MESSAGE_ID.search(text)
    return found[1] if found else None
