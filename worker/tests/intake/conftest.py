"""A real archive with several series, for all tests of a session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from publicinbox import PublicInbox, public_inbox
from thread_mails import mail, series

CHATTER = 2_000
"""Replies without trailers in the thread of the series `busy`."""


@pytest.fixture(scope="session")
def inbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PublicInbox]:
    """An archive with these series, by the last word of their title:

    `less`: v1 with a reply that has a trailer, v2 in a thread of its own. `renamed`: v1 and v2 with one change-id but
    different titles. `half`: v1 without patch 2 of 3. `busy`: a patch with CHATTER replies and one with a trailer.
    `early`: v1 and v3. `odd`: a single patch whose id and text need quoting. `parts`: a cover letter and two patches in
    three threads.
    """
    change_id = "20260105-renamed-0123456789ab"
    old, new = (
        series("sched: rename", change_id=change_id, name="renamed"),
        series("sched: rename more", version=2, change_id=change_id, name="renamed", day=8),
    )
    busy = series("mm: busy", patches=1)
    replies = [
        mail(f"Re: busy {number}", f"busy-r{number}@x", to="busy-v1-1@x", body="Hm.\n") for number in range(CHATTER)
    ]
    tag = mail("Re: busy", "busy-tag@x", to=f"busy-r{CHATTER - 1}@x", body="Acked-by: Bo <bo@example.org>\n")
    odd = mail("[PATCH] fs: odd", "a/b%20c+d=e@x", author="Zoë <zoe@example.org>").replace(
        "why\n", "why\n\nFrom here\n"
    )
    parts = [
        mail(f"[PATCH {n}/2] lib: parts {n}", f"parts-{n}@x", at=f"10:00:0{n}", author="Cy <cy@example.org>", body=body)
        for n, body in ((0, "Why.\n\nchange-id: 20260105-parts-0123456789ab\n"), (1, None), (2, None))
    ]
    less = mail("Re: less", "less-tag@x", to="less-v1-1@x", body="Reviewed-by: Bo <bo@example.org>\n")
    with public_inbox(tmp_path_factory.mktemp("archive")) as inbox:
        inbox.import_mails(
            [
                *series("workqueue: lock less"),
                less,
                *series("workqueue: lock less", version=2, day=7),
                *old,
                *new,
                *[text for text in series("net: half", patches=3) if "2/3" not in text],
                *busy,
                *replies,
                tag,
                *series("irq: early"),
                *series("irq: early", version=3, day=9),
                odd,
                *parts,
            ]
        )
        yield inbox
