"""Parse a patch series in mbox form: patches, versions, cover letter, base commit and change-id.

Used by the worker that applies a series and by the server that previews it. The input is untrusted: every pattern
here takes time linear in its input, and headers and nested MIME parts, which could take longer, are limited first.
"""

from __future__ import annotations

import email.header
import hashlib
import re
from dataclasses import dataclass
from email.message import Message
from email.parser import Parser

from .text import control_character

PATCH_LIMIT = 250
MAIL_LIMIT = 2_000
HEADER_LIMIT = 2_000
"""Maximum number of characters read of a header; the rest is cut off."""
HEAD_LIMIT = 100_000
"""Characters that are read of the first mail's headers."""
LINE_LIMIT = 200_000
"""Maximum number of lines that the parser reads one by one: headers, and whole mails that have MIME parts. Each costs
it 5 microseconds and 200 bytes."""
PART_LIMIT = 50
"""Maximum number of MIME containers in a mail. The parser recurses into them and compares each line with all
boundaries."""

REFERENCE_LIMIT = 50

_FROM_LINE = re.compile(r"^From \S+ +\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}.*$", re.MULTILINE)
_HEADER = re.compile(r"^[A-Za-z][A-Za-z0-9-]*:", re.MULTILINE)
_DIFF = re.compile(r"^(?:diff --git |--- [^\s].*\n\+\+\+ )", re.MULTILINE)
_BASE = re.compile(r"^base-commit: ([0-9a-f]{40})\s*$", re.MULTILINE)
_PREREQUISITE = re.compile(r"^prerequisite-patch-id: ([0-9a-f]{40})\s*$", re.MULTILINE)
_CHANGE_ID = re.compile(r"^[Cc]hange-[Ii]d: ([A-Za-z0-9][A-Za-z0-9._-]{3,120})\s*$", re.MULTILINE)
_TRACKED_CHANGE_ID = re.compile(r'"change-id": "([A-Za-z0-9][A-Za-z0-9._-]{3,120})"')
_COUNTER = re.compile(r"\[[^\]]*\b(\d{1,4})/(\d{1,4})[^\]]*\]")
_PREFIXES = re.compile(r"\s*(?:\[[^\]]*\]\s*)+")
_VERSION = re.compile(r"(?:(?<=[\s\[])|(?<=patch))v(\d{1,4})(?=[\s\],;])", re.IGNORECASE)
_REPLY = re.compile(r"(?:re|aw|fwd):|\w{2,3}:\s*\[", re.IGNORECASE)
_CONTAINER = re.compile(r"^content-type:\s*(?:multipart|message)/", re.MULTILINE | re.IGNORECASE)
_CHARSET = re.compile(
    r"us-ascii|utf-?8|iso-8859-\d|iso-8859-1[03-6]|windows-125[0-8]|koi8-[ru]|gbk|gb2312|gb18030|big5"
)
"""Character sets used in mail; Python has others whose decoders take quadratic time."""
_ESCAPED = re.compile(r"^>(>*From )", re.MULTILINE)
_FOLD = re.compile(r"\r?\n[ \t]")
_MESSAGE_ID = re.compile(r"<([^<>\s]+)>")


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

    @property
    def has_patch(self) -> bool:
        return _DIFF.search(self.body) is not None

    @property
    def is_reply(self) -> bool:
        """Return True if the subject is that of a reply, by the rule of b4."""
        return _REPLY.match(self.subject) is not None

    @property
    def counter(self) -> tuple[int, int] | None:
        """Return (2, 3) for `[PATCH v2 2/3] ...`; None without a counter."""
        match = _COUNTER.match(self.subject)
        return (int(match[1]), int(match[2])) if match else None

    @property
    def version(self) -> int:
        """Return 2 for `[PATCH v2 2/3] ...`; 1 if the subject names no version."""
        prefixes = _PREFIXES.match(self.subject)
        named = _VERSION.search(prefixes[0]) if prefixes else None
        return int(named[1]) if named else 1

    @property
    def title(self) -> str:
        """Return the subject without `[PATCH v2 2/3]`."""
        return strip_prefix(self.subject)

    @property
    def effective_message_id(self) -> str:
        """Return the Message-ID, or the one that `add_message_ids` generates."""
        return self.message_id or hashlib.sha256(self.text.encode(errors="replace")).hexdigest()[:32] + "@wqlab.invalid"


def parse_mails(text: str, *, escaped: bool = False) -> list[Mail]:
    """Parse an mbox or a single raw message. Return an empty list for other text.

    `escaped` tells that lines of the mails that begin with `From ` are escaped by `>` (mboxrd), as in archives; `git
    format-patch` escapes none.
    """
    return [_mail(_ESCAPED.sub(r"\1", part) if escaped else part) for part in split(text)]


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
        parsed = part if _CONTAINER.search(part) else part.partition("\n\n")[0]
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
        message = Parser().parsestr(part.partition("\n\n")[0], headersonly=True)
        for name in ("Subject", "From", "Date", "Message-ID", "In-Reply-To"):
            value = _decoded(_FOLD.sub(" ", str(message.get(name, ""))[:HEADER_LIMIT]))
            if (character := control_character(value)) is not None:
                return f"the {name} of message {number} has the control character {character}; remove it"
    return None


def split(text: str) -> list[str]:
    """Split an mbox into the texts of its messages.

    Like git mailsplit, this needs no blank line between messages, since people concatenate files without one.
    """
    text = text.replace("\r\n", "\n")
    starts = list(_FROM_LINE.finditer(text))
    if not starts:
        return [text.lstrip()] if _HEADER.match(text.lstrip()) else []
    ends = [match.start() for match in starts[1:]] + [len(text)]
    return [text[match.end() + 1 : end] for match, end in zip(starts, ends, strict=True)]


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


def select_version(received: list[Mail], patches: list[Mail]) -> list[Mail]:
    """Return the mails in `received` of the version that `patches` belong to: the cover letter, then the patches.

    A thread also contains replies and older versions with other base commits and cover letters. If only a part of a
    series was sent again, the other patches are of the version before; they come last.
    """
    taken = {mail.effective_message_id for mail in patches}
    chosen = [mail for mail in received if mail.effective_message_id in taken]
    version = max(mail.version for mail in chosen or patches)
    chosen = chosen or [mail for mail in received if mail.has_patch and mail.version == version]
    # Of two cover letters with one version, b4 takes the later.
    cover = cover_letter([mail for mail in reversed(received) if mail.version == version])
    return [*([cover] if cover else []), *sorted(chosen, key=lambda mail: mail.version != version)]


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
    counters = [mail.counter for mail in mails if mail.counter and mail.has_patch]
    total = max((total for _, total in counters), default=0)
    return [f"{number}/{total}" for number in sorted(set(range(1, total + 1)) - {number for number, _ in counters})]


def cover_letter(mails: list[Mail]) -> Mail | None:
    """Return the cover letter [PATCH 0/N], or None."""
    return next((mail for mail in mails if mail.counter and mail.counter[0] == 0 and not mail.has_patch), None)


def strip_prefix(subject: str) -> str:
    """Return a subject without its bracketed prefixes."""
    prefixes = _PREFIXES.match(subject)
    return subject[prefixes.end() :] if prefixes else subject.strip()


def _mail(text: str) -> Mail:
    head, _, rest = text.partition("\n\n")
    message = Parser().parsestr(head)
    readable = True
    if message.get_content_maintype() not in ("multipart", "message"):
        # Not by the parser: its list of the mail's lines needs twenty times the memory of the mail.
        message.set_payload("\n\n".join(part for part in (str(message.get_payload()), rest) if part))
    elif len(_CONTAINER.findall(text)) <= PART_LIMIT:
        message = Parser().parsestr(text)
    else:
        readable = False
    return Mail(
        subject=_header(message, "Subject"),
        author=_header(message, "From"),
        text=text,
        body="\n".join(map(_text, message.walk())) if readable else "",
        message_id=_id(message, "Message-ID"),
        in_reply_to=_id(message, "In-Reply-To"),
        references=_references(message),
        date=_header(message, "Date"),
        readable=readable,
    )


def _id(message: Message, name: str) -> str | None:
    found = _MESSAGE_ID.fullmatch(_header(message, name))
    return found[1] if found else None


def _references(message: Message) -> tuple[str, ...]:
    return tuple(_MESSAGE_ID.findall(str(message.get("References", ""))[-HEADER_LIMIT:])[-REFERENCE_LIMIT:])


def _header(message: Message, name: str) -> str:
    return " ".join(_decoded(str(message.get(name, ""))[:HEADER_LIMIT]).split())


def _decoded(raw: str) -> str:
    """Return a header with its encoded words (RFC 2047) decoded; unchanged if one is malformed."""
    try:
        return str(email.header.make_header(email.header.decode_header(raw)))
    except (LookupError, UnicodeError, ValueError):
        return raw


def _text(part: Message) -> str:
    payload = part.get_payload()
    if part.get_content_maintype() != "text" or not isinstance(payload, str):
        return ""
    if str(part.get("Content-Transfer-Encoding", "")).strip().lower() not in ("quoted-printable", "base64"):
        return payload
    decoded = part.get_payload(decode=True)
    charset = part.get_content_charset("utf-8")
    if not isinstance(decoded, bytes):
        return ""
    return decoded.decode(charset if _CHARSET.fullmatch(charset) else "utf-8", errors="replace")
