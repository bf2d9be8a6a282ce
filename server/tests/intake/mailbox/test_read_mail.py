"""Mails to the lab that anybody wrote to keep its parser busy, or to end it."""

from __future__ import annotations

import pytest

from wqlab_server.intake.mailbox.read_mail import SIZE_LIMIT, read_mail

HEADER = b"From: ada@example.org\nSubject: x\n"
NESTED = b"".join(b'Content-Type: multipart/mixed; boundary="%d"\n\n--%d\n' % (each, each) for each in range(15_000))


@pytest.mark.parametrize(
    ("mail", "why"),
    [
        pytest.param(b"From: " + b"<" * 1_000_000 + b"\n\nx", "headers of more than", id="address"),
        pytest.param(b"From: " + b"a@b," * 200_000 + b"\n\nx", "headers of more than", id="many addresses"),
        pytest.param(
            HEADER + b"Content-Type: text/plain" + b';a="' * 200_000 + b"\n\nx", "headers of more than", id="parameters"
        ),
        pytest.param(
            HEADER + b"Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: x/y" + b";a*0=x" * 100_000,
            "headers of more than",
            id="parameters of a part",
        ),
        pytest.param(HEADER + NESTED, "parts in parts", id="multipart in multipart"),
        pytest.param(b"Content-Type: message/rfc822\n\n" * 30_000, "parts in parts", id="mail in mail"),
        pytest.param(HEADER + b"\n" + b"x" * SIZE_LIMIT, "at most", id="text"),
    ],
)
def test_a_mail_beyond_the_limits_is_refused(mail: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_mail(mail)


def test_a_mail_with_long_headers_is_read() -> None:
    received = b"".join(b"Received: from host-%d.example.org by mx.example.org\n" % each for each in range(500))
    assert read_mail(received + HEADER + b"\nwqlab: stop\n").commands == ("stop",)


def test_sender_in_groups_of_groups_is_no_address() -> None:
    assert read_mail(b"From: " + b":" * 5_000 + b"\n\nwqlab: stop\n").sender == ""


def test_character_set_that_is_slow_to_decode_is_not_used() -> None:
    """Python's decoder of punycode takes half a minute for a mail of a megabyte."""
    assert read_mail(HEADER + b"Content-Type: text/plain; charset=punycode\n\nwqlab: stop\n").commands == ("stop",)
