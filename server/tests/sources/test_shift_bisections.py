"""Confirmed shifts of a watched tree are bisected without a hand, within the tree's budget."""

from __future__ import annotations

import pytest

from wqlab_contracts.enums import BisectionState as State
from wqlab_contracts.enums import BisectionStepKind as Kind
from wqlab_contracts.enums import OutboxEvent, ShiftState
from wqlab_server.models import PendingEvent, WatchedHead

from ..support.bisecting import Planted, bisection, shifts, steps, to_end
from ..support.watching import Upstream, WatchingLab

pytestmark = pytest.mark.integration


def with_shift(
    watching: WatchingLab, upstream: Upstream, late: set[str], commits: int = 6, culprit: int = 3
) -> list[str]:
    """Measure a head, then one that is `commits` later, until the shift is bisected; return these commits, of which one
    is the culprit."""
    Planted(watching, lambda commit: 6 / 34 if commit in late else 0.0)
    watching.look()
    upstream.push()
    watching.look()
    watching.measure()
    made = [upstream.push() for _ in range(commits)]
    late.update(made[culprit:])
    watching.look()
    for _ in range(40):
        if (found := shifts(watching)) and found[0].bisection_id is not None:
            return made
        watching.tick()
        watching.work()
    raise AssertionError(f"no shift is bisected: {[each.reason for each in shifts(watching)]}")


def test_planted_regression_is_found_confirmed_and_bisected(watching: WatchingLab, upstream: Upstream) -> None:
    made = with_shift(watching, upstream, set())
    (shift,) = shifts(watching)
    assert (shift.state, shift.effect) == (ShiftState.CONFIRMED, 6)
    assert shift.bisection_id is not None
    found = to_end(watching, shift.bisection_id)
    assert (found.state, found.culprit, found.commits) == (State.FOUND, made[3], 6), found.reason
    assert (found.owner, found.watch, found.ref) == ("bot", "next", "for-next")
    ends = [each for each in steps(watching, found.id) if each.kind is Kind.ENDS]
    assert [each.submission_id for each in ends] == [shift.submission_id]  # the paired run is not repeated
    with watching.transaction() as session:
        told = session.query(PendingEvent).filter(PendingEvent.event == OutboxEvent.REGRESSION_FOUND).all()
        assert [event.submission_id for event in told] == [shift.submission_id]
    headers = {"Authorization": f"Bearer {watching.token}"}
    seen = watching.client.get(f"/api/v1/history/shifts/{shift.id}", headers=headers).json()
    assert seen["bisection"] == {
        "id": found.id, "state": "found", "culprit": made[3], "first": made[3],
        "subject": "workqueue: raise max_active to 517",
    }  # fmt: skip
    with watching.transaction() as session:
        (event,) = session.query(PendingEvent).filter(PendingEvent.event == OutboxEvent.CULPRIT_FOUND).all()
        head = session.query(WatchedHead).filter(WatchedHead.id == shift.after_id).one().submission_id
    assert event.submission_id == shift.submission_id  # the one of regression.found
    # The head's submission, the paired run and each step lead to the bisection.
    for submission in (head, shift.submission_id, *(each.submission_id for each in steps(watching, found.id))):
        listed = watching.client.get(f"/api/v1/bisections?submission={submission}", headers=headers).json()
        assert [each["id"] for each in listed["items"]] == [found.id]
    whole = watching.client.get(f"/api/v1/bisections/{found.id}", headers=headers).json()
    assert whole["shift_id"] == shift.id
    (level,) = whole["levels"]
    assert [each["commit"] for each in level["commits"]] == made
    assert max(level["commits"], key=lambda each: each["probability"])["commit"] == made[3]
    assert level["commits"][-1]["effect"] == 6


@pytest.mark.nightly
def test_shift_of_one_commit_needs_no_further_run(watching: WatchingLab, upstream: Upstream) -> None:
    made = with_shift(watching, upstream, set(), commits=1, culprit=0)
    (shift,) = shifts(watching)
    assert shift.bisection_id is not None
    found = to_end(watching, shift.bisection_id)
    assert (found.state, found.culprit, found.boots) == (State.FOUND, made[0], 0)
    assert [each.submission_id for each in steps(watching, found.id)] == [shift.submission_id]


@pytest.mark.nightly
def test_budget_of_the_tree_bounds_its_bisections(watching: WatchingLab, upstream: Upstream) -> None:
    with_shift(watching, upstream, set())
    (shift,) = shifts(watching)
    assert shift.bisection_id is not None
    watching.sql("UPDATE orders SET quoted_s = 1e6")
    watching.until_idle()
    watching.tick()
    found = bisection(watching, shift.bisection_id)
    assert (found.state, found.boots) == (State.ENDS, 0)
    assert "a day are used; some is left again at" in found.reason
    watching.sql("UPDATE orders SET quoted_s = 1, due_at = now()")
    assert to_end(watching, found.id).state is State.FOUND


@pytest.mark.nightly
def test_disabled_tree_is_not_bisected(watching: WatchingLab, upstream: Upstream) -> None:
    with_shift(watching, upstream, set())
    (shift,) = shifts(watching)
    watching.sql("UPDATE watches SET enabled_at = NULL")
    watching.until_idle()
    watching.tick()
    assert shift.bisection_id is not None
    assert bisection(watching, shift.bisection_id).reason == "waits: the watch next is disabled or removed"
