"""Choose one revision of a series from the mails of a thread."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from thread_mails import mail, series

from wqlab_contracts.mails import mbox
from wqlab_contracts.mails.revision_mails import Selection
from wqlab_contracts.mails.thread_series import Thread, ThreadProblem, revision_query, select


def thread(mails: Iterable[str]) -> Thread:
    return Thread(mbox.parse_mails("".join(mails), escaped=True))


def ids(chosen: Selection) -> list[str | None]:
    return [each.message_id for each in chosen.mails]


def problem(mails: Iterable[str], message_id: str, revision: int | None = None) -> str:
    with pytest.raises(ThreadProblem) as error:
        select(thread(mails), message_id, revision)
    return f"{error.value} {error.value.advice}"


V1 = series("workqueue: lock less", day=5)
V2 = series("workqueue: lock less", version=2, day=7)
V3 = series("workqueue: lock less", version=3, day=9)


@pytest.mark.parametrize("message_id", ["less-v1-0@x", "less-v1-2@x", "less-v3-1@x"])
def test_latest_revision_is_taken_from_any_of_them(message_id: str) -> None:
    chosen = select(thread(V3 + V1 + V2), message_id, None)
    assert (chosen.revision, chosen.revisions) == (3, [1, 2, 3])
    assert ids(chosen) == ["less-v3-0@x", "less-v3-1@x", "less-v3-2@x"]
    assert (chosen.subject, chosen.author) == ("workqueue: lock less", "Ada <ada@example.org>")
    assert chosen.series_key == "workqueue: lock less"


def test_named_revision_is_taken() -> None:
    chosen = select(thread(V1 + V2 + V3), "less-v3-0@x", 2)
    assert ids(chosen) == ["less-v2-0@x", "less-v2-1@x", "less-v2-2@x"]


def test_unknown_revision_names_those_that_exist() -> None:
    assert "has no revision 5; the archive has v1 and v3" in problem(V1 + V3, "less-v1-0@x", 5)


def test_third_revision_that_arrives_before_the_second_is_taken() -> None:
    late = series("workqueue: lock less", version=2, day=12)
    assert select(thread(V1 + V3), "less-v1-1@x", None).revision == 3
    assert select(thread(V1 + V3 + late), "less-v1-1@x", None).revision == 3


def test_missing_patches_are_named() -> None:
    two_of_four = [text for text in series("wq: four", patches=4) if "2/4" not in text and "4/4" not in text]
    found = problem(two_of_four, "four-v1-0@x")
    assert "v1 of the series is incomplete: patch 2/4, 4/4 are missing" in found
    found = problem([*V1, V2[0], V2[1]], "less-v1-0@x")
    assert "v2 of the series is incomplete: patch 2/2 is missing" in found
    assert "choose a revision that is complete: v1" in found


def test_cover_letter_alone_is_incomplete() -> None:
    assert "patch 1/2, 2/2 are missing" in problem(V1[:1], "less-v1-0@x")


def test_two_series_under_one_cover_letter_are_refused() -> None:
    other = mail("[PATCH 1/2] another start", "other-1@x", to="less-v1-0@x")
    found = problem([*V1, other], "less-v1-0@x")
    assert "more than one series under one cover letter: patch 1/2" in found
    assert "'another start'" in found


def test_patches_of_another_sender_under_the_cover_letter_are_left_out() -> None:
    other = mail("[PATCH 1/2] my idea", "other-1@x", to="less-v1-0@x", author="Bo <bo@example.org>")
    chosen = select(thread([*V1, other]), "less-v1-0@x", None)
    assert ids(chosen) == ["less-v1-0@x", "less-v1-1@x", "less-v1-2@x"]
    assert chosen.notes == ["patches of other senders with the same numbers are left out"]


def test_alternative_in_a_reply_is_another_series() -> None:
    alternative = mail("[PATCH] workqueue: simpler", "alt@x", to="less-v1-1@x", author="Bo <bo@example.org>")
    mails = [*V1, alternative]
    assert ids(select(thread(mails), "less-v1-2@x", None)) == ["less-v1-0@x", "less-v1-1@x", "less-v1-2@x"]
    assert ids(select(thread(mails), "alt@x", None)) == ["alt@x"]


def test_series_with_the_same_title_of_another_author_is_not_a_revision() -> None:
    other = series("workqueue: lock less", version=2, author="Bo <bo@example.org>", name="bo")
    assert select(thread(V1 + other), "less-v1-0@x", None).revisions == [1]


def test_change_id_finds_a_renamed_revision_and_excludes_others() -> None:
    first = series("workqueue: lock less", change_id="20260101-lock-0123456789ab")
    renamed = series("workqueue: never lock", version=2, change_id="20260101-lock-0123456789ab", day=7)
    other = series("workqueue: lock less", version=3, change_id="20251212-else-0123456789ab", day=9)
    chosen = select(thread(first + renamed + other), "less-v1-1@x", None)
    assert (chosen.revisions, chosen.subject) == ([1, 2], "workqueue: never lock")
    assert chosen.series_key == "20260101-lock-0123456789ab"


def test_revision_that_answers_the_previous_one_may_have_another_title() -> None:
    renamed = series("workqueue: never lock", version=2, to="less-v1-0@x", day=7)
    assert select(thread(V1 + renamed), "less-v1-1@x", None).revisions == [1, 2]


def test_older_series_of_the_same_title_is_no_later_revision() -> None:
    old = [text.replace("Jan 2026", "Jan 2025") for text in V2]
    assert select(thread(V1 + old), "less-v1-0@x", None).revisions == [1]


def test_patch_that_was_sent_again_alone_replaces_its_predecessor() -> None:
    again = mail("[PATCH v2 2/2] workqueue: lock less: part 2", "again@x", to="less-v1-2@x", day=6)
    chosen = select(thread([*V1, again]), "less-v1-0@x", None)
    assert (chosen.revision, chosen.revisions) == (2, [1, 2])
    assert [each.message_id for each in chosen.patches] == ["less-v1-1@x", "again@x"]
    assert [each.message_id for each in chosen.superseded] == ["less-v1-2@x"]
    assert "re-sends only some patches" in chosen.notes[0]


@pytest.mark.parametrize("prefix", ["v1.1", "v1a", "v1-fix"])
def test_patch_with_a_version_of_its_own_replaces_the_first(prefix: str) -> None:
    again = mail(f"[PATCH {prefix} 2/2] workqueue: other words", "again@x", to="less-v1-2@x", day=6)
    assert [each.message_id for each in select(thread([*V1, again]), "less-v1-0@x", None).patches] == [
        "less-v1-1@x",
        "again@x",
    ]


def test_reply_to_a_cover_letter_without_re_is_a_reply() -> None:
    text = "On Monday, Bo wrote:\n> Why?\n\nIt is faster.\n"
    reply = mail("[PATCH 0/2] workqueue: lock less", "r@x", to="less-v1-0@x", body=text)
    for message_id in ("r@x", "less-v1-0@x"):
        assert ids(select(thread([*V1, reply]), message_id, None)) == ["less-v1-0@x", "less-v1-1@x", "less-v1-2@x"]


def test_reply_without_re_replaces_no_patch() -> None:
    body = f"On 5 Jan 2026, Bo wrote:\n> Can you show it?\n\nWith this:\n{V1[2].partition(chr(10) * 2)[2]}"
    reply_of = mail("[PATCH 2/2] workqueue: lock less: part 2", "again@x", to="less-v1-2@x", day=6, body=body)
    chosen = select(thread([*V1, reply_of]), "less-v1-0@x", None)
    assert [each.message_id for each in chosen.patches] == ["less-v1-1@x", "less-v1-2@x"]


def test_patch_that_was_sent_again_with_its_number_replaces_the_first() -> None:
    again = mail("[PATCH update 2/2] workqueue: lock less: part 2", "again@x", to="less-v1-2@x", day=6)
    on_top = mail("[PATCH 1/2 fix] workqueue: another line", "fix@x", to="less-v1-1@x", day=6)
    chosen = select(thread([*V1, again, on_top]), "less-v1-0@x", None)
    assert ids(chosen)[:4] == ["less-v1-0@x", "less-v1-2@x", "less-v1-1@x", "again@x"]
    assert [each.message_id for each in chosen.patches] == ["less-v1-1@x", "again@x"]
    assert chosen.notes == [
        "sent again, so that the last is taken: 'workqueue: lock less: part 2'",
        "patches on top of others of the series are not taken: 'workqueue: another line'",
    ]


@pytest.mark.parametrize("revision", [None, 2])
def test_patch_on_top_of_a_series_has_the_version_of_its_subject(revision: int | None) -> None:
    on_top = mail("[PATCH v2] workqueue: another line", "fix@x", to="less-v1-1@x", day=6)
    chosen = select(thread([*V1, on_top]), "fix@x", revision)
    assert (chosen.revision, [each.message_id for each in chosen.patches]) == (2, ["fix@x"])
    assert select(thread([*V1, on_top]), "less-v1-0@x", None).revision == 1


def test_revision_that_was_sent_twice_is_taken_from_the_last_time() -> None:
    again = [text.replace("less-v1", "again-v1") for text in series("workqueue: lock less", day=8)]
    chosen = select(thread(V1 + again), "less-v1-0@x", None)
    assert ids(chosen)[0] == "again-v1-0@x"
    assert chosen.notes == ["v1 was sent 2 times; that of 2026-01-08 09:00 is taken"]
    assert ids(select(thread(V1 + again), "less-v1-0@x", 1))[0] == "less-v1-0@x"


def reply(id_: str, to: str, text: str, **more: str) -> str:
    return mail(f"Re: {id_}", id_, to=to, body=text, author="Bo <bo@example.org>")


def test_replies_with_trailers_and_those_between_are_taken() -> None:
    mails = [
        *V1,
        reply("chat@x", "less-v1-1@x", "Nice.\n"),
        reply("tag@x", "chat@x", "> Acked-by: quoted <q@x>\nReviewed-by: Bo <bo@example.org>\n"),
        reply("talk@x", "less-v1-0@x", "No.\n"),
        reply("v2tag@x", "less-v2-1@x", "Tested-by: Bo <bo@example.org>\n"),
        *V2,
    ]
    chosen = select(thread(mails), "less-v1-0@x", 1)
    assert sorted(each.message_id or "" for each in chosen.replies) == ["chat@x", "tag@x"]
    assert ids(select(thread(mails), "less-v1-0@x", 2))[-1] == "v2tag@x"


def test_a_reply_leads_to_the_patch_that_it_answers() -> None:
    mails = [*V1, reply("chat@x", "less-v1-1@x", "Nice.\n")]
    assert select(thread(mails), "chat@x", None).revision == 1


def test_discussion_without_a_patch_is_refused() -> None:
    mails = [mail("thoughts", "a@x", body="Hm.\n"), reply("b@x", "a@x", "Yes.\n")]
    assert "neither b@x nor a mail that it answers has a patch" in problem(mails, "b@x")


def test_patch_without_a_diff_does_not_select_the_patch_that_it_answers() -> None:
    mails = [*V1, mail("[PATCH] other", "other@x", to="less-v1-1@x", body="Forgotten.\n")]
    assert "other@x has no diff" in problem(mails, "other@x")


def test_answer_without_the_asked_mail_is_refused() -> None:
    assert "does not contain none@x" in problem(V1, "none@x")


def test_loop_of_replies_ends() -> None:
    mails = [reply("a@x", "b@x", "1\n"), reply("b@x", "a@x", "2\n"), mail("[PATCH] x", "p@x", to="p@x")]
    assert "neither a@x" in problem(mails, "a@x")
    assert ids(select(thread(mails), "p@x", None)) == ["p@x"]


def test_references_replace_a_missing_in_reply_to() -> None:
    mails = [*V1, mail("Re: x", "r@x", body="Acked-by: Bo <b@x>\n", references=["less-v1-0@x", "gone@x"])]
    assert ids(select(thread(mails), "less-v1-0@x", None))[-1] == "r@x"


def test_escaped_lines_are_kept_as_sent() -> None:
    text = mail("[PATCH] x", "p@x").replace("why\n", "why\n\n>From here\n>>From there\n")
    chosen = select(thread([text]), "p@x", None)
    assert "\nFrom here\n>From there\n" in chosen.patches[0].body
    again = mbox.parse_mails(mbox.add_message_ids(chosen.mails), escaped=True)
    assert [each.body.strip() for each in again] == [each.body.strip() for each in chosen.mails]


def test_query_is_by_change_id_and_by_title_and_author() -> None:
    mails = series('workqueue: "lock" less \x1b(', change_id="20260101-lock-0123456789ab", name="q")
    assert revision_query(thread(mails), "q-v1-1@x") == (
        'nq:"change-id: 20260101-lock-0123456789ab" OR '
        '(s:"workqueue: lock less" AND f:ada@example.org AND d:20241201..20270209)'
    )
    odd = [text.replace("ada@example.org", '"x y"@[1.2.3.4]') for text in V1]
    assert revision_query(thread(odd), "less-v1-1@x") == ""


COVER = mail("[PATCH 0/4] wq: four", "cover@x", body="Why.\n\nchange-id: 20260101-four-0123456789ab\n", at="10:00:00")
FOUR = [
    mail(f"[PATCH {n}/4] wq: part {n}", f"p{n}@x", to="lost@x" if n < 3 else None, at=f"10:00:0{n}")
    for n in range(1, 5)
]
"""Two patches that answer an unknown mail, and two without a parent."""


@pytest.mark.parametrize("asked", ["cover@x", "p2@x", "p4@x"])
def test_series_in_several_threads_is_taken_whole(asked: str) -> None:
    chosen = select(thread([COVER, *FOUR]), asked, None)
    assert ids(chosen) == ["cover@x", "p1@x", "p2@x", "p3@x", "p4@x"]
    assert (chosen.subject, chosen.series_key) == ("wq: four", "20260101-four-0123456789ab")
    assert ids(select(thread(FOUR), "p3@x" if asked == "cover@x" else asked, None)) == ["p1@x", "p2@x", "p3@x", "p4@x"]


@pytest.mark.parametrize(("title", "taken"), [("wq: four", True), ("wq: others", False)])
def test_cover_letter_may_be_sent_again_with_the_rest(title: str, taken: bool) -> None:
    again = mail(f"[PATCH 0/4] {title}", "again@x", body="Why.\n", at="10:30:00")
    rest = [mail(f"[PATCH {n}/4] wq: part {n}", f"p{n}@x", to="again@x", at=f"10:30:0{n}") for n in (3, 4)]
    mails = thread([COVER, *FOUR[:2], again, *rest])
    if taken:
        assert ids(select(mails, "p4@x", None)) == ["cover@x", "p1@x", "p2@x", "p3@x", "p4@x"]
    else:
        assert {len(group.patches) for group in mails.groups} <= {0, 2}


def changed(number: int, **more: str) -> list[str]:
    new = {"at": f"10:00:0{number}", "prefix": "PATCH", **more}
    prefix = new.pop("prefix")
    again = mail(f"[{prefix} {number}/4] wq: part {number}", f"p{number}@x", **new)  # type: ignore[arg-type]
    return [again if f"<p{number}@x>" in each else each for each in FOUR]


@pytest.mark.parametrize(
    "mails",
    [
        changed(4, author="Bo <bo@example.org>"),
        changed(4, prefix="PATCH RFC"),
        changed(4, prefix="PATCH v2"),
        changed(4, at="15:00:00"),
        changed(4, at="09:59:00"),
        [*FOUR, mail("[PATCH 4/4] wq: another part", "other@x", at="10:00:04")],
        [*FOUR, mail("[PATCH 2/4] net: other series", "other@x", at="10:01:00")],
    ],
    ids=["author", "prefix", "version", "hours later", "before the others", "two last", "part of another series"],
)
def test_parts_that_may_belong_to_another_series_are_refused_by_name(mails: list[str]) -> None:
    assert "v1 of the series is incomplete: patch 3/4, 4/4 are missing" in problem(mails, "p1@x", 1)


def test_parts_that_cannot_be_told_apart_are_named() -> None:
    found = problem([*FOUR, mail("[PATCH 4/4] wq: another part", "other@x", at="10:00:04")], "p1@x")
    assert "cannot be told from the rest of it: 'wq: part 3', 'wq: part 4', 'wq: another part'" in found
    assert "submit them as an mbox" in found


@pytest.mark.parametrize(("listed", "taken"), [("wq: part 1", True), ("net: something", False)])
def test_cover_letter_that_lists_other_patches_is_not_taken(listed: str, taken: bool) -> None:
    rest = "".join(f"  wq: part\n    {number}\n" for number in (2, 3, 4))
    cover = mail("[PATCH 0/4] wq: four", "cover@x", body=f"Why.\n\nAda (4):\n  {listed}\n{rest}", at="10:00:00")
    assert ("cover@x" in ids(select(thread([cover, *FOUR]), "p1@x", None))) is taken


def test_query_looks_for_the_rest_of_a_series_within_hours() -> None:
    rest = "(f:ada@example.org AND dt:20260105050001..20260105130001)"
    assert rest in revision_query(thread(FOUR[:2]), "p1@x")
    assert "dt:" not in revision_query(thread(V1), "less-v1-1@x")


@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                ["[PATCH 0/2] a", "[PATCH 1/2] b", "[PATCH v2 2/2] c", "Re: d", "[PATCH] e", "f", "[PATCH v9 9/9]"]
            ),
            st.integers(0, 5),
            st.integers(0, 5),
            st.integers(1, 28),
            st.booleans(),
        ),
        max_size=8,
    ),
    st.integers(0, 5),
    st.none() | st.integers(0, 3),
)
def test_any_thread_gives_a_complete_series_or_a_reason(
    mails: list[tuple[str, int, int, int, bool]], asked: int, revision: int | None
) -> None:
    texts = [
        mail(subject, f"{own}@x", to=f"{to}@x", day=day, body=None if patch else "x\n")
        for subject, own, to, day, patch in mails
    ]
    try:
        chosen = select(thread(texts), f"{asked}@x", revision)
    except ThreadProblem as error:
        assert str(error)
    else:
        assert chosen.patches and mbox.missing(chosen.patches) == []
