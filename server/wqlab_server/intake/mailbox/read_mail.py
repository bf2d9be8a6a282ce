"""Read a mail to the lab: whether it is a bounce, a command, or neither. Pure.

The bytes come from anybody. Only headers, the first text part and delivery reports are read, each up to a limit.
"""

from __future__ import annotations

import email.utils
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import Message
from email.parser import BytesParser
from email.policy import compat32

from wqlab_contracts.mail import address_of, message_ids
from wqlab_contracts.mails.mail_parts import charset_of, decode_text
from wqlab_contracts.reply_commands import commands_of

SIZE_LIMIT = 1 << 20
"""Maximum size (bytes) of a mail. A reply to the lab has a few kilobytes, and a bounce quotes one mail of the lab."""
HEADER_LIMIT = 100_000
"""Maximum size (bytes) of the headers of a mail or a part; the parser takes quadratic time for some of them."""
PART_LIMIT = 20
"""Maximum number of MIME parts that are looked at."""
TEXT_LIMIT = 20_000
"""Characters of the text in which a command is looked for."""
BOUNCE_LIMIT = 100
"""Maximum number of recipients of one delivery report."""

_SINGLE = ("from", "date", "in-reply-to", "references", "message-id")
_LONE_RETURN = re.compile(rb"\r(?!\n)")
_STATUS = re.compile(r"[245]\.\d{1,3}\.\d{1,3}")


@dataclass(frozen=True)
class Bounce:
    """What a delivery report (RFC 3464) says about one recipient."""

    recipient: str
    action: str
    """`failed` for good, or `delayed`; the other actions are no bounces."""
    status: str
    """Code of RFC 3463, such as `5.1.1`; empty without one."""
    text: str
    """The answer of the receiving server; empty without one."""


@dataclass(frozen=True)
class ReceivedMail:
    """A mail to the lab, as far as the lab acts on it."""

    sender: str
    """`user@host` of From; empty if there is not exactly one."""
    subject: str
    message_id: str
    date: datetime | None
    parents: tuple[str, ...]
    """Message-IDs of In-Reply-To and References, the nearest first."""
    is_automatic: bool
    """True for what a machine sent: an out-of-office note, a list's notice, a bounce."""
    commands: tuple[str, ...] = ()
    """What follows `wqlab:` on lines of its own, not quoted, in order."""
    bounces: tuple[Bounce, ...] = ()
    bounced: tuple[str, ...] = ()
    """Message-IDs of the mail that a delivery report is about."""
    ambiguous: str = ""
    """Why programs may read the headers differently, so that a signature may be of another mail; empty if they do
    not."""


def read_mail(data: bytes, *, from_list: bool = False) -> ReceivedMail:
    """Read a mail (RFC 5322). Raises ValueError if it exceeds a limit, or has parts in too many parts.

    `from_list`: a mailing list has sent it on, and marks every mail as `Precedence: bulk`.
    """
    if len(data) > SIZE_LIMIT:
        raise ValueError(f"the mail has {len(data)} bytes; at most {SIZE_LIMIT} are read")
    try:
        message = BytesParser(policy=compat32).parsebytes(data)
    except RecursionError:
        raise ValueError("the mail has parts in parts, more deeply than any mail needs") from None
    parts = list(_parts(message))
    if any(sum(len(str(value)) for value in part.values()) > HEADER_LIMIT for part in parts):
        raise ValueError(f"the mail has headers of more than {HEADER_LIMIT} bytes")
    bounces, bounced = _bounces(message, parts)
    return ReceivedMail(
        sender=address_of(_header(message, "From")).lower(),
        subject=_header(message, "Subject")[:500],
        message_id=next(iter(message_ids(_header(message, "Message-ID"))), ""),
        date=_date(_header(message, "Date")),
        parents=tuple(
            dict.fromkeys(
                [*message_ids(_header(message, "In-Reply-To")), *reversed(message_ids(_header(message, "References")))]
            )
        ),
        is_automatic=_is_automatic(message, from_list=from_list),
        commands=tuple(_commands(parts)),
        bounces=tuple(bounces),
        bounced=tuple(bounced),
        ambiguous=_ambiguity(data, message),
    )


def _ambiguity(data: bytes, message: Message) -> str:
    repeated = next((name for name in _SINGLE if len(message.get_all(name, [])) > 1), None)
    if repeated is not None:
        return f"the mail has two headers {repeated.title()}"
    # Python's parser ends a line at it, and programs that check signatures do not.
    return "the mail has a carriage return that ends no line" if _LONE_RETURN.search(data) else ""


def is_stop(text: str) -> bool:
    """Return True if a line asks the lab to stop, however it is spaced and capitalized."""
    return text.lower().strip().rstrip(".!") == "stop"


def _header(message: Message, name: str) -> str:
    return " ".join(str(message.get(name, "")).split())


def _date(text: str) -> datetime | None:
    try:
        found = email.utils.parsedate_to_datetime(text)
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _is_automatic(message: Message, *, from_list: bool) -> bool:
    """Return True if a header says that a machine sent the mail (RFC 3834), or if it has no sender to return to."""
    automatic = _header(message, "Auto-Submitted").partition(";")[0].strip().lower()
    precedence = _header(message, "Precedence").lower()
    return (
        automatic not in {"", "no"}
        or (precedence in {"bulk", "junk", "auto_reply"} and not from_list)
        or _header(message, "Return-Path") == "<>"
        or message.get_content_type() == "multipart/report"
    )


def _parts(message: Message) -> Iterator[Message]:
    """Yield the parts in order, at most PART_LIMIT, without those of an attached message."""
    left = PART_LIMIT
    waiting = [message]
    while waiting and left:
        part = waiting.pop(0)
        left -= 1
        yield part
        content = part.get_payload()
        if part.get_content_maintype() == "multipart" and isinstance(content, list):
            waiting = [each for each in content if isinstance(each, Message)] + waiting


def _commands(parts: list[Message]) -> Iterator[str]:
    """Yield what follows `wqlab:` in the first plain text. Quoted lines begin with `>` and do not match."""
    text = next((part for part in parts if part.get_content_type() == "text/plain"), None)
    if text is None:
        return
    yield from commands_of(_text(text)[:TEXT_LIMIT])


def _text(part: Message) -> str:
    data = part.get_payload(decode=True)
    if not isinstance(data, bytes):
        return ""
    return decode_text(data, charset_of(part))


def _bounces(message: Message, parts: list[Message]) -> tuple[list[Bounce], list[str]]:
    """Return what a delivery report says, and the Message-IDs of the mail that it is about."""
    if message.get_content_type() != "multipart/report":
        return [], []
    found: list[Bounce] = []
    bounced: list[str] = []
    for part in parts:
        content = part.get_payload()
        if part.get_content_type() == "message/delivery-status" and isinstance(content, list):
            found += [each for block in content[: BOUNCE_LIMIT + 1] if (each := _bounce(block)) is not None]
        elif part.get_content_type() in {"message/rfc822", "text/rfc822-headers", "message/rfc822-headers"}:
            bounced += _ids_of_attached(part)
    return found[:BOUNCE_LIMIT], list(dict.fromkeys(bounced))


def _bounce(block: object) -> Bounce | None:
    """Return what one group of fields says about a recipient; None for the fields about the whole message."""
    if not isinstance(block, Message):
        return None
    recipient = _header(block, "Final-Recipient") or _header(block, "Original-Recipient")
    address = address_of(recipient.rpartition(";")[2].strip())
    action = _header(block, "Action").lower()
    if not address or action not in {"failed", "delayed"}:
        return None
    status = _STATUS.match(_header(block, "Status"))
    text = _header(block, "Diagnostic-Code").partition(";")[2].strip()
    printable = "".join(character for character in text if character.isprintable())
    return Bounce(address.lower(), action, status[0] if status else "", printable[:500])


def _ids_of_attached(part: Message) -> list[str]:
    content = part.get_payload()
    if isinstance(content, list):
        return [each for message in content[:1] if isinstance(message, Message) for each in _ids(message)]
    return _ids(BytesParser(policy=compat32).parsebytes(_text(part).encode()[:SIZE_LIMIT], headersonly=True))


def _ids(message: Message) -> list[str]:
    return message_ids(_header(message, "Message-ID"))
