"""Mails and other deliveries of a test, and what the outbox does with them."""

from __future__ import annotations

from datetime import UTC, datetime

from wqlab_contracts.enums import AttemptOutcome
from wqlab_contracts.mail import OutgoingMail
from wqlab_server.outbox import deliveries, mails, send
from wqlab_server.settings import Settings
from wqlab_server.storage.db import SessionFactory, clock, transaction

from ..conftest import ROOT

LETTER = (ROOT / "docs/example-letter-count.txt").read_text().split("\n\n", 2)[2]
"""The text of the example, without its note and headers."""
SUBJECT = "Re: [PATCH v2 0/3] workqueue: flush with fewer locks"


def write_mail(sessions: SessionFactory, submission: int, subject: str = SUBJECT, key: str = "k") -> int:
    with transaction(sessions) as session:
        mail = OutgoingMail(
            message_id=f"wqlab-{key}@lab.test", in_reply_to="20260101.p0@kernel.example",
            references=["20260101.p0@kernel.example"], sender="wqlab <wqlab@lab.test>",
            to=["Ada Lovelace <ada@kernel.example>"], cc=["linux-kernel@vger.example", "Bo <bo@kernel.example>"],
            subject=subject, date=datetime(2026, 1, 1, tzinfo=UTC), body=LETTER,
        )  # fmt: skip
        number = mails.write(
            session, mail, key=key, event=mails.REPLY, submission_id=submission, thread="20260101.p0@kernel.example",
            says={}, review=True, now=clock(session),
        )  # fmt: skip
    assert number is not None
    return number


def outcome(sessions: SessionFactory, settings: Settings, delivery: int) -> AttemptOutcome | None:
    """Make an attempt at a delivery, whether or not it is due, and return what came of it."""
    with transaction(sessions) as session:
        deliveries.lock(session, delivery).next_at = clock(session)
    result = send.deliver(sessions, settings, delivery)
    return result.outcome if result else None
