"""Source mails, answers to them, and their bytes."""

from __future__ import annotations

from datetime import UTC, datetime
from email import message_from_bytes
from email.policy import default

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wqlab_contracts import mail
from wqlab_contracts.mail import OutgoingMail, ReplyTo
from wqlab_contracts.messages.source_mail import SourceMail

MBOX = """\
From 0123 Mon Sep 17 00:00:00 2001
From: =?utf-8?q?Ada_L=C3=B6velace?= <ada@example.org>
To: Linux Kernel <lkml@example.org>,
 Tejun <tj@example.org>
Cc: ada@example.org, "Doe, Jane" <jane@example.org>, TJ@example.org, wqlab@lab.example, undisclosed:;
Subject: [PATCH v2 0/3] wq: take
 fewer locks
Message-ID: <cover.1@example.org>
In-Reply-To: <v1@example.org>
References: <v0@example.org>
\t<v1@example.org>

The body has Cc: nobody@example.org
From 4567 Mon Sep 17 00:00:00 2001
From: other@example.org
Message-ID: <one@example.org>

"""


def source(**changes: object) -> SourceMail:
    found = mail.source_of(MBOX)
    assert found is not None
    return found.model_copy(update=changes)


def test_headers_of_the_cover_letter() -> None:
    assert source() == SourceMail(
        message_id="cover.1@example.org",
        references=["v0@example.org", "v1@example.org"],
        sender="Ada Lövelace <ada@example.org>",
        to=["Linux Kernel <lkml@example.org>", "Tejun <tj@example.org>"],
        cc=["ada@example.org", '"Doe, Jane" <jane@example.org>', "TJ@example.org", "wqlab@lab.example"],
        subject="[PATCH v2 0/3] wq: take fewer locks",
    )
    assert not source().verified


def test_reply_to_is_answered_instead_of_from() -> None:
    found = mail.source_of(MBOX.replace("Subject:", "Reply-To: list@example.org\nSubject:"))
    assert found is not None
    assert found.sender == "list@example.org"


@pytest.mark.parametrize(
    ("headers", "sender", "checked"),
    [
        ("From: Ada <ada@example.org>", "Ada <ada@example.org>", True),
        ("From: Ada <ada@example.org>\nReply-To: ADA@example.org", "ADA@example.org", True),
        # A check of senders is one of From; whoever sends a mail writes any Reply-To.
        ("From: Ada <ada@example.org>\nReply-To: tj@example.org", "tj@example.org", False),
        ("From: Ada <ada@example.org>\nFrom: eve@evil.example", "Ada <ada@example.org>", False),
        ("From: =?utf-8?q?ada=40example.org=2C?= <eve@evil.example>", '"ada@example.org," <eve@evil.example>', True),
        ("X: y\rFrom: Ada <ada@example.org>\r\r\nFrom: eve@evil.example", "eve@evil.example", True),
    ],
)
def test_sender_is_checked_if_from_is_answered(headers: str, sender: str, checked: bool) -> None:
    found = mail.source_of(f"{headers}\nMessage-ID: <a@b>\n\ntext")
    assert found is not None
    assert (found.sender, found.sender_checked) == (sender, checked)


@pytest.mark.parametrize("left_out", ["From:", "Message-ID:"])
def test_without_author_or_id_there_is_nothing_to_answer(left_out: str) -> None:
    first = MBOX.partition("\nFrom 4567")[0]
    assert mail.source_of(first.replace(left_out, "X-Removed:")) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no headers",
        "From: \x00\n\n",
        "From: " + ":" * 2_000 + "\nMessage-ID: <a@b>",
        "Subject: =?x?q?=ff?=\nFrom: a@b\nMessage-ID: <a@b>",
    ],
)
def test_odd_texts_do_not_raise(text: str) -> None:
    mail.source_of(text)


def test_answer_to_all_and_to_the_author_only() -> None:
    assert mail.answer_to(source(), ReplyTo.ALL, "wqlab <wqlab@lab.example>") == (
        ["Ada Lövelace <ada@example.org>"],
        ["Linux Kernel <lkml@example.org>", "Tejun <tj@example.org>", '"Doe, Jane" <jane@example.org>'],
    )
    assert mail.answer_to(source(), ReplyTo.AUTHOR, "x@y") == (["Ada Lövelace <ada@example.org>"], [])


def test_subject_of_an_answer_has_one_re() -> None:
    assert mail.reply_subject("Re: RE: [PATCH] x") == "Re: [PATCH] x"
    assert mail.reply_subject("[PATCH] x") == "Re: [PATCH] x"


def outgoing(**changes: object) -> OutgoingMail:
    return OutgoingMail(
        message_id="m@lab.example", in_reply_to="cover@example.org", references=["cover@example.org"],
        sender="wqlab <wqlab@lab.example>", to=["ada@example.org"], cc=[], subject="Re: x",
        date=datetime(2026, 1, 1, tzinfo=UTC), body="verdict\n",
    ).model_copy(update=changes)  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"to": ["nobody"]}, "to/0"),
        ({"to": ["a@b", "a@b\r\nBcc: all@example.org"]}, "to/1"),
        ({"cc": ["a b@c"]}, "cc/0"),
        ({"subject": "x\r\nBcc: all@example.org"}, "subject"),
        ({"body": "x\n\x1b[2J\n"}, "body"),
        ({"body": "fine\nTested-by: wqlab <wqlab@lab.example>\n"}, "body"),
        ({"body": "REPORTED-AND-TESTED-BY: x\n"}, "body"),
    ],
)
def test_mails_that_cannot_be_sent(changes: dict[str, object], field: str) -> None:
    assert [where for where, _ in mail.problems(outgoing(**changes))] == [field]


def test_a_good_mail_has_no_problems() -> None:
    assert mail.problems(outgoing(body="a\tb ±\n  Tested-by in a sentence\n", cc=["Jürgen <j@example.org>"])) == []


@given(st.text(max_size=200), st.text(max_size=60), st.lists(st.text(max_size=60), max_size=3))
def test_no_text_becomes_a_header(subject: str, name: str, to: list[str]) -> None:
    """Headers of a source mail are chosen by a stranger."""
    try:
        made = mail.to_bytes(
            outgoing(
                subject=" ".join(subject.split()),
                to=mail.addresses([f"{name} <a@example.org>", *to]) or ["a@b.example"],
                body="text\n",
            )
        )
    except (ValueError, IndexError, AttributeError):
        return
    parsed = message_from_bytes(made, policy=default)
    assert set(parsed.keys()) <= {
        "From", "To", "Cc", "Subject", "Date", "Message-ID", "In-Reply-To", "References", "Auto-Submitted",
        "X-Auto-Response-Suppress", "Content-Type", "Content-Transfer-Encoding", "MIME-Version",
    }  # fmt: skip


def test_long_lines_are_not_folded_and_other_characters_are_sent_as_they_are() -> None:
    line = "| " + "x" * 300 + " ±"
    assert line.encode() in mail.to_bytes(outgoing(body=f"{line}\n"))
    assert line.encode() not in mail.to_bytes(outgoing(body=f"{line}\n"), seven_bit=True)
    assert mail.to_bytes(outgoing(body=f"{line}\n"), seven_bit=True).isascii()


def test_trailers_are_quoted() -> None:
    assert mail.without_trailers("Tested-by: a <a@b>") == "| Tested-by: a <a@b>"
    assert mail.without_trailers("  reviewed-BY: a") == "|   reviewed-BY: a"
    assert mail.without_trailers("xfs-fsync on tiny: IMPROVEMENT") == "xfs-fsync on tiny: IMPROVEMENT"


def test_one_click_unsubscribing_needs_https() -> None:
    """RFC 8058: the POST is only for an https URL."""
    url = "https://lab.example/api/v1/unsubscribe/7-" + "0" * 64
    made = message_from_bytes(mail.to_bytes(outgoing(), unsubscribe=url), policy=default)
    assert made["List-Unsubscribe"] == f"<{url}>"
    assert made["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert f"List-Unsubscribe: <{url}>\r\n".encode() in mail.to_bytes(outgoing(), unsubscribe=url)
    plain = message_from_bytes(mail.to_bytes(outgoing(), unsubscribe="http://lab/u"), policy=default)
    assert (plain["List-Unsubscribe"], plain["List-Unsubscribe-Post"]) == ("<http://lab/u>", None)
    assert message_from_bytes(mail.to_bytes(outgoing()), policy=default)["List-Unsubscribe"] is None


@pytest.mark.parametrize(
    ("author", "expected"),
    [
        ("Ada Lovelace <ada@example.org>", ["Ada Lovelace <ada@example.org>"]),
        ("ada@example.org <ada@example.org>", ['"ada@example.org" <ada@example.org>']),
        ("Lovelace, Ada (wq) <ada@example.org>", ['"Lovelace, Ada (wq)" <ada@example.org>']),
        ("<ada@example.org>", ["ada@example.org"]),
        ("ada@example.org", ["ada@example.org"]),
        ("Ada <ada at example>", []),
        ("Ada", []),
        ("", []),
    ],
)
def test_author_of_a_commit_has_an_address_whatever_the_name(author: str, expected: list[str]) -> None:
    found = mail.of_commit(author)
    assert found == expected
    assert [mail.address_of(each) for each in found] == ["ada@example.org"] * len(found)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see http://127.0.0.1:8750/r/2", "http://127.0.0.1 is"),
        ("http://localhost", "http://localhost is"),
        ("<https://LOCALHOST/r/2>", "https://LOCALHOST is"),
        ("http://[::1]:8750/", "http://[::1] is"),
        ("http://0.0.0.0:8750/", "http://0.0.0.0 is"),
        ("a commit of git://127.0.0.1/linux.git", "git://127.0.0.1 is"),
        ("https://lab.example.org/r/2", ""),
        ("https://localhost.example.org/", ""),
        ("netperf -H 127.0.0.1", ""),
    ],
)
def test_addresses_that_no_reader_can_open(text: str, found: str) -> None:
    reason = mail.unreachable(text)
    assert reason.startswith(found)
    assert bool(reason) is bool(found)


def test_long_word_is_searched_in_linear_time() -> None:
    assert mail.unreachable(f"{'a' * 500_000} http://localhost").startswith("http://localhost is")
