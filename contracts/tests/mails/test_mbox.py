"""Parsing of patch mails, including hostile ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wqlab_contracts.mail import address_of
from wqlab_contracts.mails import mbox
from wqlab_contracts.mails.mbox import HEADER_LIMIT

FROM = "From 0123456789abcdef Mon Sep 17 00:00:00 2001\n"
DIFF = "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n"


def mail(subject: str, body: str = DIFF, **headers: str) -> str:
    lines = [f"Subject: {subject}", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    return FROM + "\n".join(lines) + "\n\n" + body


@pytest.mark.parametrize(
    ("subject", "version", "counter", "title", "reply"),
    [
        ("[PATCH] wq: faster", 1, None, "wq: faster", False),
        ("[PATCH v3 02/10] wq: faster", 3, (2, 10), "wq: faster", False),
        ("[RFC][PATCHv2 1/2] wq: faster", 2, None, "wq: faster", False),
        ("Re: [PATCH v2 1/2] wq: faster", 1, None, "Re: [PATCH v2 1/2] wq: faster", True),
        ("AW: [PATCH] wq", 1, None, "AW: [PATCH] wq", True),
        ("sched: [not a prefix] at all", 1, None, "sched: [not a prefix] at all", False),
    ],
)
def test_subject_is_parsed(
    subject: str, version: int, counter: tuple[int, int] | None, title: str, reply: bool
) -> None:
    (read,) = mbox.parse_mails(mail(subject))
    assert (read.version, read.title, read.is_reply) == (version, title, reply)
    assert counter is None or read.counter == counter


def test_usual_encodings_are_decoded() -> None:
    name = "Björn <b@example.org>"
    plain = mail("[PATCH] x", "by Björn\n" + DIFF, From=name)
    quoted = mail(
        "=?utf-8?q?=5BPATCH=5D_x?=", "by Bj=C3=B6rn\n" + DIFF,
        From="=?utf-8?q?Bj=C3=B6rn?= <b@example.org>", Content_Transfer_Encoding="quoted-printable",
        Content_Type="text/plain; charset=utf-8",
    )  # fmt: skip
    latin = mail(
        "[PATCH] x", "by Bj=F6rn\n" + DIFF, From="=?iso-8859-1?q?Bj=F6rn?= <b@example.org>",
        Content_Transfer_Encoding="quoted-printable", Content_Type="text/plain; charset=iso-8859-1",
    )  # fmt: skip
    for text in (plain, quoted, latin):
        (read,) = mbox.parse_mails(text)
        assert read.author == name
        assert read.subject == "[PATCH] x"
        assert read.body.startswith("by Björn\n")
        assert read.has_patch


def test_patch_in_an_attachment_is_found() -> None:
    body = f"--B\nContent-Type: text/plain\n\nsee there\n--B\nContent-Type: text/x-patch\n\n{DIFF}\n--B--\n"
    (read,) = mbox.parse_mails(mail("[PATCH] x", body, Content_Type='multipart/mixed; boundary="B"'))
    assert read.has_patch
    assert "see there" in read.body


def test_mail_with_too_many_mime_containers_has_no_body() -> None:
    nested = "".join(f"Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n" for n in range(5_000))
    (read,) = mbox.parse_mails(FROM + "Subject: [PATCH] x\n" + nested + DIFF)
    assert not read.readable
    assert not read.has_patch
    forwarded = "".join("Content-Type: message/rfc822\n\n" for _ in range(5_000))
    assert not mbox.parse_mails(FROM + forwarded)[0].readable


@pytest.mark.parametrize(
    "hostile",
    [
        "Subject: " + "[" * 3_000_000,
        "Subject: " + "[1/1" * 700_000,
        "Subject: " + "=?utf-8?q?" * 300_000,
        "Subject: x\nContent-Type: text/plain; charset=punycode\nContent-Transfer-Encoding: base64\n\n"
        + "YWFh" * 500_000,
        "From " + "a " * 1_500_000,
        "From: " + "\n " * 1_500_000,
        "content-type:" + " " * 3_000_000,
        "\n" * 3_000_000,
    ],
)
def test_hostile_mail_is_parsed_in_linear_time(hostile: str) -> None:
    """A pattern that takes more than linear time would need hours for these three million characters."""
    for read in mbox.parse_mails(FROM + hostile):
        assert len(read.subject) <= mbox.HEADER_LIMIT
        _ = (read.version, read.counter, read.title, read.is_reply, read.has_patch)
    mbox.parse_first_headers(FROM + hostile)


@given(st.text(max_size=300))
def test_any_text_is_parsed_without_errors(text: str) -> None:
    for read in mbox.parse_mails(FROM + text):
        assert isinstance(read.has_patch, bool)
    first = mbox.parse_first_headers(text)
    assert first is None or first.body == ""


@pytest.mark.parametrize(
    ("sent", "author", "address"),
    [
        ("=?utf-8?q?Doe=2C_J=C3=B6?= <jo@k.example>", '"Doe, J\xf6" <jo@k.example>', "jo@k.example"),
        ("=?utf-8?q?Ada_=3Cada=40k.example=3E=2C?= <eve@evil.example>", None, "eve@evil.example"),
        ("=?utf-8?q?ada=40k.example_=28?= <eve@evil.example> (=?utf-8?q?=29?=)", None, "eve@evil.example"),
        ("=?utf-8?q?ada=40k.example?=", "=?utf-8?q?ada=40k.example?=", ""),
        ("=?utf-8?q?=28?= <eve@evil.example> =?utf-8?q?=29_ada=40k.example?=", None, ""),
        ("Ada <ada@k.example>\nFrom: Eve <eve@evil.example>", "Ada <ada@k.example>, Eve <eve@evil.example>", ""),
        ("Eve <eve@evil.example>\rX: y\rFrom: Ada <ada@k.example>", None, ""),
        (f"ada@k.example ({'x' * HEADER_LIMIT}) <eve@evil.example>", "(From of 2035 characters)", ""),
        (":" * 1_900, None, ""),
    ],
)
def test_author_has_the_address_that_was_sent(sent: str, author: str | None, address: str) -> None:
    """Archives check the address that was sent; a name could be decoded to another one."""
    (mail,) = mbox.parse_mails(f"From: {sent}\nSubject: [PATCH] wq\n\n{DIFF}")
    assert mail.subject == "[PATCH] wq"
    assert address_of(mail.author) == address
    assert author is None or mail.author == author


def test_carriage_return_begins_no_header() -> None:
    (mail,) = mbox.parse_mails("X: y\rFrom: Ada <ada@k.example>\r\rtext\nFrom: Eve <eve@evil.example>\n\nbody")
    assert mail.author == "Eve <eve@evil.example>"


def test_missing_patches_are_listed() -> None:
    mails = mbox.parse_mails(mail("[PATCH 1/4] a") + mail("[PATCH 4/4] d"))
    assert mbox.missing(mails) == ["2/4", "3/4"]
    assert mbox.missing(mbox.parse_mails(mail("[PATCH] a"))) == []


def test_first_headers_are_parsed_without_the_rest() -> None:
    first = mbox.parse_first_headers(
        "\n" + mail("[PATCH v2 0/2] wq:\n more", "text", From="A <a@example.org>") + mail("[PATCH] b")
    )
    assert first is not None
    assert (first.subject, first.author, first.version) == ("[PATCH v2 0/2] wq: more", "A <a@example.org>", 2)
    assert mbox.parse_first_headers("no mail at all") is None


@pytest.mark.parametrize("header", ["Subject", "From", "Date", "Message-ID", "In-Reply-To"])
@pytest.mark.parametrize("value", ["a\x01b", "a\x1b[2Jb", "=?utf-8?q?a=02b?=", "=?utf-8?q?a=0Ab?=", "=?utf-8?b?4oCu?="])
def test_control_character_in_a_header_is_named(header: str, value: str) -> None:
    text = mail("[PATCH 1/2] a") + FROM + f"{header}: {value}\n\n{DIFF}"
    problem = mbox.header_problem(text)
    assert problem is not None
    assert f"the {header} of message 2 has the control character U+" in problem


@pytest.mark.parametrize("body", [DIFF, "a form feed \x0c in a file\n" + DIFF])
def test_usual_headers_have_no_problem(body: str) -> None:
    text = mail("[PATCH v2 0/2] wq:\n more\n\tand more", body, From="=?utf-8?q?Bj=C3=B6rn?= <b@example.org>")
    assert mbox.header_problem(text) is None
    assert mbox.header_problem("no mail at all") is None


def test_mbox_of_many_mails_is_refused_before_they_are_parsed() -> None:
    assert mbox.header_problem((FROM + "Subject: x\n\n") * mbox.MAIL_LIMIT) is None
    problem = mbox.header_problem((FROM + "Subject: x\n\n") * (mbox.MAIL_LIMIT + 1))
    assert problem is not None
    assert "2001 mails; at most 2000" in problem


@pytest.mark.parametrize(("added", "problem"), [("--\n2.43.2\n\n=B1=BE\n", ""), ("=B1=BE\n--\n2.43.2\n", "altered")])
def test_bytes_that_are_not_utf8_are_accepted_only_behind_the_signature(added: str, problem: str) -> None:
    encoded = mail("[PATCH] x", DIFF + added, Content_Transfer_Encoding="quoted-printable", Content_Type="text/plain")
    (read,) = mbox.parse_mails(encoded)
    assert (problem in read.problem) if problem else not read.problem


def test_reply_that_is_no_utf8_is_replaced_and_a_patch_is_refused() -> None:
    patch = mail("[PATCH] x", Message_ID="<1@x>")
    reply = mail("Re: [PATCH] x", "caf\u00e9\n", Message_ID="<2@x>")
    assert "caf\N{REPLACEMENT CHARACTER}" in mbox.decode((patch + reply).encode("latin-1"))
    with pytest.raises(ValueError, match="patch 'x' is not UTF-8"):
        mbox.decode(mail("[PATCH] x", DIFF.replace("+b", "+\u00e9")).encode("latin-1"))
    with pytest.raises(ValueError, match=r"it is not UTF-8 \(byte 3\)"):
        mbox.decode(b"caf\xe9")


@pytest.mark.parametrize("charset", ["iso-8859-1", "gb18030", "koi8-r"])
def test_mails_in_the_character_set_that_they_name_become_utf8(charset: str) -> None:
    word = {"iso-8859-1": "Koutn\u00fd", "gb18030": "\u90ed\u8d85", "koi8-r": "\u0418\u0432\u0430\u043d"}[charset]
    headers = {"Cc": f"{word} <c@x>", "Content-Type": f"text/plain; charset={charset}"}
    written = "".join(
        f"{name.replace('_', '-')}: {value}\n"
        for name, value in {"From": "a@b", "Subject": "[PATCH] x", "Message-ID": "<1@x>", **headers}.items()
    )
    text = f"{FROM}{written}\n{word}\n---\n{DIFF}"
    (read,) = mbox.parse_mails(mbox.decode(text.encode(charset)))
    assert read.is_patch and word in read.patch and not read.problem
    (other,) = mbox.parse_mails(mbox.decode(text.encode()))
    assert other.is_patch, "a wrong name of the character set is no reason to refuse UTF-8"


def test_encoded_text_stays_in_its_character_set() -> None:
    head = f"{FROM}From: a@b\nSubject: [PATCH] x\nCc: \u00fd <c@x>\nContent-Type: text/plain; charset=iso-8859-1\n"
    encoded = f"{head}Content-Transfer-Encoding: quoted-printable\n\ncaf=E9\n---\n{DIFF}"
    (read,) = mbox.parse_mails(mbox.decode(encoded.encode("latin-1")))
    assert "caf\u00e9" in read.patch


@pytest.mark.parametrize(
    "separator",
    [
        "From a@example.org Tue Feb 6 11:00:01 2018",
        "From a@example.org Mon Feb 12 8:54:21 2018",
        "From a at example.org  Thu Jul  6 12:43:19 2017",
        "From bounces+x=y@example.org Mon Feb 12 10:54:21 +0100 2018",
        "From a@example.org Mon Feb 12 10:54 2018",
    ],
)
def test_separators_of_archives_are_read(separator: str) -> None:
    text = "".join(mail(f"[PATCH {number}/2] x") for number in (1, 2)).replace(FROM, f"{separator}\n")
    assert [read.counter for read in mbox.parse_mails(text)] == [(1, 2), (2, 2)]


def test_line_of_a_commit_in_a_text_separates_no_mails() -> None:
    commit = f"From {'a' * 40} Mon Sep 17 00:00:00 2001\nFrom: B <b@x.org>\nSubject: [PATCH] inner\n\n"
    for begin in ("", FROM):
        (read,) = mbox.parse_mails(f"{begin}From: A <a@x.org>\nSubject: [PATCH] outer\n\n{commit}why\n---\n{DIFF}")
        assert (read.title, read.patch_author) == ("inner", "B <b@x.org>")
    raw_first = f"From: A <a@x.org>\nSubject: [PATCH 1/2] a\n\n{DIFF}\n{commit}{DIFF}"
    assert [read.title for read in mbox.parse_mails(raw_first)] == ["a", "inner"]


@pytest.mark.parametrize(
    "hostile",
    [
        b"Subject: x\nContent-Type: text/plain; charset=utf-8\nno header\xc3\xa9\n\n\xff\n",
        b'Subject: x\nContent-Type: text/plain; charset="\0"\nno header\xff\n\n\xff\n',
        b"Subject: =?gb18030?b?1tA=?=\xff\xe4\nFrom: =?\0?q?x?=\n\n\xff\n",
        b"Subject: =?utf-8?b?a?= =?x?q?zz?=\n\nx\n",
        b"Subject: x\nContent-Type: multipart/mixed\n\n\xff\xe4\n",
        b"Subject: x\nContent-Type: text/plain; charset*=utf-8''x%ff\nContent-Transfer-Encoding: base64\n\n\xff\n",
    ],
)
def test_bytes_that_are_no_text_raise_nothing(hostile: bytes) -> None:
    text = FROM + hostile.decode("utf-8", "surrogateescape")
    (read,) = mbox.parse_mails(text)
    assert not read.has_patch
    read.body.encode()
    read.subject.encode()
    mbox.header_problem(text)
