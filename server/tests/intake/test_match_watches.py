"""Mails of a list become series, and watches take some of them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from pydantic import ValidationError

from wqlab_contracts.api.touches import TouchedFile
from wqlab_contracts.enums import DecisionReason
from wqlab_contracts.messages.list_mails import ListMail
from wqlab_contracts.specs.watches import ListWatch, QuietHours, is_quiet
from wqlab_server.intake.listed_series import ListedSeries, collect
from wqlab_server.intake.match_watches import Refused, Taken, judge, judge_all, propose_nothing

from ..support.watched_list import NOON, patch


def series(*, asks: bool = False, chained: bool = False, version: int = 1) -> list[ListMail]:
    """Return a cover letter `c` and two patches `p1` and `p2`."""
    second = "p1" if chained else "c"
    return [
        patch("c", 0, 2, asks=asks, version=version),
        patch("p1", 1, 2, in_reply_to="c", version=version),
        patch("p2", 2, 2, in_reply_to=second, references=["c", second], version=version),
    ]


def watch(**changes: Any) -> ListWatch:
    fields: dict[str, Any] = {
        "kind": "list",
        "name": "wq",
        "archive": "lkml",
        "tree": "linus",
        "owner": "list",
        "targets": ["smoke@tiny"],
    }
    return ListWatch(**{**fields, **changes})


def one(mails: list[ListMail]) -> ListedSeries:
    (found,) = collect(mails)
    return found


@pytest.mark.parametrize("chained", [False, True])
def test_series_is_complete_in_whatever_order_its_mails_come(chained: bool) -> None:
    mails = series(chained=chained)
    for seed in range(10):
        random.Random(seed).shuffle(mails)
        found = one(mails)
        assert found.is_complete and [mail.message_id for mail in found.mails] == ["c", "p1", "p2"]
    assert one(mails[:1] if mails[0].number else mails[1:2]).is_complete is False


def test_missing_patch_is_named() -> None:
    found = one([mail for mail in series() if mail.message_id != "p2"])
    assert found.missing == [2] and not found.is_complete


def test_series_whose_patches_reply_to_an_unknown_mail_awaits_its_cover_letter() -> None:
    cover, *patches = series()
    assert one(patches).is_complete and one(patches).awaits_cover_letter
    assert not one([cover, *patches]).awaits_cover_letter
    alone = [patch("p1", 1, 2), patch("p2", 2, 2, in_reply_to="p1")]
    assert one(alone).is_complete and not one(alone).awaits_cover_letter


def in_parts(**changes: Any) -> list[ListMail]:
    """Return a cover letter that asks, and three patches of which none answers another."""
    cover = patch("c", 0, 3, asks=True, date=NOON)
    return [cover, *(patch(f"p{n}", n, 3, date=NOON + timedelta(seconds=n)) for n in (1, 2)), _third(**changes)]


def _third(**changes: Any) -> ListMail:
    return patch("p3", 3, 3, **{"date": NOON + timedelta(seconds=3), **changes})


def test_series_in_several_threads_is_one() -> None:
    for seed in range(10):
        mails = in_parts()
        random.Random(seed).shuffle(mails)
        found = one(mails)
        assert (found.root, found.asks, found.is_complete) == ("c", True, True)
        assert [mail.message_id for mail in found.mails] == ["c", "p1", "p2", "p3"]
    threaded = [mail.model_copy(update={"in_reply_to": "lost"}) for mail in in_parts()[1:]]
    assert one([in_parts()[0], *threaded]).asks, "the cover letter in a thread of its own"


@pytest.mark.parametrize(
    "changes",
    [
        {"author": "Bo <bo@example.org>"},
        {"date": None},
        {"date": NOON - timedelta(seconds=1)},
        {"date": NOON + timedelta(hours=5)},
        {"subject": "[PATCH net-next 3/3] part 3"},
    ],
)
def test_parts_that_may_belong_to_another_series_stay_incomplete(changes: dict[str, Any]) -> None:
    assert not any(found.is_complete for found in collect(in_parts(**changes)))


def test_parts_of_two_series_at_a_time_stay_incomplete() -> None:
    other = patch("o3", 3, 3, date=NOON + timedelta(minutes=1))
    assert not any(found.is_complete for found in collect([*in_parts(), other]))


def test_replies_and_other_mails_belong_to_no_series() -> None:
    reply = patch("r", 1, 2, in_reply_to="p1", is_reply=True, subject="Re: [PATCH 1/2] workqueue: lock less")
    assert one([*series(), reply, patch("t", has_patch=False)]).is_complete


def test_single_patch_is_a_series_and_asks_itself() -> None:
    found = one([patch("s", asks=True)])
    assert found.is_complete and found.asks
    assert not one([patch("c", 0, 2), patch("p", 1, 2, in_reply_to="c", asks=True)]).asks, "a patch of several"


def test_revision_in_the_thread_of_the_first_is_a_series_of_its_own() -> None:
    second = [
        patch("v2c", 0, 2, version=2, in_reply_to="c"),
        patch("v2p1", 1, 2, version=2, in_reply_to="v2c", references=["c", "v2c"]),
        patch("v2p2", 2, 2, version=2, in_reply_to="v2c", references=["c", "v2c"]),
    ]
    first, later = collect([*series(), *second])
    assert (first.version, later.version) == (1, 2) and first.is_complete and later.is_complete


def test_series_without_cover_letter_in_the_old_thread_is_found() -> None:
    second = [
        patch("v2p1", 1, 2, version=2, in_reply_to="c"),
        patch("v2p2", 2, 2, version=2, in_reply_to="v2p1", references=["c", "v2p1"]),
    ]
    assert [found.is_complete for found in collect([*series(), *second])] == [True, True]


@pytest.mark.parametrize(
    ("subject", "version"), [("[PATCHSET v2] lock less", 2), ("lock less", 1), ("[PATCHv2 0/2] lock less", 2)]
)
def test_cover_letter_without_number_or_with_another_version_is_found(subject: str, version: int) -> None:
    cover = patch("c", subject=subject, has_patch=False, paths=[], asks=True)
    found = one([patch("p2", 2, 2, in_reply_to="c"), cover, patch("p1", 1, 2, in_reply_to="c")])
    assert found.is_complete and found.asks and not found.awaits_cover_letter
    assert (found.root, found.version, found.cover is not None) == ("c", version, True)


def test_new_version_whose_patches_all_answer_the_old_cover_letter_is_found() -> None:
    second = [patch(f"v2p{number}", number, 2, version=2, in_reply_to="c") for number in (2, 1)]
    assert [(found.version, found.is_complete) for found in collect([*series(), *second])] == [(1, True), (2, True)]


def test_mail_without_patches_below_is_no_series() -> None:
    assert collect([patch("m", subject="a bug", has_patch=False, paths=[])]) == []


def test_only_series_that_ask_are_taken_by_default() -> None:
    unasked = judge(watch(), one(series()))
    assert isinstance(unasked, Refused) and unasked.reason is DecisionReason.NOT_ASKED
    taken = judge(watch(targets=["xfs-fsync@xeon-2s", "smoke@tiny"]), one(series(asks=True)))
    assert isinstance(taken, Taken) and taken.targets == ("xfs-fsync@xeon-2s", "smoke@tiny")


def test_watch_measures_what_a_series_touches() -> None:
    changed: list[TouchedFile] = []

    def propose(files: Sequence[TouchedFile]) -> list[str]:
        changed.extend(files)
        return ["xfs-fsync@xeon-2s", "cmwq-load@ryzen-3900x"]

    cover, first, second = series()
    first = first.model_copy(update={"symbols": {"kernel/workqueue.c": ["flush_work"]}})
    second = second.model_copy(update={"paths": ["fs/xfs/xfs_log.c"]})
    touching = watch(only_if_asked=False, what_it_touches=True, paths=["kernel/"], targets=[])
    taken = judge(touching, one([cover, first, second]), propose)
    assert isinstance(taken, Taken) and taken.targets == ("xfs-fsync@xeon-2s", "cmwq-load@ryzen-3900x")
    assert changed == [
        TouchedFile(path="kernel/workqueue.c", symbols=["flush_work"]),
        TouchedFile(path="fs/xfs/xfs_log.c"),
    ]
    bounded = watch(only_if_asked=False, what_it_touches=True, paths=["kernel/"], targets=["cmwq-load@ryzen-3900x"])
    (some,) = judge_all([bounded], one(series()), propose)
    assert isinstance(some, Taken) and some.targets == ("cmwq-load@ryzen-3900x",)
    other = bounded.model_copy(update={"targets": ["smoke@tiny"]})
    none = judge(other, one(series()), propose)
    assert isinstance(none, Refused) and "`targets` has none of these" in none.detail
    nothing = judge(touching, one(series()), propose_nothing)
    assert isinstance(nothing, Refused) and nothing.reason is DecisionReason.PATHS
    assert nothing.detail == "the lab has no plan for the files and functions that it changes"


def test_series_may_ask_for_what_it_touches() -> None:
    touching = watch(what_it_touches=True, targets=[])
    asked = judge(touching, one(series(asks=True)), lambda _: ["xfs-fsync@xeon-2s"])
    assert isinstance(asked, Taken) and asked.targets == ("xfs-fsync@xeon-2s",)
    unasked = judge(touching, one(series()), lambda _: ["xfs-fsync@xeon-2s"])
    assert isinstance(unasked, Refused) and unasked.reason is DecisionReason.NOT_ASKED
    nothing = judge(touching, one(series(asks=True)))
    assert isinstance(nothing, Refused) and nothing.reason is DecisionReason.PATHS


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"paths": ["kernel/workqueue.c"]}, None),
        ({"paths": ["kernel/"]}, None),
        ({"paths": ["kernel"]}, DecisionReason.PATHS),
        ({"paths": ["fs/xfs/"]}, DecisionReason.PATHS),
        ({"subjects": ["WORKQUEUE"]}, None),
        ({"subjects": ["xfs"]}, DecisionReason.SUBJECTS),
        ({"authors": ["Ada@example.org"]}, None),
        ({"authors": ["@example.org"]}, None),
        ({"authors": ["@le.org"]}, DecisionReason.AUTHORS),
        ({"paths": ["kernel/"], "authors": ["bo@example.org"]}, DecisionReason.AUTHORS),
    ],
)
def test_each_condition_has_to_match(changes: dict[str, Any], reason: DecisionReason | None) -> None:
    answer = judge(watch(only_if_asked=False, **changes), one(series()))
    assert (answer.reason if isinstance(answer, Refused) else None) == reason


def test_first_watch_that_takes_a_series_counts() -> None:
    asked = one(series(asks=True))
    watches = [watch(name="narrow", paths=["fs/"]), watch(name="wide"), watch(name="wider")]
    narrow, wide, wider = judge_all(watches, asked)
    assert isinstance(narrow, Refused) and narrow.reason is DecisionReason.PATHS
    assert isinstance(wide, Taken)
    assert isinstance(wider, Refused) and (wider.reason, wider.detail) == (
        DecisionReason.OTHER_WATCH,
        "watch wide takes it",
    )


def test_quiet_hours_reach_over_midnight() -> None:
    night = watch(quiet_hours=[QuietHours.model_validate({"begins": "22:00", "ends": "06:00Z"})])
    quiet = [hour for hour in range(24) if is_quiet(night.quiet_hours, NOON.replace(hour=hour))]
    assert quiet == [0, 1, 2, 3, 4, 5, 22, 23]
    assert is_quiet(night.quiet_hours, datetime(2026, 1, 5, 17, tzinfo=timezone(timedelta(hours=-6))))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"targets": []}, "has to say what is measured"),
        ({"only_if_asked": False}, "every series of the list"),
        ({"quiet_hours": [{"begins": "06:00", "ends": "06:00"}]}, "no time at all"),
        ({"quiet_hours": [{"begins": "06:00+02:00", "ends": "08:00"}]}, "must be a time of day in UTC"),
        ({"targets": ["smoke"]}, "targets"),
    ],
)
def test_watch_that_cannot_be_meant_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        watch(**changes)


def test_a_sender_that_nobody_has_checked_is_no_author() -> None:
    found = one(series())
    listed = watch(only_if_asked=False, authors=[found.author.rpartition("<")[2].rstrip(">")])
    assert isinstance(judge(listed, found), Taken)
    refused = judge(listed, found, sender_checked=False)
    assert isinstance(refused, Refused)
    assert refused.reason is DecisionReason.AUTHORS and "dkim_checked" in refused.detail
    assert judge_all([listed], found, sender_checked=False) == [refused]
    by_path = watch(only_if_asked=False, subjects=["patch"])
    assert judge(by_path, found, sender_checked=False) == judge(by_path, found)


def test_patches_of_somebody_else_below_a_cover_letter_are_not_its_authors() -> None:
    """Anybody may reply to a cover letter, and the lab measures what it is told to of its author."""
    cover, first, second = series()
    forged = patch("f1", 1, 2, in_reply_to="c", author="Mallory <mallory@example.net>")
    listed = watch(only_if_asked=False, authors=["ada@example.org"])
    mixed = judge(listed, one([cover, forged, second]))
    assert isinstance(mixed, Refused) and mixed.reason is DecisionReason.AUTHORS
    for order in ([forged, cover, first, second], [cover, second, first, forged]):
        found = one(order)
        assert [mail.message_id for mail in found.mails] == ["c", "p1", "p2"]
        assert isinstance(judge(listed, found), Taken)
