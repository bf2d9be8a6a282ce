"""Check by its DKIM signature (RFC 6376) that a mail comes from the domain of its sender."""

from __future__ import annotations

from typing import Protocol

import dkim

from .look_up_key import DNS_TIMEOUT_S, look_up_key
from .read_mail import ReceivedMail

SIGNATURE_LIMIT = 5
"""Maximum number of signatures that are checked; each costs a DNS query."""
MINIMUM_KEY_BITS = 1024
_COVERED = ("from", "date", "in-reply-to")
_UNREADABLE = (dkim.DKIMException, ValueError, IndexError)
"""Exceptions that dkimpy raises for malformed headers and signatures."""


class Unsigned(Exception):
    """No signature shows who sent the mail. The text says why."""


class CannotCheck(Exception):
    """The key cannot be looked up at the moment; the same mail may pass later."""


class Lookup(Protocol):
    """Look up the TXT record of a name; None if there is none."""

    def __call__(self, name: bytes, timeout: int = DNS_TIMEOUT_S) -> bytes | None: ...


def check_signature(data: bytes, mail: ReceivedMail, lookup: Lookup = look_up_key) -> str:
    """Return the domain whose signature covers sender, date, parent and whole text of the mail.

    The domain is that of the sender, or one above it. Raises Unsigned, and CannotCheck if DNS does not answer.
    """
    if mail.ambiguous:
        raise Unsigned(mail.ambiguous)
    domain = mail.sender.rpartition("@")[2]
    if not domain:
        raise Unsigned("the mail has no sender")
    try:
        checker = dkim.DKIM(data, minkey=MINIMUM_KEY_BITS, timeout=DNS_TIMEOUT_S)
    except _UNREADABLE as error:
        raise Unsigned(f"the headers of the mail cannot be read: {str(error)[:200]}") from None
    number = sum(name.lower() == b"dkim-signature" for name, _ in checker.headers)
    if number == 0:
        raise Unsigned("the mail has no DKIM signature")
    reasons = []
    for index in range(min(number, SIGNATURE_LIMIT)):
        signer, reason = _check(checker, index, domain, lookup)
        if reason is None:
            return signer
        reasons.append(reason)
    raise Unsigned("; ".join(dict.fromkeys(reasons)))


def _check(checker: dkim.DKIM, index: int, domain: str, lookup: Lookup) -> tuple[str, str | None]:
    """Return the signing domain, and why the signature does not show the sender; None if it does."""
    unanswered: list[dkim.DnsTimeoutError] = []
    missing_keys: list[str] = []

    def remembering(name: bytes, timeout: int = DNS_TIMEOUT_S) -> bytes | None:
        try:
            found = lookup(name, timeout)
            if not found:
                missing_keys.append(name.decode("ascii", "replace").rstrip("."))
            return found
        except dkim.DnsTimeoutError as error:  # dkimpy takes it for a wrong signature
            unanswered.append(error)
            raise

    try:
        good = checker.verify(index, dnsfunc=remembering)
    except dkim.ValidationError as error:
        return "", f"a DKIM signature does not hold: {str(error).partition(' (')[0]}"
    except _UNREADABLE as error:
        return "", f"a DKIM signature cannot be read: {error}"
    if unanswered:
        raise CannotCheck(f"DNS does not answer for a key of {domain}: {unanswered[0]}")
    signer = bytes(checker.domain).decode("ascii", "replace").lower()
    if missing_keys:
        return signer, f"DNS has no key {missing_keys[0]} of the DKIM signature"
    if not good:
        return signer, f"the DKIM signature of {signer} does not match the mail"
    if domain != signer and not domain.endswith(f".{signer}"):
        return signer, f"the DKIM signature is of {signer}, not of the sender's {domain}"
    if checker.signature_fields[b"a"].endswith(b"sha1"):  # two texts of one hash can be made (RFC 8301)
        return signer, f"the DKIM signature of {signer} is by SHA-1"
    if b"l" in checker.signature_fields:
        return signer, f"the DKIM signature of {signer} covers only a part of the text"
    missing = [name for name in _COVERED if name.encode() not in checker.include_headers]
    return signer, f"the DKIM signature of {signer} does not cover {', '.join(missing)}" if missing else None
