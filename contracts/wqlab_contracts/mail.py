"""Mails about results: the mail that a series came in, the answer to it, and the answer's bytes."""

from __future__ import annotations

import email.utils
import re
from collections.abc import Sequence
from datetime import datetime
from email.errors import MessageError
from email.header import decode_header, make_header
from email.headerregistry import Address
from email.message import EmailMessage
from email.parser import Parser
from email.policy import SMTP, compat32
from enum import StrEnum

from pydantic import Field

from .messages.base import Message
from .messages.source_mail import ADDRESS_LIMIT, RECIPIENT_LIMIT, REFERENCE_LIMIT, SUBJECT_LIMIT, SourceMail
from .text import control_character

BODY_LIMIT = 100_000
"""Maximum length (characters) of a mail's text."""

_POLICY = SMTP.clone(max_line_length=998, cte_type="8bit")
"""No line is folded or encoded, so that a URL or a table stays as it is."""
_ID = re.compile(r"[^<>\s@]{1,400}@[^<>\s@]{1,400}")
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_ADDRESS = re.compile(rf"{_ATOM}(?:\.{_ATOM})*@[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")
"""The part of `addr-spec` (RFC 5322) that mail servers deliver to: a dot-atom on each side of the @."""
_TRAILER = re.compile(r"^(?:[A-Za-z]+-)+by:", re.MULTILINE | re.IGNORECASE)
_OF_THIS_MACHINE = re.compile(
    r"[a-z0-9+.-]{1,20}://(?:localhost|127\.[0-9.]+|0\.0\.0\.0|\[::1\])(?=[:/?#\s<>]|$)", re.IGNORECASE
)
_HEAD_LIMIT = 100_000
"""Characters that are read of a mail's headers."""


class ReplyTo(StrEnum):
    """Who gets the answer to a series that came by mail."""

    ALL = "all"
    """As a person's reply to all: the author, and everyone in To and Cc, lists included."""
    AUTHOR = "author"


class OutgoingMail(Message):
    """A mail of the lab."""

    message_id: str
    """Without angle brackets. Derived from what the mail says, so that a second attempt is the same mail."""
    in_reply_to: str | None
    references: list[str]
    sender: str
    to: list[str]
    cc: list[str]
    subject: str
    date: datetime
    body: str


class MailEdit(Message):
    """Body of a request to change a mail before it is sent. Fields that are missing or null stay unchanged."""

    to: list[str] | None = Field(default=None, min_length=1, max_length=RECIPIENT_LIMIT)
    cc: list[str] | None = Field(default=None, max_length=RECIPIENT_LIMIT)
    subject: str | None = Field(default=None, min_length=1, max_length=SUBJECT_LIMIT)
    body: str | None = Field(default=None, min_length=1, max_length=BODY_LIMIT)


# --- addresses and ids ------------------------------------------------------------------------------------------


def addresses(headers: Sequence[str]) -> list[str]:
    """Return the addresses in To or Cc headers as `Name <user@host>`, without those that nobody could send to.

    The names are decoded (RFC 2047). Equal addresses are returned once, and at most RECIPIENT_LIMIT.
    """
    found: dict[str, str] = {}
    for name, address in (pair for header in headers for pair in parse_addresses(header)):
        if is_address(address) and len(found) < RECIPIENT_LIMIT:
            found.setdefault(address.lower(), formatted(decode_words(name), address))
    return list(found.values())


def parse_addresses(header: str) -> list[tuple[str, str]]:
    """Return name and address of each mailbox in a header as it was sent: decoded words may look like addresses.

    Return none if the header has groups in groups, for which Python's parser recurses.
    """
    try:
        return email.utils.getaddresses([header])
    except RecursionError:
        return []


def of_commit(author: str) -> list[str]:
    """Return the address of a commit's author, which git writes as `Name <user@host>` without any quotes; empty if
    nobody could send to it."""
    name, _, address = author.rstrip(">").rpartition("<")
    return [formatted(name.strip(), address)] if is_address(address) else []


def address_of(text: str) -> str:
    """Return `user@host` of `Name <user@host>`; empty if there is none, or more than one."""
    found = [address for _, address in parse_addresses(text)]
    return found[0] if len(found) == 1 and is_address(found[0]) else ""


def is_address(address: str) -> bool:
    """Return True for a plain `user@host` in ASCII without anything that could be read as another header."""
    return _ADDRESS.fullmatch(address) is not None and len(address) <= ADDRESS_LIMIT


def formatted(name: str, address: str) -> str:
    """Return `Name <user@host>`. The name's control characters are left out."""
    name = "".join(character for character in name if character.isprintable()).strip()
    quoted = '"{}"'.format(name.replace("\\", "").replace('"', "")) if set(name) & set('()<>@,;:\\".[]') else name
    return f"{quoted} <{address}>" if name else address


def message_ids(header: str) -> list[str]:
    """Return the Message-IDs in a header, without angle brackets: at most REFERENCE_LIMIT, the first and the last."""
    found = list(dict.fromkeys(_ID.findall(header)))
    return found if len(found) <= REFERENCE_LIMIT else [found[0], *found[1 - REFERENCE_LIMIT :]]


# --- source mails and answers -----------------------------------------------------------------------------------------


def source_of(text: str) -> SourceMail | None:
    """Return the source mail with these headers, or None if it has no Message-ID or nobody to answer.

    `text` is a message or an mbox, of which only the headers of the first message are read: a cover letter comes first.
    """
    head = text.lstrip().replace("\r\n", "\n").partition("\n\n")[0][:_HEAD_LIMIT].replace("\r", " ")
    if head.startswith("From "):
        head = head.partition("\n")[2]
    message = Parser(policy=compat32).parsestr(head, headersonly=True)

    def header(name: str) -> str:
        return ", ".join(" ".join(str(value).split()) for value in message.get_all(name, []))

    own = message_ids(header("Message-ID"))
    authors = addresses([header("From")])
    sender = addresses([header("Reply-To")]) or authors
    if not own or not sender:
        return None
    before = [*message_ids(header("References")), *message_ids(header("In-Reply-To"))]
    return SourceMail(
        message_id=own[0],
        references=list(dict.fromkeys(before))[-REFERENCE_LIMIT:],
        sender=sender[0],
        to=addresses([header("To")]),
        cc=addresses([header("Cc")]),
        subject=decode_words(header("Subject"))[:SUBJECT_LIMIT],
        sender_checked=[address_of(each).lower() for each in authors] == [address_of(sender[0]).lower()],
    )


def answer_to(source: SourceMail, who: ReplyTo, own: str) -> tuple[list[str], list[str]]:
    """Return To and Cc of an answer. The lab's own address, `own`, is left out."""
    if who is ReplyTo.AUTHOR:
        return [source.sender], []
    known = {address_of(source.sender).lower(), address_of(own).lower()}
    others = [each for each in addresses([*source.to, *source.cc]) if address_of(each).lower() not in known]
    return [source.sender], others


def reply_subject(subject: str) -> str:
    """Return the subject of an answer: `Re: [PATCH v2 0/3] ...`."""
    plain = subject
    while plain[:3].lower() == "re:":
        plain = plain[3:].strip()
    return f"Re: {plain}"[:SUBJECT_LIMIT]


def without_trailers(line: str) -> str:
    """Return a line; if tools could take it for a trailer, as a quotation."""
    return f"| {line}" if _TRAILER.match(line.lstrip()) else line


def decode_words(text: str) -> str:
    """Decode the encoded words of a header (RFC 2047); a malformed one stays as it is."""
    try:
        return str(make_header(decode_header(text))).encode("utf-8", "replace").decode()
    except (LookupError, ValueError, MessageError):
        return text


# --- bytes ------------------------------------------------------------------------------------------------------


def problems(mail: OutgoingMail) -> list[tuple[str, str]]:
    """Return the reasons for which a mail must not be sent, as pairs of field and reason.

    A machine's text must not look as if a person vouched for a patch: tools collect such lines from replies.
    """
    found = [
        (f"{field}/{index}", f"{text[:100]!r} is not a mail address: write user@host or Name <user@host>")
        for field, texts in (("to", mail.to), ("cc", mail.cc))
        for index, text in enumerate(texts)
        if not address_of(text) or control_character(text)
    ]
    if character := control_character(mail.subject):
        found.append(("subject", f"it has the control character {character}; remove it"))
    if any(control_character(line.replace("\t", " ")) for line in mail.body.splitlines()):
        found.append(("body", "it has a control character; remove it"))
    if reason := unreachable(mail.body):
        found.append(("body", reason))
    if trailer := _TRAILER.search(mail.body):
        found.append(("body", f"a line begins with {trailer[0].strip()!r}, which tools would collect as a trailer"))
    return found


def unreachable(text: str) -> str:
    """Return why a text must not be mailed: it has a URL of this machine, which no reader can open. Empty if it has
    none."""
    found = _OF_THIS_MACHINE.search(text)
    if found is None:
        return ""
    return (
        f"{found[0]} is an address of the lab's own machine, which no reader of a mail can open: set WQLAB_PUBLIC_URL "
        "to the lab's public URL"
    )


def recipients(mail: OutgoingMail) -> list[str]:
    """Return the addresses of To and Cc, each once."""
    return list(dict.fromkeys(address_of(text) for text in [*mail.to, *mail.cc]))


def to_bytes(mail: OutgoingMail, *, seven_bit: bool = False, unsubscribe: str | None = None) -> bytes:
    """Return the mail in the form of RFC 5322, with CRLF, as SMTP and `git send-email` take it.

    `seven_bit`: for a server without 8BITMIME; other characters than ASCII are then encoded. `unsubscribe`: URL that
    switches such mails off; with https also by a POST without a sign-in (RFC 8058).
    """
    message = EmailMessage(_POLICY)
    message["From"] = _header_addresses([mail.sender])
    if mail.to:
        message["To"] = _header_addresses(mail.to)
    if mail.cc:
        message["Cc"] = _header_addresses(mail.cc)
    message["Subject"] = mail.subject
    message["Date"] = mail.date
    message["Message-ID"] = f"<{mail.message_id}>"
    if mail.in_reply_to is not None:
        message["In-Reply-To"] = f"<{mail.in_reply_to}>"
    if mail.references:
        message["References"] = " ".join(f"<{each}>" for each in mail.references)
    if unsubscribe is not None:
        message["List-Unsubscribe"] = f"<{unsubscribe}>"
        if unsubscribe.startswith("https://"):
            message["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    message["Auto-Submitted"] = "auto-generated"
    message["X-Auto-Response-Suppress"] = "All"
    encoding = "7bit" if mail.body.isascii() else "quoted-printable" if seven_bit else "8bit"
    message.set_content(mail.body, cte=encoding)
    return message.as_bytes()


def _header_addresses(texts: Sequence[str]) -> list[Address]:
    return [
        Address(display_name=name, addr_spec=address)
        for name, address in (pair for text in texts for pair in parse_addresses(text))
        if is_address(address)
    ]
