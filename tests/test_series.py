"""The server's inspection of a mailbox agrees with how the worker applies it with b4."""

from __future__ import annotations

from pathlib import Path

import pytest

from wqlab_contracts.mails.inspection import inspect
from wqlab_contracts.mails.mbox import add_message_ids
from wqlab_worker.apply.mailed_series import check_complete, ordered_patches, read_mbox
from wqlab_worker.failures import UserError

pytestmark = pytest.mark.integration

DIFF = "diff --git a/{0} b/{0}\n--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-a\n+{1}\n-- \n2.39\n\n"


def mail(subject: str, *, id_: str, reply_to: str | None = None, day: int = 5, body: str | None = None) -> str:
    lines = ["From: Ada <ada@example.org>", f"Subject: {subject}", f"Message-ID: <{id_}@x>"]
    lines += [f"Date: Mon, {day} Jan 2026 10:00:00 +0000"]
    lines += [f"In-Reply-To: <{reply_to}@x>"] if reply_to else []
    text = f"why\n\nSigned-off-by: Ada <ada@example.org>\n---\n{DIFF.format(id_, subject)}" if body is None else body
    return "From 0123456789 Mon Sep 17 00:00:00 2001\n" + "\n".join(lines) + "\n\n" + text + "\n"


COVER = mail("[PATCH v2 0/2] workqueue: more", id_="c", body="Why.\n\n2 files changed, 2 insertions(+)\n")
SERIES = COVER + mail("[PATCH v2 2/2] two", id_="2", reply_to="c") + mail("[PATCH v2 1/2] one", id_="1", reply_to="c")
OLD = mail("[PATCH 1/2] one", id_="o1", day=2) + mail("[PATCH 2/2] two", id_="o2", day=2, reply_to="o1")
MAILBOXES = {
    "one patch": mail("[PATCH] alone", id_="1"),
    "in another order, with a cover letter": SERIES,
    "with its older version": OLD + SERIES,
    "with a reply that has a diff": SERIES + mail("Re: [PATCH v2 1/2] one", id_="r", reply_to="1"),
    "a patch that came twice": mail("[PATCH] alone", id_="1") * 2,
    "one patch of a series sent again": OLD + mail("[PATCH v2 2/2] two, fixed", id_="n2", reply_to="o2", day=8),
    "the last version sent first": SERIES + OLD,
    "an RFC": mail("[RFC PATCH 1/1] idea", id_="1"),
    "a version glued to the word": mail("[PATCHv3 1/1] glued", id_="1"),
}
REFUSED = {
    "a patch is missing": mail("[PATCH 1/3] one", id_="1") + mail("[PATCH 3/3] three", id_="3"),
    "a cover letter alone": COVER,
    "only replies": mail("Re: [PATCH] alone", id_="1"),
    "a version that is not a reply": OLD + mail("[PATCH v2 2/2] two, fixed", id_="n2", day=8),
}


def ordered_subjects(text: str, folder: Path) -> list[str]:
    """Return the subjects that the worker would apply, in order. Raises UserError."""
    for name in ("in", "out"):
        (folder / name).mkdir()
    (folder / "in" / "received.mbox").write_text(add_message_ids(read_mbox(text)))
    patches = read_mbox(ordered_patches(folder, None))
    check_complete(patches)
    return [patch.title for patch in patches]


@pytest.mark.parametrize("name", MAILBOXES)
def test_server_and_worker_order_patches_alike(name: str, tmp_path: Path) -> None:
    found = inspect(MAILBOXES[name])
    assert found.usable, found.problems
    assert [patch.subject for patch in found.patches] == ordered_subjects(MAILBOXES[name], tmp_path)


@pytest.mark.parametrize("name", REFUSED)
def test_server_refuses_what_the_worker_refuses(name: str, tmp_path: Path) -> None:
    assert not inspect(REFUSED[name]).usable
    with pytest.raises(UserError):
        ordered_subjects(REFUSED[name], tmp_path)
