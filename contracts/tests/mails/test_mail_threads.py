"""What mails are in their threads, and what an inspection then chooses."""

from __future__ import annotations

import pytest

from wqlab_contracts.mails import mbox
from wqlab_contracts.mails.inspection import choose_patches, inspect, texts_of
from wqlab_contracts.mails.mail_threads import DEPTH_LIMIT, ancestors_of

SEPARATOR = "From mboxrd@z Thu Jan  1 00:00:00 1970\n"
BASE = "a" * 40


def mail(subject: str, id_: str, to: str = "", body: str = "", day: int = 5, author: str = "Ada <a@x.org>") -> str:
    lines = [f"From: {author}", f"Subject: {subject}", f"Date: Mon, {day} Jan 2026 10:00:00 +0000"]
    lines += [f"Message-ID: <{id_}>", *([f"References: <{to}>"] if to else [])]
    diff = f"why\n---\ndiff --git a/{id_} b/{id_}\n--- a/{id_}\n+++ b/{id_}\n@@ -1 +1 @@\n-a\n+b\n-- \n2.39\n"
    return SEPARATOR + "\n".join(lines) + f"\n\n{body or diff}\n"


def two(prefix: str, parent: str, ids: str, day: int = 5) -> str:
    return "".join(mail(f"[{prefix}{number}/2] part {number}", f"{ids}{number}", parent, day=day) for number in (1, 2))


DIFF = "---\ndiff --git a/q b/q\n--- a/q\n+++ b/q\n@@ -1 +1 @@\n-a\n+b\n"
QUOTING = f"On 5 Jan 2026, Bo wrote:\n> Can you show it?\n\nWith this, yes:\n{DIFF}"
QUOTED_BELOW = f"Bo reports a hang.\nHe says:\n\nMore about it, and then:\n> it hangs\n\nSo count.\n{DIFF}"
FIRST = mail("[PATCH 0/2] topic", "c", body=f"Why.\n\nbase-commit: {BASE}\n") + two("PATCH ", "c", "a")
THREADS = {
    "cover letter without number": (mail("topic", "c", body="Why.") + two("PATCH ", "c", "a"), 1, "a1 a2", "topic"),
    "patch set": (mail("[PATCHSET v4 wq] topic", "c", body="x") + two("PATCH ", "c", "a"), 4, "a1 a2", "topic"),
    "version glued": (mail("[PATCHv2 0/2] topic", "c", body="x") + two("PATCH ", "c", "a"), 2, "a1 a2", "topic"),
    "cover letter without version": (
        mail("[PATCH 0/2] topic", "c", body="x") + two("PATCH V2 ", "c", "a"), 2, "a1 a2", "topic",
    ),
    "cover letter with a diff": (mail("[PATCH 0/2] topic", "c") + two("PATCH ", "c", "a"), 1, "a1 a2", "topic"),
    "v2 answers the cover letter of v1": (FIRST + two("PATCH v2 ", "c", "b", day=8), 2, "b1 b2", "topic"),
    "v2 has a cover letter that answers that of v1": (
        FIRST + mail("[PATCHSET v2] later", "d", "c", body="x", day=8) + two("PATCH ", "d", "b", day=8),
        2, "b1 b2", "later",
    ),
    "cover letter of a single patch, without numbers": (
        mail("[PATCH v9] topic", "c", body="Why.") + mail("[PATCH v9] part 1", "a1", "c"), 9, "a1", "topic",
    ),
    "cover letter with the number of its single patch": (
        mail("[RFC 1/1] topic", "c", body="Why.") + mail("[RFC 1/1] topic", "a1", "c"), 1, "a1", "topic",
    ),
    "a patch sent again": (FIRST + mail("[PATCH v1.1 2/2] part 2", "b2", "a2", day=8), 1, "a1 b2", "topic"),
    "a patch sent again with a version of its own and another title": (
        FIRST + mail("[PATCH v1.1 2/2] other part 2", "b2", "a2", day=8), 1, "a1 b2", "topic",
    ),
    "a reply without Re: with a diff of its own": (
        FIRST + mail("[PATCH 2/2] part 2", "b2", "a2", day=8, body=QUOTING), 1, "a1 a2", "topic",
    ),
    "a patch that quotes a mail": (
        mail("[PATCH] topic", "a1", "c", body=QUOTED_BELOW), 1, "a1", "topic",
    ),
    "a patch sent again with its number": (
        FIRST + mail("[PATCH update 2/2] part 2", "b2", "a2", day=8), 1, "a1 b2", "topic",
    ),
    "a patch sent again in reply to the cover letter": (
        FIRST + mail("[PATCH 2/2] part 2", "b2", "c", day=8), 1, "a1 b2", "topic",
    ),
    "a patch sent again twice": (
        FIRST + mail("[PATCH fixed 2/2] part 2", "d2", "b2", day=9) + mail("[PATCH 2/2] part 2", "b2", "a2", day=8),
        1, "a1 d2", "topic",
    ),
    "version at the end of the cover letter's title": (
        mail("topic v3", "c", body="x") + two("PATCH ", "c", "a"), 3, "a1 a2", "topic",
    ),
    "the same in parentheses": (mail("topic (V3)", "c", body="x") + two("PATCH ", "c", "a"), 3, "a1 a2", "topic"),
    "no version at the end of the title": (
        mail("support NFS v4", "c", body="x") + two("PATCH v2 ", "c", "a"), 2, "a1 a2", "support NFS v4",
    ),
    "version of the first patch": (
        mail("[PATCH v3 1/2] part 1", "a1") + mail("[PATCH 2/2] part 2", "a2", "a1"), 3, "a1 a2", "part 1",
    ),
}  # fmt: skip
REFUSED = {
    "on top of the series": FIRST + mail("[PATCH] more", "f", "a2", day=8),
    "on top of the series, as if a version": FIRST + mail("[PATCH v2] more", "f", "a2", day=8),
    "on top of a patch": FIRST + mail("[PATCH 2/2 fix] more", "f", "a2", day=8),
    "alternative by another author": FIRST + mail("[PATCH 2/2] part 2", "f", "a2", day=8, author="Bo <b@x.org>"),
    "behind the last": FIRST + mail("[PATCH 3/2] more", "f", "c", day=8),
    "an author's other series": FIRST + two("PATCH ", "", "o"),
}


@pytest.mark.parametrize("name", THREADS)
def test_version_and_cover_letter_are_those_of_the_thread(name: str) -> None:
    text, version, ids, subject = THREADS[name]
    found = inspect(text)
    assert found.usable, found.problems
    assert [patch.message_id for patch in found.patches] == ids.split()
    assert (found.version, found.subject) == (version, subject)


@pytest.mark.parametrize("name", REFUSED)
def test_patches_beside_the_series_are_refused_not_dropped(name: str) -> None:
    assert [problem.defect for problem in inspect(REFUSED[name]).problems if problem.severity == "error"] == [
        "several_series"
    ]


def test_base_of_the_answered_cover_letter_is_inherited() -> None:
    found = choose_patches(FIRST + two("PATCH v2 ", "c", "b", day=8))
    assert found.inspection.base_commit == BASE
    assert found.chosen is not None and any(BASE in text for text in texts_of(found.chosen))


def test_a_chain_of_replies_is_followed_to_a_limit() -> None:
    """Before, ten thousand mails, each of which answered the one before, took minutes."""
    mails = mbox.parse_mails("".join(mail("[PATCH 1/2] x", f"m{i}", f"m{i - 1}") for i in range(DEPTH_LIMIT + 50)))
    found = list(ancestors_of(mails[-1], {each.effective_message_id: each for each in mails}))
    assert [each.message_id for each in found] == [f"m{DEPTH_LIMIT + 48 - i}" for i in range(DEPTH_LIMIT)]
