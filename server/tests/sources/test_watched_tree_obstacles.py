"""What keeps a head of a watched tree from being measured or compared, and what is said then."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from wqlab_contracts.enums import Arm, ErrorKind, JobKind, JobState, Outcome
from wqlab_contracts.enums import WatchedHeadState as State
from wqlab_contracts.messages import RunResult
from wqlab_server.models import Submission
from wqlab_server.pipeline.advance import advance

from ..support.lab import RunSession, failed, infrastructure_result, passing_run
from ..support.watching import FILE, Upstream, WatchingLab

pytestmark = pytest.mark.integration


@pytest.mark.nightly
def test_quarantined_device_is_replaced_and_the_history_is_cut(watching: WatchingLab, upstream: Upstream) -> None:
    watching.look()
    upstream.push()
    watching.look()
    watching.measure()
    used = watching.heads()[1].devices["locks@device"]
    other = {"device-1": "device-2", "device-2": "device-1"}[used]

    # It is quarantined while the run waits for it.
    upstream.push()
    watching.look()
    watching.work(JobKind.APPLY, JobKind.BUILD)
    head = watching.heads()[-1]
    assert head.submission_id is not None
    watching.sql("UPDATE devices SET health = 'quarantined', health_reason = 'smoke' WHERE name = :name", name=used)
    watching.sent.clear()
    advance(watching.sessions, watching.settings, head.submission_id)
    watching.measure()
    head = watching.heads()[-1]
    assert (head.state, head.devices) == (State.MEASURED, {"locks@device": other})
    assert head.cut == f"locks@device was measured on {other} instead of {used}"

    # It is quarantined before the next head is submitted.
    watching.sql("UPDATE devices SET health = 'good' WHERE name = :name", name=used)
    watching.sql("UPDATE devices SET health = 'quarantined', health_reason = 'fire' WHERE name = :name", name=other)
    upstream.push()
    watching.look()
    watching.measure()
    head = watching.heads()[-1]
    assert head.devices == {"locks@device": used}
    assert f"{other}, which measured the head before, is quarantined: fire" in head.cut


@pytest.mark.nightly
def test_busy_device_is_waited_for(watching: WatchingLab, upstream: Upstream) -> None:
    watching.look()
    upstream.push()
    watching.look()
    watching.measure()
    used = watching.heads()[1].devices["locks@device"]
    watching.sql("UPDATE devices SET health = 'unknown' WHERE name = :name", name=used)
    watching.worker.on_health_check = lambda run: None  # the check does not end
    upstream.push()
    watching.look()
    for _ in range(3):
        watching.work(JobKind.LIST_BRANCHES, JobKind.APPLY, JobKind.BUILD, "wqlab.advance", JobKind.RUN)
        watching.tick()
    submission = watching.heads()[-1].submission_id
    assert submission is not None
    (run,) = watching.runs(submission)
    assert (run.state, run.wanted_device, run.device_name) == (JobState.QUEUED, used, None)


@pytest.mark.nightly
def test_failure_of_the_lab_is_tried_again_and_then_given_up(watching: WatchingLab, upstream: Upstream) -> None:
    watching.configure(f"{FILE}minutes_a_day: 1000\n")
    watching.worker.on_run = lambda run: infrastructure_result()
    watching.look()
    upstream.push()
    watching.look()
    for attempt in range(1, 4):
        for _ in range(6):
            watching.mark_all_good()
            watching.measure()
        (_, head) = watching.heads()
        assert watching.order("tree", head.id).tries == attempt
        assert head.state is (State.WAITING if attempt < 3 else State.FAILED), head.reason
        assert "power switch does not answer" in head.reason
        watching.sql("UPDATE orders SET due_at = now()")
        watching.tick()
    with watching.transaction() as session:
        assert len(session.scalars(select(Submission)).all()) == 3

    # The next head is compared with the last one that was measured.
    watching.worker.on_run = passing_run
    watching.mark_all_good()
    new = upstream.push()
    watching.look()
    assert watching.arms_of(watching.heads()[-1]) == (watching.heads()[0].commit, new)


def test_head_that_does_not_boot_is_a_range_to_bisect(watching: WatchingLab, upstream: Upstream) -> None:
    def panics(run: RunSession) -> RunResult:
        failure = failed(ErrorKind.KERNEL, "kernel panic")
        run.send_failed_boot(run.remaining[0], Arm.CANDIDATE, failure)
        return RunResult(outcome=Outcome.FAILED, failure=failure)

    watching.configure(f"{FILE}batch: range\n")
    watching.worker.on_run = panics
    watching.look()
    upstream.push()
    watching.look()
    watching.measure()
    head = watching.heads()[1]
    assert (head.state, head.ranged) == (State.FAILED, True)
    assert "kernel panic" in head.reason


def test_quiet_hours_budget_and_owner_delay_submissions_and_are_said(watching: WatchingLab, upstream: Upstream) -> None:
    watching.look()
    upstream.push()
    for more, text in (
        ("quiet_hours: [{begins: '00:00', ends: '12:00'}, {begins: '12:00', ends: '00:00'}]\n", "quiet hours"),
        ("minutes_a_day: 1\n", "has 1 a day; raise minutes_a_day"),
        ("parameters: {nonsense: 1}\n", "has no parameter 'nonsense'"),
    ):
        watching.configure(FILE + more)
        watching.look()
        assert watching.states() == [State.START, State.WAITING]
        assert text in watching.waiting_for()
    watching.configure(FILE.replace("owner: bot", "owner: nobody"))
    watching.look()
    assert "no account 'nobody'" in watching.waiting_for()
    watching.configure(f"{FILE}minutes_a_day: 100\n")
    watching.look()
    assert (watching.waiting_for(), watching.states()) == ("", [State.START, State.RUNNING])
    watching.measure()
    assert watching.states() == [State.START, State.MEASURED]
    watching.sql("UPDATE orders SET quoted_s = 6010 WHERE source = 'tree'")
    upstream.push()
    watching.look()
    assert watching.states() == [State.START, State.MEASURED, State.WAITING]
    assert "100 a day are used; some is left again at" in watching.waiting_for()


def test_tags_are_one_line_in_the_order_of_their_versions(watching: WatchingLab, upstream: Upstream) -> None:
    watching.configure(FILE.replace("branches: [for-next]", 'tags: ["v6.12*"]'))
    for name in ("v6.12-rc7", "v6.12", "v6.12.9", "v5.10.1"):
        upstream.push()
        upstream.git("tag", "-a", "-m", name, name)
    watching.look()
    assert [(head.name, head.state) for head in watching.heads("v6.12*")] == [
        ("v6.12-rc7", State.SKIPPED),
        ("v6.12", State.SKIPPED),
        ("v6.12.9", State.START),
    ]
    upstream.push()
    upstream.git("tag", "v6.12.10")
    upstream.git("tag", "v6.12.2", "HEAD~2")
    upstream.git("commit", "--quiet", "--allow-empty", "-m", "late")
    upstream.git("tag", "v6.12.3")
    watching.look()
    watching.measure()
    heads = {head.name: head for head in watching.heads("v6.12*")}
    assert "v6.12.2" not in heads, "a second tag of a commit that is known"
    assert heads["v6.12.10"].state is State.MEASURED
    assert heads["v6.12.3"].state is State.SKIPPED
    assert heads["v6.12.3"].reason == "appeared after a tag of a higher version (v6.12.9)"


def test_repository_that_cannot_be_read_is_said_and_looked_at_again(watching: WatchingLab, upstream: Upstream) -> None:
    watching.configure(FILE.replace("for-next", "gone"))
    watching.look()
    assert watching.watch().problem == "the repository has no branch gone"
    moved = upstream.path.rename(upstream.path.with_name("moved"))
    watching.look()
    assert "cannot list the branches" in watching.watch().problem
    moved.rename(upstream.path)
    watching.configure(FILE)
    watching.look()
    assert (watching.watch().problem, watching.states()) == ("", [State.START])


def test_tree_that_leaves_the_file_is_removed_and_its_heads_stay(watching: WatchingLab, upstream: Upstream) -> None:
    watching.look()
    watching.configure("")
    upstream.push()
    watching.look()
    assert watching.watch().removed_at is not None
    assert watching.states() == [State.START]
    watching.configure(FILE)
    watching.look()
    assert watching.watch().removed_at is None
    assert watching.states() == [State.START, State.RUNNING]
    watching.configure("")
    watching.measure()
    assert watching.states() == [State.START, State.MEASURED], "what is being measured ends"
