"""Inspection of an mbox, with each problem it can report."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wqlab_contracts.api.series import SeriesDefect, SeriesInspection
from wqlab_contracts.mails.inspection import inspect
from wqlab_contracts.mails.mbox import MAIL_LIMIT, PATCH_LIMIT

BASE = "0123456789abcdef0123456789abcdef01234567"


def mail(
    subject: str,
    body: str | None = None,
    *,
    author: str = "Ada <ada@example.org>",
    id_: str | None = None,
    reply_to: str | None = None,
    day: int = 5,
    file: str = "kernel/workqueue.c",
) -> str:
    text = "why\n\nSigned-off-by: Ada\n---\n 1 file changed\n\n" if body is None else ""
    diff = f"diff --git a/{file} b/{file}\n--- a/{file}\n+++ b/{file}\n@@ -1 +1,2 @@\n-a\n+b\n+c\n-- \n2.39\n\n"
    lines = [f"From: {author}", f"Subject: {subject}", f"Date: Mon, {day} Jan 2026 10:00:00 +0100"]
    lines += [f"Message-ID: <{id_}>"] if id_ else []
    lines += [f"In-Reply-To: <{reply_to}>"] if reply_to else []
    body = text + diff if body is None else body
    return "From 0123 Mon Sep 17 00:00:00 2001\n" + "\n".join(lines) + "\n\n" + body


def defects(found: SeriesInspection) -> dict[SeriesDefect, str]:
    return {problem.defect: problem.detail for problem in found.problems}


def errors(found: SeriesInspection) -> set[SeriesDefect]:
    return {problem.defect for problem in found.problems if problem.severity == "error"}


COVER = mail(
    "[PATCH v2 0/2] workqueue: lock less", f"Much is locked.\n\nchange-id: 20260101-lock-less\nbase-commit: {BASE}\n"
)
SERIES = (
    COVER
    + mail("[PATCH v2 2/2] workqueue: second", author="Bo <bo@example.org>", file="kernel/sched/core.c")
    + mail("[PATCH v2 1/2] workqueue: first")
)


def test_series_with_a_cover_letter() -> None:
    found = inspect(SERIES)
    assert (found.problems, found.usable) == ([], True)
    assert (found.subject, found.version, found.mails) == ("workqueue: lock less", 2, 3)
    assert (found.series_key, found.change_id, found.base_commit) == ("20260101-lock-less", "20260101-lock-less", BASE)
    assert found.authors == ["Ada <ada@example.org>", "Bo <bo@example.org>"]
    assert found.cover is not None
    assert found.cover.text.startswith("Much is locked.")
    assert [(patch.position, patch.subject) for patch in found.patches] == [
        (1, "workqueue: first"),
        (2, "workqueue: second"),
    ]
    first = found.patches[0]
    assert first.message == "why\n\nSigned-off-by: Ada"
    assert first.date is not None
    assert first.date.isoformat() == "2026-01-05T09:00:00+00:00"
    assert [(change.path, change.insertions, change.deletions) for change in first.files] == [
        ("kernel/workqueue.c", 2, 1)
    ]
    assert (found.files, found.insertions, found.deletions) == (2, 4, 2)


@pytest.mark.parametrize(
    ("subject", "text"),
    [
        ("[PATCH v2 0/5] net: other", f"x\n\nbase-commit: {BASE}\n"),
        ("[PATCH v2 0/2] net: other", f"x\n\nAda (2):\n  net: one\n  net: two\n\nbase-commit: {BASE}\n"),
    ],
    ids=["other total", "lists others"],
)
def test_cover_letter_of_another_series_is_not_taken(subject: str, text: str) -> None:
    found = inspect(SERIES.removeprefix(COVER) + mail(subject, text))
    assert (found.cover, found.base_commit, found.subject) == (None, None, "workqueue: first")
    assert inspect(SERIES + mail(subject, text)).subject == "workqueue: lock less"


def test_single_patch() -> None:
    found = inspect(mail("[PATCH] workqueue: lock less"))
    assert found.usable
    assert (found.version, found.series_key) == (1, "workqueue: lock less")
    assert list(defects(found)) == [SeriesDefect.NO_BASE_COMMIT], "a warning, not an error"


def test_author_of_a_forwarded_patch() -> None:
    forwarded = mail("[PATCH] x").replace("\n\nwhy", "\n\nFrom: Cy <cy@example.org>\n\nwhy", 1)
    found = inspect(forwarded)
    assert found.authors == ["Cy <cy@example.org>"]
    assert found.patches[0].message.startswith("why")


@pytest.mark.parametrize("text", ["", "hello", "{}", "\0", "%PDF-1.4 ..."])
def test_text_without_mail_is_reported(text: str) -> None:
    found = inspect(text)
    assert errors(found) == {SeriesDefect.NOT_AN_MBOX}
    assert not found.usable


def test_cover_letter_without_patch_is_reported() -> None:
    found = inspect(COVER)
    assert errors(found) == {SeriesDefect.NO_PATCH}
    assert "cover letter" in defects(found)[SeriesDefect.NO_PATCH]
    assert errors(inspect(mail("Re: [PATCH] x"))) == {SeriesDefect.NO_PATCH}, "a diff in a reply is not a patch"


def test_missing_patches_are_named() -> None:
    found = inspect(mail("[PATCH 1/4] a") + mail("[PATCH 3/4] c"))
    assert errors(found) == {SeriesDefect.MISSING_PATCH}
    assert "2/4, 4/4" in defects(found)[SeriesDefect.MISSING_PATCH]
    assert [patch.subject for patch in found.patches] == ["a", "c"], "the other patches are shown"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (mail("[PATCH 1/2] a") + mail("[PATCH 2/2] b") + mail("[PATCH 1/3] c"), "one of 3 patches"),
        (mail("[PATCH 1/2] a") + mail("[PATCH 1/2] b") + mail("[PATCH 2/2] c"), "'a', 'b'"),
        (mail("[PATCH] a") + mail("[PATCH] b"), "git format-patch -n"),
        (mail("[PATCH] a", id_="1@x") + mail("[PATCH] a", id_="2@x", author="Bo <bo@example.org>"), "more than one"),
        (mail("[PATCH AUTOSEL 6.12] a", id_="1@x") + mail("[PATCH AUTOSEL 6.6] a", id_="2@x"), "more than one"),
        (mail("[PATCH] a") + mail("[PATCH 1/2] b") + mail("[PATCH 2/2] c"), "'a' have no number"),
    ],
)
def test_several_series_are_reported(text: str, words: str) -> None:
    found = inspect(text)
    assert SeriesDefect.SEVERAL_SERIES in errors(found)
    assert words in defects(found)[SeriesDefect.SEVERAL_SERIES]


def test_version_sent_last_is_used() -> None:
    old = mail("[PATCH 1/1] old", day=4)
    found = inspect(mail("[PATCH v2 1/1] new", day=6) + old)
    assert [patch.subject for patch in found.patches] == ["new"]
    assert list(defects(found)) == [SeriesDefect.OLDER_VERSION, SeriesDefect.NO_BASE_COMMIT]
    assert found.usable


def test_last_of_a_single_patch_that_was_sent_again_is_used() -> None:
    found = inspect(mail("[PATCH RESEND] a", id_="2@x", day=9) + mail("[PATCH] a", id_="1@x", day=4))
    assert ([patch.message_id for patch in found.patches], found.usable) == (["2@x"], True)
    assert "sent again, so that the last is used: 'a'" in defects(found)[SeriesDefect.OLDER_VERSION]


def test_duplicate_patch_is_counted_once() -> None:
    assert len(inspect(mail("[PATCH] a", id_="1@x") + mail("[PATCH] a", id_="1@x")).patches) == 1
    assert len(inspect(mail("[PATCH] a") + mail("[PATCH] a")).patches) == 1


def test_replies_are_not_patches() -> None:
    reply = mail("Re: [PATCH] a", "> +b\n\nReviewed-by: Bo <bo@example.org>\n", id_="2@x", reply_to="1@x")
    found = inspect(mail("[PATCH] a", id_="1@x") + reply)
    assert (found.mails, len(found.patches)) == (2, 1)


@pytest.mark.parametrize(
    "subject",
    ['Patch "wq: faster" has been added to the 6.12-stable tree', "run fewer works, was: Re: [PATCH v2] wq: faster"],
)
def test_diff_in_a_mail_that_answers_a_patch_is_left_out(subject: str) -> None:
    patch = mail("[PATCH v2] wq: faster", id_="2@x")
    found = inspect(patch + mail(subject, id_="3@x", reply_to="2@x", author="Bob <bob@example.org>", day=6))
    assert (found.version, [each.subject for each in found.patches], errors(found)) == (2, ["wq: faster"], set())
    assert subject[:20] in defects(found)[SeriesDefect.SEVERAL_SERIES]
    assert [each.subject for each in inspect(mail(subject, id_="3@x")).patches] == [subject]


def test_odd_sender_of_a_reply_is_read() -> None:
    """Anybody can reply to a patch, with groups of addresses in which Python's parser recurses."""
    patches = mail("[PATCH 1/2] a", id_="1") + mail("[PATCH 2/2] b", id_="2", reply_to="1")
    found = inspect(patches + mail("[PATCH 2/2] b", author=":" * 1_900, id_="3", reply_to="2"))
    assert errors(found) == {SeriesDefect.SEVERAL_SERIES}


def test_partial_resend_is_completed() -> None:
    first = mail("[PATCH 1/2] a", id_="1@x", day=4) + mail("[PATCH 2/2] b", id_="2@x", day=4)
    resent = mail("[PATCH v2 2/2] b, fixed", id_="3@x", reply_to="2@x", day=6)
    found = inspect(first + resent)
    assert [patch.subject for patch in found.patches] == ["a", "b, fixed"]
    assert (found.version, found.usable) == (2, True)
    assert SeriesDefect.MERGED_VERSIONS in defects(found)
    alone = mail("[PATCH v2 2/2] b, fixed", id_="3@x", day=6)
    assert errors(inspect(first + alone)) == {SeriesDefect.MISSING_PATCH}, "it replies to no mail of the mbox"


def test_reply_to_itself_terminates() -> None:
    loop = mail("[PATCH v2 1/2] a", id_="1@x", reply_to="2@x") + mail("[PATCH v3 1/2] b", id_="2@x", reply_to="1@x")
    assert SeriesDefect.MISSING_PATCH in errors(inspect(loop))


def test_binary_changes_are_reported() -> None:
    binary = "GIT binary patch\nliteral 3\nKcmZQ\n\nliteral 0\nHcmV?d0\n\n"
    body = f"x\n---\ndiff --git a/logo b/logo\nnew file mode 100644\n{binary}"
    found = inspect(mail("[PATCH] a", body))
    assert "logo" in defects(found)[SeriesDefect.BINARY_PATCH]
    assert found.usable


def test_too_many_mails_or_patches_are_reported() -> None:
    many = "".join(mail(f"[PATCH {n}/{PATCH_LIMIT + 1}] {n}") for n in range(1, PATCH_LIMIT + 2))
    found = inspect(many)
    assert errors(found) == {SeriesDefect.TOO_LARGE}
    assert len(found.patches) == PATCH_LIMIT
    assert errors(inspect(mail("[PATCH] a", "x\n") * (MAIL_LIMIT + 1))) == {SeriesDefect.TOO_LARGE}


def test_mail_with_only_containers_is_reported() -> None:
    nested = "".join(f"Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n" for n in range(100))
    found = inspect(mail("[PATCH] a") + "From 0123 Mon Sep 17 00:00:00 2001\nSubject: [PATCH] b\n" + nested)
    assert SeriesDefect.UNREADABLE_MAIL in errors(found)


SUBJECTS = st.builds(
    "{}[PATCH{} {}/{}] {}".format,
    st.sampled_from(["", "Re: ", "x"]),
    st.sampled_from(["", " v2", " v99"]),
    st.integers(0, 5),
    st.integers(0, 5),
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=5),
)


@given(st.lists(st.tuples(SUBJECTS, st.one_of(st.none(), st.text(max_size=30))), max_size=6))
def test_inspection_never_raises(mails: list[tuple[str, str | None]]) -> None:
    found = inspect("".join(mail(subject, body) for subject, body in mails))
    assert found.usable == (not errors(found))
    assert not found.usable or found.patches
    assert [patch.position for patch in found.patches] == list(range(1, len(found.patches) + 1))
