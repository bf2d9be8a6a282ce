"""What a worker answers for a series that is found by Message-ID."""

from __future__ import annotations

from datetime import UTC, datetime

from wqlab_contracts.messages import Artifact, TakenThread, ThreadMail

AT = datetime(2026, 1, 7, 9, tzinfo=UTC)


def taken_thread(mbox: Artifact, revision: int = 2, message_id: str = "less-v1-1@x") -> TakenThread:
    """Return a series of two patches with a cover letter and a reply."""
    names = [("cover", "[PATCH v2 0/2] wq: less"), ("patch", "[PATCH v2 1/2] one"), ("patch", "[PATCH v2 2/2] two")]
    mails = [
        ThreadMail(
            role=role,
            subject=subject,
            author="Ada <ada@example.org>",
            date=AT,
            message_id=f"less-v2-{number}@x",
            url=f"https://lore.example.org/all/less-v2-{number}@x/",
        )
        for number, (role, subject) in enumerate(names)
    ]
    tag = ThreadMail(
        role="reply",
        subject="Re: one",
        author="Bo <bo@example.org>",
        date=AT,
        message_id="tag@x",
        trailers=["Reviewed-by: Bo <bo@example.org>"],
        url="https://lore.example.org/all/tag@x/",
    )
    return TakenThread(
        revision=revision,
        revisions=[1, 2],
        subject="wq: less",
        author="Ada <ada@example.org>",
        series_key="wq: less",
        mails=[*mails, tag],
        replies=1,
        notes=["v2 was sent 2 times; that of 2026-01-07 09:00 is taken"],
        message_id=message_id,
        archive="lore",
        url="https://lore.example.org/all/less-v2-0@x/",
        taken_at=AT,
        mbox=mbox,
    )
