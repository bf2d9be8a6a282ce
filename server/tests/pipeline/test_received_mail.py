"""Mails to the lab: commands in replies, signed with real DKIM keys, and bounces."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from functools import lru_cache, partial

import dkim
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from sqlalchemy import select

from wqlab_contracts.enums import Arm, AuditAction, CommandState, DeliveryState, SubmissionState
from wqlab_contracts.messages import MboxSeries, Series
from wqlab_server.intake.mailbox.check_signature import CannotCheck, Lookup, check_signature
from wqlab_server.intake.mailbox.look_up_key import look_up_key
from wqlab_server.intake.mailbox.read_mail import SIZE_LIMIT
from wqlab_server.models import AuditEntry, Delivery, MailBounce, ReceivedCommand, Submission
from wqlab_server.pipeline.received_mail import receive

from ..support.lab import LabUnderTest
from ..support.name_server import name_server

pytestmark = pytest.mark.integration
MBOX = """\
From 0123 Mon Sep 17 00:00:00 2001
From: Ada Lovelace <ada@example.org>
To: lkml@lists.example
Subject: [PATCH v2] wq: take fewer locks
Message-ID: <patch@example.org>

diff --git a/kernel/workqueue.c b/kernel/workqueue.c
--- a/kernel/workqueue.c
+++ b/kernel/workqueue.c
"""
COVERED = (b"from", b"to", b"subject", b"date", b"in-reply-to")


@lru_cache
def key() -> tuple[bytes, bytes]:
    """Return a private key (PEM) and the TXT record of its public key."""
    private = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    pem = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    public = private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return pem, b"v=DKIM1; k=rsa; p=" + b"".join(public.splitlines()[1:-1])


def lookup(name: bytes, timeout: int = 0) -> bytes | None:
    """Answer like the DNS of example.org and evil.example; slow.example does not answer."""
    if name.rstrip(b".").endswith(b"slow.example"):
        raise dkim.DnsTimeoutError("no answer in time")
    return key()[1] if name.startswith(b"s._domainkey.") else None


@pytest.fixture
def lab(lab: LabUnderTest) -> LabUnderTest:
    lab.mark_all_good()
    changes = {"smtp_host": "127.0.0.1", "smtp_tls": "none", "mail_from": "wqlab <wqlab@lab.example>"}
    lab.settings = lab.settings.model_copy(update=changes)
    lab.worker.value = lambda arm, *_: 33.0 if arm is Arm.BASELINE else 5.0
    return lab


@pytest.fixture
def mail(lab: LabUnderTest) -> Delivery:
    """The lab's mail about a measured series."""
    lab.finished(lab.submit("locks@single", series=Series(mbox=MboxSeries(text=MBOX)), force=True))
    with lab.transaction() as session:
        return session.scalars(select(Delivery).where(Delivery.kind == "mail")).one()


def reply(
    parent: str,
    text: str,
    *,
    sender: str = "Ada Lovelace <ada@example.org>",
    age: timedelta = timedelta(),
    covered: tuple[bytes, ...] = COVERED,
    signer: str = "example.org",
    whole: bool = True,
    algorithm: bytes = b"rsa-sha256",
) -> bytes:
    message = EmailMessage()
    message["From"] = sender
    message["To"] = "wqlab@lab.example"
    message["Subject"] = "Re: [PATCH v2] wq: take fewer locks"
    message["Date"] = datetime.now(UTC) - age
    message["In-Reply-To"] = f"<{parent}>"
    message.set_content(text)
    data = message.as_bytes()
    signature = dkim.sign(
        *(data, b"s", signer.encode(), key()[0]),
        include_headers=list(covered),
        length=not whole,
        signature_algorithm=algorithm,
    )
    return bytes(signature) + data


def received(lab: LabUnderTest, data: bytes, lookup: Lookup = lookup) -> str:
    return receive(lab.sessions, lab.settings, data, partial(check_signature, lookup=lookup))


def commands(lab: LabUnderTest) -> list[ReceivedCommand]:
    with lab.transaction() as session:
        return list(session.scalars(select(ReceivedCommand).order_by(ReceivedCommand.id)))


def submissions(lab: LabUnderTest) -> list[Submission]:
    with lab.transaction() as session:
        return list(session.scalars(select(Submission).order_by(Submission.id)))


def test_stop_cancels_and_ends_the_mails_of_the_revision_once(lab: LabUnderTest, mail: Delivery) -> None:
    lab.post("submissions/1/retry")
    data = reply(mail.message_id, "> text of the lab\n\nWQLAB:  Stop.\n\n-- \nAda\n")
    assert received(lab, data) == "done: submission 2 is canceled; no more mails about this revision"
    assert received(lab, data) == "ignored: this mail was received before"
    with lab.transaction() as session:
        entry = session.scalars(select(AuditEntry).order_by(AuditEntry.id.desc())).first()
        assert entry is not None
        assert (entry.action, entry.actor, entry.resource) == (
            AuditAction.CANCEL_SUBMISSION, "mail:ada@example.org", "submission/2",
        )  # fmt: skip
    lab.finished(2)
    lab.worker.value = lambda arm, *_: 33.0 if arm is Arm.BASELINE else 99.0
    lab.finished(lab.submit("locks@single", series=Series(mbox=MboxSeries(text=MBOX)), force=True))
    with lab.transaction() as session:
        (only,) = session.scalars(select(Delivery).where(Delivery.kind == "mail"))
        assert (only.state, only.reason) == (
            DeliveryState.DROPPED,
            "dropped by the lab: somebody replied `wqlab: stop`",
        )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"sender": "eve@evil.example", "signer": "evil.example"}, "eve@evil.example is neither the author"),
        ({"signer": "evil.example"}, "the DKIM signature is of evil.example, not of the sender's example.org"),
        ({"algorithm": b"rsa-sha1"}, "the DKIM signature of example.org is by SHA-1"),
        ({"covered": (b"from", b"date")}, "the DKIM signature of example.org does not cover in-reply-to"),
        ({"whole": False}, "the DKIM signature of example.org covers only a part of the text"),
        ({"age": timedelta(days=8)}, "the mail is dated"),
        ({"text": "wqlab: dance\n"}, "'dance' is no command; the lab knows only `wqlab: stop`"),
        ({"text": "wqlab: retry\nwqlab: stop\n"}, "'retry; stop' is no command"),
    ],
)
def test_what_is_refused_changes_nothing_and_says_why(
    lab: LabUnderTest, mail: Delivery, change: dict[str, object], reason: str
) -> None:
    options = {"text": "wqlab: stop\n", **change}
    said = received(lab, reply(mail.message_id, **options))  # type: ignore[arg-type]
    assert said.startswith(f"refused: {reason}"), said
    (row,) = commands(lab)
    assert (row.state, row.submission_id, row.delivery_id) == (CommandState.REFUSED, None, mail.id)
    assert [each.state for each in submissions(lab)] == [SubmissionState.FINISHED]


def test_a_changed_and_an_unsigned_mail_are_refused(lab: LabUnderTest, mail: Delivery) -> None:
    data = reply(mail.message_id, "wqlab: what\n")
    changed = data.replace(b"wqlab: what", b"wqlab: stop")
    assert received(lab, changed) == "refused: a DKIM signature does not hold: body hash mismatch"
    assert "no DKIM signature" in received(lab, data[data.index(b"From:") :])
    twice = b"From: eve@evil.example\n" + reply(mail.message_id, "wqlab: stop\n", age=timedelta(hours=1))
    assert "two headers From" in received(lab, twice)
    assert len(submissions(lab)) == 1


def test_a_named_person_may_command_too(lab: LabUnderTest, mail: Delivery) -> None:
    lab.settings = lab.settings.model_copy(update={"mail_commanders": "tj@example.org, x@example.org"})
    assert received(lab, reply(mail.message_id, "wqlab: stop\n", sender="TJ@example.org")).startswith("done")
    assert [row.state for row in commands(lab)] == [CommandState.DONE]


def test_a_silent_dns_asks_for_the_mail_again(lab: LabUnderTest, mail: Delivery) -> None:
    data = reply(mail.message_id, "wqlab: stop\n", sender="ada@slow.example", signer="slow.example")
    with pytest.raises(CannotCheck, match=r"DNS does not answer for a key of slow.example"):
        received(lab, data)
    assert commands(lab) == []


def test_keys_are_read_from_a_real_name_server(lab: LabUnderTest, mail: Delivery) -> None:
    """A key is longer than one string of a TXT record, and may be an alias."""
    with name_server(
        {"s._domainkey.example.org": key()[1]}, {"s._domainkey.list.example": "s._domainkey.example.org"}
    ) as resolver:
        lookup = partial(look_up_key, resolver=resolver)
        done = received(lab, reply(mail.message_id, "wqlab: stop\n"), lookup)
        assert done == "done: no more mails about this revision"
        other = reply(mail.message_id, "wqlab: stop\n", sender="ada@list.example", signer="list.example")
        assert received(lab, other, lookup).startswith("refused: ada@list.example is neither"), "its signature holds"
        unknown = reply(mail.message_id, "wqlab: stop\n", signer="nokey.example.org")
        assert "DNS has no key s._domainkey.nokey.example.org of the DKIM signature" in received(lab, unknown, lookup)
        refused = reply(mail.message_id, "wqlab: stop\n", sender="ada@elsewhere.test", signer="elsewhere.test")
        with pytest.raises(CannotCheck, match=r"DNS does not answer for a key of elsewhere\.test: .*REFUSED"):
            received(lab, refused, lookup)
    with pytest.raises(CannotCheck, match=r"DNS does not answer for a key of example\.org"):
        received(lab, reply(mail.message_id, "wqlab: stop\n"), partial(look_up_key, resolver=resolver))


@pytest.mark.parametrize(
    "text",
    ["thanks\n", "> wqlab: stop\n", "-- \nwqlab: stop\n", "On Monday you wrote wqlab: stop\n"],
)
def test_quotes_and_signatures_are_no_commands(lab: LabUnderTest, mail: Delivery, text: str) -> None:
    assert received(lab, reply(mail.message_id, text)) == "ignored: neither a bounce nor a command"


def test_a_reply_to_somebody_else_is_ignored(lab: LabUnderTest, mail: Delivery) -> None:
    assert received(lab, reply("patch@example.org", "wqlab: stop\n")) == "ignored: not a reply to a mail of this lab"


def test_an_automatic_reply_is_ignored(lab: LabUnderTest, mail: Delivery) -> None:
    data = b"Auto-Submitted: auto-replied\n" + reply(mail.message_id, "wqlab: stop\n")
    assert received(lab, data) == "ignored: neither a bounce nor a command"


def test_refused_commands_do_not_fill_the_database(lab: LabUnderTest, mail: Delivery) -> None:
    for number in range(60):
        said = received(lab, reply(mail.message_id, f"wqlab: dance {number}\n"))
    assert said == "ignored: too many commands about this mail were refused"
    assert len(commands(lab)) == 50
    assert received(lab, reply(mail.message_id, "wqlab: stop\n")).startswith("done"), "the author's command counts"


def test_a_large_mail_is_refused(lab: LabUnderTest) -> None:
    with pytest.raises(ValueError, match="at most"):
        received(lab, b"x" * (SIZE_LIMIT + 1))


BOUNCE = """\
From: MAILER-DAEMON@mx.example
To: wqlab@lab.example
Subject: Undelivered Mail Returned to Sender
Auto-Submitted: auto-replied
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary="b"

--b
Content-Type: text/plain

wqlab: stop

--b
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.example

Final-Recipient: rfc822; ADA@example.org
Action: failed
Status: 5.1.1
Diagnostic-Code: smtp; 550 5.1.1 unknown user

Final-Recipient: rfc822; stranger@example.org
Action: failed
Status: 5.0.0

--b
Content-Type: message/rfc822

Message-ID: <{id}>
Subject: Re: x

text
--b--
"""


def test_a_bounce_is_shown_beside_the_mail(lab: LabUnderTest, mail: Delivery) -> None:
    data = BOUNCE.format(id=mail.message_id).encode()
    assert received(lab, data) == "bounces recorded: 1"
    assert received(lab, data) == "bounces recorded: 0"
    with lab.transaction() as session:
        row = session.scalars(select(MailBounce)).one()
        assert (row.recipient, row.action, row.status) == ("ada@example.org", "failed", "5.1.1")
        assert row.text == "550 5.1.1 unknown user"
    assert received(lab, data.replace(mail.message_id.encode(), b"x@y")) == "bounces recorded: 0"
    assert commands(lab) == []
