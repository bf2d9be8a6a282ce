"""Read headers and text of a mail from its bytes, whatever they are. No mail raises an exception.

Python's parser keeps bytes that are no ASCII as surrogates; they are decoded here, by the character set that the mail
names if it is a known one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message
from email.parser import BytesParser

from ..mail import decode_words, formatted, is_address, parse_addresses

HEADER_LIMIT = 2_000
"""Maximum number of characters read of a header; the rest is cut off."""
PART_LIMIT = 50
"""Maximum number of MIME containers in a mail. The parser recurses into them and compares each line with all
boundaries."""
DIFF = re.compile(r"^(?:diff --git |--- [^\s].*\n\+\+\+ )", re.MULTILINE)

CONTAINER = re.compile(r"^content-type:\s*(?:multipart|message)/", re.MULTILINE | re.IGNORECASE)
_SIGNATURE = re.compile(r"^-- ?\r?$", re.MULTILINE)
_CHARSET = re.compile(
    r"utf-?8|iso-8859-\d|iso-8859-1[03-6]|windows-125[0-8]|koi8-[ru]|gbk|gb2312|gb18030|big5|euc-(?:jp|kr)"
    r"|shift_jis|iso-2022-jp"
)
"""Character sets used in mail; Python has others whose decoders take quadratic time."""
_NAMED_CHARSET = re.compile(r"(\bcharset=\"?)[\w.-]+", re.IGNORECASE)
_PATCH_TYPES = ("application/x-patch", "application/x-diff")


@dataclass(frozen=True)
class Text:
    """The text of a mail."""

    body: str = ""
    """Of all its parts that are plain text, or a patch, one below the other."""
    patch: str = ""
    """Of its only part with a diff; empty if there is none, or if there are more."""
    is_readable: bool = True
    """False if the mail has more than PART_LIMIT MIME containers."""
    problem: str = ""
    """Why a patch that the mail seems to have cannot be taken."""


def parse_headers(head: str) -> Message:
    """Parse the lines of a mail's headers. Bytes that are no UTF-8 are kept by `surrogateescape`.

    A carriage return ends no line, as for the programs that have checked the mail.
    """
    return BytesParser().parsebytes(_bytes(head).replace(b"\r", b" "), headersonly=True)


def header(message: Message, name: str, *, last: bool = False) -> str:
    """Return a header in one line, decoded; empty if there is none. `last`: of a long one the end is kept."""
    return " ".join(decoded_header(message, name, last=last).split())


def decoded_header(message: Message, name: str, *, last: bool = False) -> str:
    """Return a header with its encoded words (RFC 2047) decoded; a malformed one stays as it is."""
    raw = next(_values(message, name), "")
    text = raw[-HEADER_LIMIT:] if last else raw[:HEADER_LIMIT]
    return decode_words(text.replace("\n ", " ").replace("\n\t", " "))


def sender(message: Message) -> str:
    """Return From as `Name <user@host>` with the name decoded, so that `address_of` returns the address that was sent.

    A header with several addresses or none is returned undecoded, because decoded words may look like an address.
    """
    text = ", ".join(" ".join(value.split()) for value in _values(message, "From"))
    if len(text) > HEADER_LIMIT:
        return f"(From of {len(text)} characters)"
    if "=?" not in text:
        return text
    found = parse_addresses(text)
    if len(found) != 1 or not is_address(found[0][1]):
        return text
    return formatted(" ".join(decode_words(found[0][0]).split()), found[0][1])


def _values(message: Message, name: str) -> Iterator[str]:
    """Yield the values of a header, as it was sent."""
    for key, value in message.raw_items():
        if key.lower() == name.lower():
            yield str(value).encode("ascii", "surrogateescape").decode("utf-8", "replace")


def in_utf8(text: str) -> str:
    """Return a mail whose bytes are those of the character set that it names, in UTF-8; unchanged if they are not.

    Headers that are UTF-8 stay as they are, whatever the text is. Mails of several parts are not converted.
    """
    head, blank, body = text.partition("\n\n")
    message = parse_headers(head)
    charset = charset_of(message)
    encoded = header(message, "Content-Transfer-Encoding").lower() in ("quoted-printable", "base64")
    if message.get_content_maintype() != "text" or not _CHARSET.fullmatch(charset):
        return text
    try:
        converted = _bytes(body).decode(charset)
        data = _bytes(head)
        head = data.decode("utf-8") if _is_utf8(data) else data.decode(charset)
    except ValueError:
        return text
    return (head if encoded else _NAMED_CHARSET.sub(r"\1utf-8", head, count=1)) + blank + converted


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except ValueError:
        return False
    return True


def read_text(text: str) -> Text:
    """Return the text of a mail, with its headers before it."""
    head, _, rest = text.partition("\n\n")
    message = BytesParser().parsebytes(_bytes(head))
    if message.get_content_maintype() not in ("multipart", "message"):
        # Not by the parser: its list of the mail's lines needs twenty times the memory of the mail.
        payload = "\n\n".join(part for part in (_escaped(_head_payload(message)), _escaped(rest)) if part)
        message.set_payload(payload)
    elif len(CONTAINER.findall(text)) <= PART_LIMIT:
        message = BytesParser().parsebytes(_bytes(text))
    else:
        return Text(is_readable=False)
    parts = list(_parts(message))
    shown = [text for part, text, _ in parts if _is_read(part)]
    found = [(part, text, problem) for part, text, problem in parts if _is_read(part) and DIFF.search(text)]
    patches = [(text, problem) for _, text, problem in found]
    hidden = [part.get_content_type() for part, text, _ in parts if not _is_read(part) and DIFF.search(text)]
    problem = ""
    if hidden and not (patches and hidden[0] == "text/html"):
        problem = f"a diff is in an attachment of type {hidden[0]}; send it as text/plain or text/x-patch"
    elif len(patches) > 1:
        names = ", ".join(_name(part) for part, _, _ in found[:5])
        problem = f"it has {len(found)} parts with a diff ({names}); send each patch as a mail of its own"
    elif patches:
        problem = patches[0][1]
    return Text("\n".join(shown), patches[0][0] if len(patches) == 1 else "", problem=problem)


def _parts(message: Message) -> Iterator[tuple[Message, str, str]]:
    """Yield each part that is no container, with its text and what is wrong with it."""
    for part in message.walk():
        if part.is_multipart():
            continue
        try:
            data = part.get_payload(decode=True)
        except (LookupError, ValueError):
            data = None
        if isinstance(data, bytes):
            yield part, *_decode(data, charset_of(part))


def _name(part: Message) -> str:
    """Return the file name of a part, else its type."""
    try:
        name = part.get_filename()
    except (LookupError, ValueError, TypeError):
        name = None
    return " ".join((name or part.get_content_type())[:80].encode("utf-8", "replace").decode().split())


def _is_read(part: Message) -> bool:
    return (part.get_content_maintype() == "text" and part.get_content_subtype() != "html") or (
        part.get_content_type() in _PATCH_TYPES
    )


def charset_of(part: Message) -> str:
    """Return the character set that a part names, in lower case; empty without one."""
    try:
        return (part.get_content_charset() or "").lower()
    except (LookupError, ValueError):
        return ""


def decode_text(data: bytes, charset: str) -> str:
    """Return the text of a part; a character set whose decoder may take quadratic time is taken for UTF-8."""
    return data.decode(charset if _CHARSET.fullmatch(charset) else "utf-8", "replace")


def _decode(data: bytes, charset: str) -> tuple[str, str]:
    """Return the text of a part, with U+FFFD for each byte that is no text, and what is wrong with it."""
    known = [charset] if _CHARSET.fullmatch(charset) else []
    for name in (*known, "utf-8"):
        try:
            return _with_plain_newlines(data.decode(name)), ""
        except ValueError:
            continue
    # Like git: a message in no known character set is taken for Latin-1, and a diff is left as it is.
    text = data.decode("latin-1")
    diff = DIFF.search(text)
    if diff is None:
        return _with_plain_newlines(data.decode(known[0], "replace") if known else text), ""
    # Bytes that a mail server adds behind the signature of `git format-patch` are no part of the patch.
    end = next((found.end() for found in reversed(list(_SIGNATURE.finditer(text, diff.start())))), len(text))
    message, patch, added = text[: diff.start()], data[diff.start() : end], text[end:]
    try:
        return _with_plain_newlines(message + patch.decode("utf-8") + added), ""
    except ValueError:
        why = f"its diff is not {charset or 'utf-8'}, so it would be altered; send it as UTF-8, or as a branch"
        return _with_plain_newlines(message + patch.decode("utf-8", "replace") + added), why


def _with_plain_newlines(text: str) -> str:
    return text.replace("\r\n", "\n")


def _bytes(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def _escaped(text: str) -> str:
    return _bytes(text).decode("ascii", "surrogateescape")


def _head_payload(message: Message) -> str:
    """Return what follows a malformed line among the headers."""
    try:
        payload = message.get_payload()
    except (LookupError, ValueError):
        return ""
    return payload if isinstance(payload, str) else ""
