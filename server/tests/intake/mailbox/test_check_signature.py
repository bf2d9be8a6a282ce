"""DKIM signatures of mails that programs read differently, or cannot read."""

from __future__ import annotations

import dkim
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from wqlab_server.intake.mailbox.check_signature import Unsigned, check_signature
from wqlab_server.intake.mailbox.read_mail import read_mail

HEAD = b"From: Ada <ada@example.org>\r\nDate: Mon, 30 Nov 2026 10:00:00 +0000\r\nIn-Reply-To: <other@lab.example>\r\n"
MAIL = HEAD + b"\r\nthanks\r\n"


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=1024)


@pytest.fixture(scope="module")
def signed(key: rsa.RSAPrivateKey) -> bytes:
    """A mail with a valid signature that somebody has found in an archive."""
    form = serialization.PrivateFormat.TraditionalOpenSSL
    pem = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    found: bytes = dkim.sign(MAIL, b"s", b"example.org", pem, include_headers=[b"from", b"date", b"in-reply-to"])
    return found + MAIL


def check(data: bytes, key: rsa.RSAPrivateKey) -> str:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    public = key.public_key().public_bytes(serialization.Encoding.PEM, form)
    record = b"v=DKIM1; k=rsa; p=" + b"".join(public.splitlines()[1:-1])
    return check_signature(data, read_mail(data), lambda name, timeout=0: record)


def test_signature_of_the_senders_domain_holds(signed: bytes, key: rsa.RSAPrivateKey) -> None:
    assert check(signed, key) == "example.org"


def test_other_mail_in_front_of_a_signed_one_is_refused(signed: bytes, key: rsa.RSAPrivateKey) -> None:
    """dkimpy takes for one header what Python's parser takes for a whole mail."""
    other = HEAD.replace(b"other@", b"answer@").replace(b"\r\n", b"\r") + b"\rwqlab: stop\r"
    forged = b"X-Header: text\r" + other + b"\r\n" + signed
    assert read_mail(forged).commands == ("stop",)
    with pytest.raises(Unsigned, match="the mail has a carriage return that ends no line"):
        check(forged, key)


@pytest.mark.parametrize(
    ("before", "after"),
    [(b"DKIM-Signature:", b" continued\r\nDKIM-Signature:"), (b"\r\n\r\n", b"\r\nno header\r\n\r\n")],
)
def test_malformed_mail_is_unsigned(signed: bytes, key: rsa.RSAPrivateKey, before: bytes, after: bytes) -> None:
    with pytest.raises(Unsigned, match="the headers of the mail cannot be read"):
        check(signed.replace(before, after, 1), key)
