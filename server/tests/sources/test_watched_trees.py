"""New heads of a watched branch, from the push to the measured head."""

from __future__ import annotations

import itertools

import pytest
from sqlalchemy import select

from wqlab_contracts.enums import JobKind
from wqlab_contracts.enums import WatchedHeadState as State
from wqlab_server.models import Run, Submission

from ..support.watching import FILE, Upstream, WatchingLab

pytestmark = pytest.mark.integration


def test_first_head_is_the_starting_point_and_the_next_is_measured_against_it(
    watching: WatchingLab, upstream: Upstream
) -> None:
    start = upstream.git("rev-parse", "for-next")
    watching.look()
    (head,) = watching.heads()
    assert (head.state, head.commit, head.submission_id) == (State.START, start, None)
    assert "starting point" in head.reason
    assert watching.watch().from_file and watching.watch().looked_at is not None

    new = upstream.push()
    watching.look()
    watching.look()  # the same head again changes nothing
    assert watching.states() == [State.START, State.RUNNING]
    assert watching.arms_of(watching.heads()[1]) == (start, new)
    watching.measure()
    first = watching.heads()[1]
    assert (first.state, first.reason, first.cut) == (State.MEASURED, "", "")
    assert first.related is not None and (first.related.ahead, first.related.behind) == (1, 0)
    assert first.verdicts == ["improvement"] and first.devices.keys() == {"locks@device"}
    assert first.submission_id is not None
    assert watching.submission(first.submission_id).owner == "bot"

    # The next one is measured on the same device, against the head before.
    latest = upstream.push()
    watching.look()
    second = watching.heads()[2]
    assert watching.arms_of(second) == (new, latest)
    with watching.transaction() as session:
        run = session.scalars(select(Run).where(Run.submission_id == second.submission_id)).one()
    assert run.wanted_device == first.devices["locks@device"]
    watching.measure()
    assert watching.heads()[2].devices == first.devices


@pytest.mark.parametrize(
    "batch", ["newest", *(pytest.param(each, marks=pytest.mark.nightly) for each in ("range", "all"))]
)
def test_five_heads_that_come_faster_than_the_device(watching: WatchingLab, upstream: Upstream, batch: str) -> None:
    watching.configure(f"{FILE}batch: {batch}\n")
    watching.look()
    commits = []
    for _ in range(5):
        commits.append(upstream.push())
        watching.look()  # the first one is submitted, and its run does not end
    assert watching.states() == [State.START, State.RUNNING, *[State.WAITING] * 4]
    for _ in range(6):
        watching.measure()
    heads = watching.heads()[1:]
    if batch == "all":
        assert [head.state for head in heads] == [State.MEASURED] * 5
        assert [watching.arms_of(head) for head in heads[1:]] == list(itertools.pairwise(commits))
        assert not any(head.ranged for head in heads)
        return
    assert [head.state for head in heads] == [State.MEASURED, *[State.SKIPPED] * 3, State.MEASURED]
    assert watching.arms_of(heads[4]) == (commits[0], commits[4])
    for head in heads[1:4]:
        assert head.skipped_by_id == heads[4].id
        assert f"{commits[4][:12]} was seen before it could be measured" in head.reason
    assert heads[4].ranged is (batch == "range")
    assert heads[4].related is not None and heads[4].related.ahead == 4


def test_restart_between_any_two_steps_measures_each_head_once(watching: WatchingLab, upstream: Upstream) -> None:
    """Messages are lost with the process that would send them, and another server does the rest."""
    watching.look()
    upstream.push()
    other = WatchingLab.__new__(WatchingLab)
    other.__dict__.update(watching.__dict__)
    watching.sql("UPDATE watches SET due_at = now()")
    watching.tick()
    watching.sent.clear()  # the message to look is lost
    watching.sql("UPDATE jobs SET nudged_at = now() - interval '1 hour' WHERE state = 'queued'")
    other.tick()
    other.work(JobKind.LIST_BRANCHES)
    other.tick()  # heads are stored, and the head is submitted
    watching.sent.clear()  # the message to apply is lost
    watching.tick()
    other.tick()
    assert watching.states() == [State.START, State.RUNNING]
    watching.sql("UPDATE jobs SET nudged_at = NULL, nudges = 0")
    watching.measure()
    assert watching.states() == [State.START, State.MEASURED]
    assert watching.order("tree", watching.heads()[1].id).tries == 1


def test_submission_that_was_made_before_its_head_was_marked_is_found_again(
    watching: WatchingLab, upstream: Upstream
) -> None:
    watching.look()
    upstream.push()
    watching.look()
    watching.sql("UPDATE watched_heads SET state = 'waiting', submission_id = NULL WHERE state = 'running'")
    watching.sql("UPDATE orders SET state = 'waiting', submission_id = NULL, tries = 0")
    watching.tick()
    with watching.transaction() as session:
        made = session.scalars(select(Submission)).one()
    assert watching.heads()[1].submission_id == made.id


def test_rewritten_branch_is_measured_and_said(watching: WatchingLab, upstream: Upstream) -> None:
    watching.look()
    upstream.push()
    watching.look()
    watching.measure()
    upstream.git("commit", "--quiet", "--amend", "-m", "workqueue: another message")
    upstream.push()
    watching.look()
    watching.measure()
    last = watching.heads()[-1]
    assert last.state is State.MEASURED and last.related is not None
    assert (last.related.ahead, last.related.behind) == (2, 1)
    assert "the branch was rewritten: 1 commits" in last.reason


@pytest.mark.nightly
def test_branch_that_goes_back_to_an_earlier_head_is_said(watching: WatchingLab, upstream: Upstream) -> None:
    start = upstream.git("rev-parse", "for-next")
    watching.look()
    measured = upstream.push()
    watching.look()
    watching.measure()
    running = upstream.push()
    watching.look()
    skipped = upstream.push()
    watching.look()
    upstream.git("reset", "--hard", "--quiet", measured)
    watching.look()
    watching.measure()
    heads = {head.commit: head for head in watching.heads()}
    assert len(heads) == 4, "no head is stored twice"
    assert heads[start].state is State.START
    assert heads[running].state is State.MEASURED
    assert heads[measured].returned_at is not None and "set back to this head" in heads[measured].reason
    assert heads[skipped].state is State.SKIPPED and "the branch went back to" in heads[skipped].reason

    # The next head is compared with the one that the branch is at.
    upstream.value = 513
    new = upstream.push()
    watching.look()
    assert watching.arms_of(watching.heads()[-1]) == (measured, new)
