"""What subjects of mails say: examples from many lists."""

from __future__ import annotations

import pytest

from wqlab_contracts.mails.subjects import format_subject, parse_subject, split_version


@pytest.mark.parametrize(
    ("subject", "version", "counter", "title"),
    [
        ("[PATCH] wq: faster", None, None, "wq: faster"),
        ("[PATCH v3 02/10] wq: faster", 3, (2, 10), "wq: faster"),
        ("[v2,1/3] x", 2, (1, 3), "x"),
        ("[PATCH v3,net-next,2/4] x", 3, (2, 4), "x"),
        ("[net,v2,1/2] x", 2, (1, 2), "x"),
        ("[PATCH,v2 1/3] x", 2, (1, 3), "x"),
        ("[PATCHv2,1/3] x", 2, (1, 3), "x"),
        ("[dm-devel] [PATCH v3 1/3] x", 3, (1, 3), "x"),
        ("[RFC][PATCH 2/3] x", None, (2, 3), "x"),
        ("[[PATCH v3] 1/4] x", 3, (1, 4), "x"),
        ("[[RFC PATCH v2 3/4]] x", 2, (3, 4), "x"),
        ("[[PATCH 1/2] x [y] z", None, (1, 2), "x [y] z"),
        ("[PATCH 1/3][RFC] x", None, (1, 3), "x"),
        ("[PATCH 2/3] [media] x", None, (2, 3), "x"),
        ("[PATCH 5.10/5.15] x", None, None, "x"),
        ("[PATCH 5.10/5.15 1/2] x", None, (1, 2), "x"),
        ("[PATCH 6.1 6.6/6.12 v2] x", 2, None, "x"),
        ("[PATCH-v2 1/3] x", 2, (1, 3), "x"),
        ("[RFCv2 1/3] x", 2, (1, 3), "x"),
        ("[PATCH v4-resend 1/3] x", 4, (1, 3), "x"),
        ("[PATCH v2.1 2/3] x", 2, (2, 3), "x"),
        ("[PATCH -v2 1/3] x", 2, (1, 3), "x"),
        ("[PATCH -next -V3] x", 3, None, "x"),
        ("[PATCH0/8 v3] x", 3, (0, 8), "x"),
        ("[PATCH v4a 17/38] x", 4, (17, 38), "x"),
        ("[PATCH v5-fix 1/5] x", 5, (1, 5), "x"),
        ("[PATCHSET v10r1d2 00/17] x", 10, (0, 17), "x"),
        ("[RFC PATCH v2/resend 0/8] x", 2, (0, 8), "x"),
        ("[PATCH v6.15 v2 2/4] x", 2, (2, 4), "x"),
        ("[PATCH v5.15 4/9] x", None, (4, 9), "x"),
        ("[PATCH v6.6.y 4/9] x", None, (4, 9), "x"),
        ("[PATCH for v5.4] x", None, None, "x"),
        ("[PATCH v6.1] x", None, None, "x"),
        ("[PATCH v6.6 2/3] x", None, (2, 3), "x"),
        ("[stable v6.1 1/2] x", None, (1, 2), "x"),
        ("[PATCHSET v30.10 2/6] x", 30, (2, 6), "x"),
        ("[PATCH V2 1/3] x", 2, (1, 3), "x"),
        ("[PATCH v2.. 0/7] x", 2, (0, 7), "x"),
        ("[PATCH v 7] x", 7, None, "x"),
        ("[PATCH version 2 1/3] x", 2, (1, 3), "x"),
        ("[PATCH 2 of 3] x", None, (2, 3), "x"),
        ("[PATCH v2 2 / 3] x", 2, (2, 3), "x"),
        ("[PATCH v2 02/ 10] x", 2, (2, 10), "x"),
        ("[PATCH 5.10 / 5.15] x", None, None, "x"),
        ("sched: [not a prefix] v2 1/3", None, None, "sched: [not a prefix] v2 1/3"),
        ("[PATCH dev4 1/2] x", None, (1, 2), "x"),
    ],
)
def test_numbers_and_versions(subject: str, version: int | None, counter: tuple[int, int] | None, title: str) -> None:
    said = parse_subject(subject)
    assert (said.version, said.counter, said.title, said.is_reply) == (version, counter, title, False)


@pytest.mark.parametrize(
    "subject", ["Re: [PATCH 1/2] x", "AW: x", "Fwd: [PATCH] x", "[dm-devel] Re: [PATCH 1/2] x", "[list] RE: x"]
)
def test_replies_have_neither_number_nor_version(subject: str) -> None:
    said = parse_subject(subject)
    assert said.is_reply and said.counter is None and said.version is None and said.title == subject


@pytest.mark.parametrize(
    ("title", "left", "version"),
    [
        ("zone reports v4", "zone reports", 4),
        ("zone reports, (V2)", "zone reports", 2),
        ("zone reports v1", "zone reports v1", None),
        ("v2", "v2", None),
        ("," * 200_000 + "v2x", "," * 200_000 + "v2x", None),
    ],
    ids=["word", "parentheses", "first", "alone", "hostile"],
)
def test_version_at_the_end_of_a_title(title: str, left: str, version: int | None) -> None:
    assert split_version(title) == (left, version)


def test_rerolls_and_sets_are_told() -> None:
    assert parse_subject("[PATCH v2.1 2/3] x").reroll == 1
    assert parse_subject("[PATCH v2b 2/3] x").reroll == 2
    assert parse_subject("[PATCH v2-fixed 2/3] x").reroll == 1
    assert parse_subject("[PATCH v2-resend 2/3] x").reroll == 0
    assert parse_subject("[PATCHSET v29.4 08/13] x").names_set
    assert not parse_subject("[PATCH 1/3] x").names_set


@pytest.mark.parametrize("version", [1, 3])
@pytest.mark.parametrize("counter", [None, (0, 2), (2, 12)])
def test_written_subject_is_read_again(version: int, counter: tuple[int, int] | None) -> None:
    said = parse_subject(format_subject("x", version, counter))
    assert (said.version or 1, said.counter, said.title) == (version, counter, "x")
