"""New heads of a branch or of tags, and which is measured next, without a database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from wqlab_contracts.enums import WatchedHeadState as State
from wqlab_contracts.specs import Batch
from wqlab_server.intake import head_lines
from wqlab_server.models import WatchedHead

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def heads(*states: State) -> list[WatchedHead]:
    """Return heads `a`, `b`, ... of one branch, seen an hour apart."""
    return [
        WatchedHead(
            id=number + 1, ref="next", name="next", commit="abcdefgh"[number], state=state, reason="",
            seen_at=NOW + number * timedelta(hours=1),
        )
        for number, state in enumerate(states)
    ]  # fmt: skip


LATER = NOW + timedelta(days=1)


def chosen(known: list[WatchedHead], batch: Batch) -> tuple[str, str, str] | None:
    """Return (head, parent, heads passed over) as letters."""
    choice = head_lines.choose(known, batch)
    if choice is None:
        return None
    return choice.head.commit, choice.parent.commit, "".join(head.commit for head in choice.passed_over)


@pytest.mark.parametrize("batch", [Batch.NEWEST, Batch.RANGE])
def test_newest_waiting_head_is_measured_against_the_last_measured_one(batch: Batch) -> None:
    known = heads(State.START, State.MEASURED, State.FAILED, State.WAITING, State.WAITING, State.WAITING)
    assert chosen(known, batch) == ("f", "b", "de")


def test_every_head_is_measured_against_the_one_before() -> None:
    known = heads(State.START, State.WAITING, State.WAITING)
    assert chosen(known, Batch.ALL) == ("b", "a", "")
    known[1].state = State.MEASURED
    assert chosen(known, Batch.ALL) == ("c", "b", "")


def test_nothing_is_chosen_while_a_head_is_measured_or_nothing_waits() -> None:
    assert chosen(heads(State.START, State.RUNNING, State.WAITING), Batch.ALL) is None
    assert chosen(heads(State.START, State.MEASURED), Batch.ALL) is None
    assert chosen([], Batch.ALL) is None


def test_branch_that_is_set_back_is_at_the_old_head_again() -> None:
    known = heads(State.START, State.MEASURED, State.WAITING)
    assert head_lines.branch_head(known, "next", "b", LATER) is None
    assert head_lines.last_seen(known).commit == "b"
    assert [head.commit for head in head_lines.left_behind(known, Batch.NEWEST)] == ["c"]
    assert head_lines.left_behind(known, Batch.ALL) == []
    assert head_lines.branch_head(known, "next", "b", LATER + timedelta(hours=1)) is None
    assert known[1].returned_at == LATER, "the same head again changes nothing"


def test_skipped_head_to_which_the_branch_is_set_back_waits_again() -> None:
    known = heads(State.START, State.SKIPPED, State.MEASURED)
    known[1].skipped_by_id = 3
    assert head_lines.branch_head(known, "next", "b", LATER) is None
    assert (known[1].state, known[1].skipped_by_id) == (State.WAITING, None)
    assert chosen(known, Batch.NEWEST) == ("b", "c", "")


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("v6.12-rc7", "v6.12"), ("v6.12-rc7", "v6.12-rc10"), ("v6.12", "v6.12.1"), ("v6.12.9", "v6.12.10"),
        ("v6.9", "v6.12"), ("v6.12.1", "v6.12.1-rt3"), ("next-20260131", "next-20260201"),
    ],
)  # fmt: skip
def test_versions_are_ordered(earlier: str, later: str) -> None:
    assert head_lines.version(earlier) < head_lines.version(later)


def test_only_matching_tags_are_heads_and_a_commit_is_one_head() -> None:
    tags = {"v6.12.1": "a", "v6.12.2": "b", "again-v6.12.2": "b", "v6.13": "c"}
    found = head_lines.tag_heads([], "v6.12.*", tags, NOW)
    assert [(head.name, head.state) for head in found] == [("v6.12.1", State.SKIPPED), ("v6.12.2", State.START)]
    for number, head in enumerate(found):
        head.id = number
    later = head_lines.tag_heads(found, "v6.12.*", tags | {"v6.12.4": "e", "v6.12.0": "f", "v6.12.3": "d"}, LATER)
    assert [(head.name, head.state) for head in later] == [
        ("v6.12.0", State.SKIPPED),
        ("v6.12.3", State.WAITING),
        ("v6.12.4", State.WAITING),
    ]
