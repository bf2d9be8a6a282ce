"""Mails given to a real SMTP server: greylisting, refusals, a server that hangs, TLS and passwords."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from wqlab_contracts.enums import AttemptOutcome
from wqlab_contracts.mail import OutgoingMail
from wqlab_server.outbox.send_mail import Server, send

from ..support.smtp import PASSWORD, USER, certificate, mail_server

MAIL = OutgoingMail(
    message_id="wqlab-7-0123@lab.example",
    in_reply_to="cover@example.org",
    references=["first@example.org", "cover@example.org"],
    sender="wqlab <wqlab@lab.example>",
    to=["Ada Lovelace <ada@example.org>"],
    cc=["lkml@example.org", "Jürgen <j@example.org>"],
    subject="Re: [PATCH v2 0/3] wq: fewer locks",
    date=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    body="xfs-fsync on tiny: IMPROVEMENT\n.a line with a dot\n" + "figures ±0.5 " * 9 + "\n",
)


def at(port: int, **more: object) -> Server:
    return Server("127.0.0.1", port, **{"tls": "none", **more})  # type: ignore[arg-type]


def test_the_mail_arrives_as_it_was_written() -> None:
    with mail_server() as server:
        result = send(at(server.port), MAIL)
    assert (result.outcome, result.status) == (AttemptOutcome.ACCEPTED, 250)
    (mail,) = server.accepted
    assert server.recipients == [["ada@example.org", "lkml@example.org", "j@example.org"]]
    assert mail["Message-ID"] == "<wqlab-7-0123@lab.example>"
    assert mail["In-Reply-To"] == "<cover@example.org>"
    assert mail["References"] == "<first@example.org> <cover@example.org>"
    assert (mail["From"], mail["To"]) == ("wqlab <wqlab@lab.example>", "Ada Lovelace <ada@example.org>")
    assert mail["Cc"] == "lkml@example.org, Jürgen <j@example.org>"
    assert mail["Auto-Submitted"] == "auto-generated"
    assert mail["Subject"] == MAIL.subject
    assert mail["Date"] == "Fri, 02 Jan 2026 03:04:05 +0000"
    assert mail.get_content().replace("\r\n", "\n") == MAIL.body
    assert mail["Content-Transfer-Encoding"] == "8bit"
    assert "figures ±0.5 figures".encode() in server.raw[0]


@pytest.mark.parametrize("stage", ["rcpt", "data"])
def test_greylisting_is_tried_again_and_a_second_attempt_is_the_same_mail(stage: str) -> None:
    with mail_server() as server:
        getattr(server, stage).append("451 4.7.1 greylisted, try again later")
        first = send(at(server.port), MAIL)
        assert (first.outcome, first.status) == (AttemptOutcome.FAILED, 451)
        assert "greylisted, try again later" in first.problem
        assert server.accepted == []
        assert send(at(server.port), MAIL).outcome is AttemptOutcome.ACCEPTED
    assert [mail["Message-ID"] for mail in server.accepted] == ["<wqlab-7-0123@lab.example>"]


@pytest.mark.parametrize("stage", ["rcpt", "data"])
def test_a_refusal_is_final(stage: str) -> None:
    with mail_server() as server:
        for address in ("ada@example.org", "lkml@example.org", "j@example.org"):
            server.refused[address] = "550 5.1.1 no such user"
        if stage == "data":
            server.refused, server.data = {}, ["554 5.7.1 spam"]
        result = send(at(server.port), MAIL)
    assert result.outcome is AttemptOutcome.REFUSED
    assert ("no such user" if stage == "rcpt" else "spam") in result.problem
    assert server.accepted == []


def test_one_dead_recipient_does_not_stop_the_others() -> None:
    with mail_server() as server:
        server.refused = {"j@example.org": "550 5.1.1 no such user"}
        result = send(at(server.port), MAIL)
    assert result.outcome is AttemptOutcome.ACCEPTED
    assert result.problem == "accepted, but not for j@example.org (550 5.1.1 no such user)"
    assert server.recipients == [["ada@example.org", "lkml@example.org"]]


def test_one_greylisted_recipient_delays_all_until_the_last_attempt() -> None:
    with mail_server() as server:
        server.refused = {"j@example.org": "451 4.7.1 later"}
        assert send(at(server.port), MAIL).outcome is AttemptOutcome.FAILED
        assert server.accepted == []
        assert send(at(server.port), MAIL, last=True).outcome is AttemptOutcome.ACCEPTED
    assert server.recipients == [["ada@example.org", "lkml@example.org"]]


def test_a_server_that_hangs_after_the_mail_may_have_accepted_it() -> None:
    with mail_server() as server:
        server.data = ["hang"]
        result = send(at(server.port), MAIL, step_s=3)
        assert result.outcome is AttemptOutcome.UNKNOWN
        assert "it may have been accepted" in result.problem
        server.released.set()
        assert send(at(server.port), MAIL).outcome is AttemptOutcome.ACCEPTED
    assert len({mail["Message-ID"] for mail in server.accepted}) == 1


def test_a_server_that_is_away(unused_port: int) -> None:
    result = send(at(unused_port), MAIL)
    assert result.outcome is AttemptOutcome.FAILED
    assert "Connection refused" in result.problem


@pytest.mark.parametrize("tls", ["starttls", "tls"])
def test_password_and_mail_go_over_tls_to_a_known_certificate(
    tls: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, key = certificate(tmp_path)
    (password := tmp_path / "password").write_text(f"{PASSWORD}\n")
    with mail_server(tls=(made, key), implicit=tls == "tls", auth=True) as server:
        to = at(server.port, tls=tls, user=USER, password_file=password)
        unknown = send(to, MAIL)
        assert unknown.outcome is AttemptOutcome.FAILED
        assert "certificate verify failed" in unknown.problem
        monkeypatch.setenv("SSL_CERT_FILE", str(made))
        assert send(to, MAIL).outcome is AttemptOutcome.ACCEPTED
        password.write_text("wrong")
        wrong = send(to, MAIL)
        assert wrong.outcome is AttemptOutcome.FAILED
        assert "535" in wrong.problem, wrong
        assert "wrong" not in wrong.problem
        missing = send(at(server.port, tls=tls, user=USER, password_file=tmp_path / "none"), MAIL)
        assert "No such file" in missing.problem
    assert len(server.accepted) == 1


def test_no_password_is_sent_to_a_server_without_tls(tmp_path: Path) -> None:
    (password := tmp_path / "password").write_text(PASSWORD)
    with mail_server() as server:
        result = send(at(server.port, tls="starttls", user=USER, password_file=password), MAIL)
    assert result.outcome is AttemptOutcome.FAILED
    assert "STARTTLS" in result.problem
    assert server.accepted == []
