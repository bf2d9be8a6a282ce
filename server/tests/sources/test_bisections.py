"""Bisections on a real git repository, through the real tick; the boots are scripted, with the noise of the devices."""

from __future__ import annotations

import random

import pytest

from wqlab_contracts.enums import BisectionState as State
from wqlab_contracts.enums import BisectionStepKind as Kind
from wqlab_contracts.enums import BisectionStepState as StepState
from wqlab_contracts.enums import OutboxEvent
from wqlab_contracts.messages import RunResult
from wqlab_server.bisections.views import bisections_of
from wqlab_server.models import Bisection, PendingEvent, Run, Submission
from wqlab_server.tick.tick import tick

from ..support.bisecting import Planted, begin, bisection, grow, steps, to_end
from ..support.lab import RunSession, infrastructure_result
from ..support.watching import Upstream, WatchingLab

pytestmark = pytest.mark.integration

COMMITS = 64
EFFECT = 0.025
"""About three standard deviations of a block's difference."""
BLOCKS = 10


def from_on(commits: list[str], culprit: str, effect: float = EFFECT):
    """Return the shift of each commit: from the culprit on."""
    late = set(commits[commits.index(culprit) :])
    return lambda commit: effect if commit in late else 0.0


def find_planted(watching: WatchingLab, upstream: Upstream, seed: int) -> tuple[bool, int, int]:
    """Bisect 64 commits with a planted culprit. Return whether it was found, the boots, and those of a plain search."""
    draw = random.Random(seed)
    commits = grow(upstream, COMMITS)
    culprit = draw.choice(commits[1:])
    planted = Planted(watching, from_on(commits, culprit), draw)
    found = to_end(watching, begin(watching, commits[0], "for-next", blocks=BLOCKS))
    right = found.state is State.FOUND and found.culprit == culprit
    kinds = [each.kind.value for each in steps(watching, found.id)]
    print(
        f"seed {seed}: {'right' if right else f'wrong: {found.state} {found.reason}'}, {found.boots} boots in "
        f"{kinds.count('probe')} steps, {kinds.count('confirm')} confirmations; plain bisection: {found.plain_boots} "
        f"boots; all boots {planted.boots}"
    )
    return right, found.boots, found.plain_boots


@pytest.mark.parametrize("seed", [1])
def test_planted_commit_among_64_is_found_with_fewer_boots(
    watching: WatchingLab, upstream: Upstream, seed: int
) -> None:
    right, boots, plain = find_planted(watching, upstream, seed)
    assert right
    assert plain == 6 * 2 * BLOCKS
    assert boots < plain / 2


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(2, 23))
def test_planted_commit_is_found_for_more_seeds(watching: WatchingLab, upstream: Upstream, seed: int) -> None:
    """Each test is one seed, because each needs a lab of its own; all are right at this effect."""
    right, boots, plain = find_planted(watching, upstream, seed)
    assert right and boots < plain


def test_exact_counts_need_one_block_for_each_commit(watching: WatchingLab, upstream: Upstream) -> None:
    commits = grow(upstream, 9)
    Planted(watching, from_on(commits, commits[4]))
    found = to_end(watching, begin(watching, commits[0], "for-next"))
    assert (found.state, found.culprit, found.first) == (State.FOUND, commits[4], commits[4])
    assert found.culprit_subject == "workqueue: raise max_active to 516"
    assert found.effect == 1 and found.culprit_effect == 1
    made = steps(watching, found.id)
    assert [each.kind for each in (made[0], made[-1])] == [Kind.ENDS, Kind.CONFIRM]
    assert {each.blocks for each in made if each.kind is Kind.PROBE} == {1}
    assert (made[-1].baseline, made[-1].candidate) == (commits[3], commits[4])
    with watching.transaction() as session:
        told = session.query(PendingEvent).filter(PendingEvent.event == OutboxEvent.REGRESSION_FOUND).count()
        first = session.get_one(Submission, made[0].submission_id)
        devices = {session.get_one(Submission, each.submission_id).request.targets[0].device for each in made[1:]}
    assert told == 0  # the regression is known; its steps tell nobody
    assert first.request.targets[0].device is None and len(devices) == 1 and None not in devices


def test_commits_that_do_not_build_are_a_range(watching: WatchingLab, upstream: Upstream) -> None:
    commits = grow(upstream, 12)
    planted = Planted(watching, from_on(commits, commits[6]))
    planted.broken = set(commits[5:8])
    found = to_end(watching, begin(watching, commits[0], "for-next"))
    assert found.state is State.RANGE, found.reason
    assert (found.first, found.culprit) == (commits[5], commits[8])
    assert found.reason == "one of 4 commits: the 3 before the last cannot be measured"
    unusable = [each for each in steps(watching, found.id) if each.state is StepState.UNUSABLE]
    assert {each.candidate for each in unusable} == set(commits[5:8])
    assert all(each.reason.endswith("does not build: kernel/workqueue.c: error") for each in unusable)
    confirmed = steps(watching, found.id)[-1]
    assert (confirmed.kind, confirmed.baseline, confirmed.candidate) == (Kind.CONFIRM, commits[4], commits[8])


def test_ends_that_do_not_differ_are_said_with_their_figures(watching: WatchingLab, upstream: Upstream) -> None:
    commits = grow(upstream, 4)
    Planted(watching)
    found = to_end(watching, begin(watching, commits[0], commits[4], ref="for-next"))
    assert (found.state, found.effect, found.culprit) == (State.NO_DIFFERENCE, 0, None)
    assert found.reason == "good and bad do not differ significantly in 2 blocks; --blocks measures more"
    assert len(steps(watching, found.id)) == 1


def test_good_that_is_no_ancestor_is_refused_with_the_merge_base(watching: WatchingLab, upstream: Upstream) -> None:
    start = upstream.git("rev-parse", "HEAD")
    upstream.push()
    upstream.git("switch", "--quiet", "-c", "other", start)
    upstream.git("commit", "--quiet", "--allow-empty", "-m", "empty")
    Planted(watching)
    found = to_end(watching, begin(watching, "other", "for-next"))
    assert found.state is State.FAILED
    assert "is not an ancestor of bad for-next" in found.reason and f"--good {start[:12]}" in found.reason


def merged(upstream: Upstream) -> dict[str, str]:
    """Commits `a`, then a merge of the side branch `x` - `y` - `z`, then `b`, all on for-next after `start`."""
    found = {"start": upstream.git("rev-parse", "HEAD"), "a": upstream.push()}
    upstream.git("switch", "--quiet", "-c", "side", found["start"])
    for name in ("x", "y", "z"):
        (upstream.path / "side.c").write_text(f"int {name};\n")
        upstream.git("add", "--all")
        upstream.git("commit", "--quiet", "-m", f"side: {name}")
        found[name] = upstream.git("rev-parse", "HEAD")
    upstream.git("switch", "--quiet", "for-next")
    upstream.git("merge", "--quiet", "--no-ff", "-m", "Merge side", "side")
    found["merge"] = upstream.git("rev-parse", "HEAD")
    found["b"] = upstream.push()
    return found


def test_commit_in_the_side_branch_of_a_merge_is_found(watching: WatchingLab, upstream: Upstream) -> None:
    commits = merged(upstream)
    late = {commits[name] for name in ("y", "z", "merge", "b")}
    Planted(watching, lambda commit: EFFECT if commit in late else 0.0)
    found = to_end(watching, begin(watching, commits["start"], "for-next"))
    assert (found.state, found.culprit, found.culprit_subject) == (State.FOUND, commits["y"], "side: y"), found.reason
    assert found.commits == 3
    ends = [(each.baseline, each.candidate) for each in steps(watching, found.id) if each.kind is Kind.ENDS]
    assert ends == [(commits["start"], commits["b"]), (commits["start"], commits["z"])]
    # Without going into it, the merge is the result.
    outer = to_end(watching, begin(watching, commits["start"], "for-next", into_merges=False))
    assert (outer.state, outer.culprit, outer.culprit_is_merge) == (State.FOUND, commits["merge"], True)


@pytest.mark.nightly
def test_merge_itself_is_the_culprit_if_neither_side_differs(watching: WatchingLab, upstream: Upstream) -> None:
    commits = merged(upstream)
    late = {commits["merge"], commits["b"]}
    Planted(watching, lambda commit: EFFECT if commit in late else 0.0)
    found = to_end(watching, begin(watching, commits["start"], "for-next"))
    assert (found.state, found.culprit, found.culprit_is_merge) == (State.FOUND, commits["merge"], True), found.reason
    last = steps(watching, found.id)[-1]
    assert (last.kind, last.baseline, last.candidate) == (Kind.CONFIRM, commits["a"], commits["merge"])


@pytest.mark.nightly
def test_oops_in_some_boots_is_bisected(watching: WatchingLab, upstream: Upstream) -> None:
    commits = grow(upstream, 10)
    late, draw = set(commits[7:]), random.Random(4)

    def oops(commit: str, boot: int) -> str:
        if commit in late and draw.random() < 0.6:
            return f"BUG: unable to handle page fault for address: {boot:#018x}"
        return ""

    planted = Planted(watching)
    planted.oops = oops
    found = to_end(watching, begin(watching, commits[0], "for-next", metric=None, failure=True, blocks=6))
    assert (found.state, found.culprit) == (State.FOUND, commits[7]), found.reason
    assert found.failure_title == "BUG: unable to handle page fault for address: #"
    assert found.failure_rate and found.effect is None
    assert any(each.passed and not each.failed for each in steps(watching, found.id))


@pytest.mark.nightly
def test_failure_that_both_ends_have_is_not_searched(watching: WatchingLab, upstream: Upstream) -> None:
    commits = grow(upstream, 3)
    planted = Planted(watching)
    planted.oops = lambda commit, boot: "kernel BUG at kernel/workqueue.c:12"
    found = to_end(watching, begin(watching, commits[0], "for-next", metric=None, failure=True))
    # The order of a block's boots is drawn: the good commit fails in the measurement of the ends, or in the next one.
    assert found.state in {State.NO_DIFFERENCE, State.FAILED} and found.culprit is None
    assert found.reason == "the good commit fails too: kernel BUG at kernel/workqueue.c:#"


@pytest.mark.nightly
def test_lab_failure_is_repeated_three_times(watching: WatchingLab, upstream: Upstream) -> None:
    commits = grow(upstream, 3)
    planted = Planted(watching, from_on(commits, commits[2]))
    planted.lost = 1000
    number = begin(watching, commits[0], "for-next")
    for attempt in (1, 2):
        watching.mark_all_good()
        watching.until_idle()
        watching.tick()
        made = steps(watching, number)
        assert [each.state for each in made] == [StepState.REPEATED] * attempt
        assert "the lab failed in submission" in bisection(watching, number).reason
        assert "it is tried again at" in bisection(watching, number).reason
        watching.sql("UPDATE orders SET due_at = now()")
    planted.lost = 0
    watching.mark_all_good()
    found = to_end(watching, number)
    assert (found.state, found.culprit) == (State.FOUND, commits[2]), found.reason


@pytest.mark.parametrize("watched", [pytest.param(True, marks=pytest.mark.nightly), False])
def test_branch_is_rewritten_in_the_middle(watching: WatchingLab, upstream: Upstream, watched: bool) -> None:
    """Commits before a head that the lab has seen stay usable; others nobody vouches for any more."""
    if not watched:
        watching.configure("")
    start = upstream.git("rev-parse", "HEAD")
    commits = grow(upstream, 3)
    Planted(watching, from_on(commits, commits[2]))
    number = begin(watching, commits[0], commits[-1], ref="for-next")
    while bisection(watching, number).state is not State.ENDS:
        watching.tick()
        watching.work()
    upstream.git("reset", "--quiet", "--hard", start)
    upstream.git("commit", "--quiet", "--allow-empty", "-m", "another history")
    found = to_end(watching, number)
    if watched:
        assert (found.state, found.culprit) == (State.FOUND, commits[2])
    else:
        assert found.state is State.FAILED
        assert "is neither on for-next nor on master of tree lab-tree" in found.reason


def test_cancel_in_the_middle_cancels_what_is_measured(watching: WatchingLab, upstream: Upstream) -> None:
    commits = grow(upstream, 8)
    Planted(watching, from_on(commits, commits[5]))
    number = begin(watching, commits[0], "for-next")
    while bisection(watching, number).state is not State.SEARCHING:
        watching.tick()
        if bisection(watching, number).state is not State.SEARCHING:
            watching.work()
    watching.post(f"bisections/{number}/cancel")
    found = to_end(watching, number)
    assert (found.state, found.reason) == (State.CANCELED, "")
    last = steps(watching, number)[-1]
    assert (last.kind, last.state) == (Kind.PROBE, StepState.CANCELED)
    assert watching.submission(last.submission_id).outcome == "canceled"


def test_server_that_restarts_repeats_no_step(watching: WatchingLab, upstream: Upstream) -> None:
    commits = grow(upstream, 8)
    Planted(watching, from_on(commits, commits[3]))
    number = begin(watching, commits[0], "for-next")
    for _ in range(60):
        # A server that starts has no messages, and finds what to do in the rows; two ticks in a row change nothing.
        lost, watching.sent[:] = list(watching.sent), []
        for _ in range(2):
            assert tick(watching.sessions, watching.settings, watching.app.state.data)
        watching.sql("UPDATE jobs SET nudged_at = NULL WHERE state = 'queued'")
        assert lost is not None
        watching.tick()
        watching.work()
        if bisection(watching, number).state is State.FOUND:
            break
    found = bisection(watching, number)
    assert (found.state, found.culprit) == (State.FOUND, commits[3]), found.reason
    made = steps(watching, number)
    assert len({each.submission_id for each in made}) == len(made)
    assert len([each for each in made if each.kind is Kind.ENDS]) == 1


class TestRevert:
    """A regression on hardware is measured once more: its commit reverted on top of the bad one."""

    @pytest.fixture
    def hardware(self, watching: WatchingLab) -> WatchingLab:
        file = watching.settings.data_dir / "device-types/device.yaml"
        file.write_text(file.read_text().replace("emulation: {memory_mib: 512}\n", ""))
        watching.app.state.data._checked_at = float("-inf")  # it is read at most once a second
        return watching

    def bisect(
        self, lab: WatchingLab, upstream: Upstream, *, elsewhere: bool, tries: int = 0
    ) -> tuple[Bisection, list[str]]:
        """Bisect eight commits of which the fifth takes a tenth of the throughput; it changes a file of its own with
        `elsewhere`, else the line that every later commit changes too."""
        commits = grow(upstream, 4)
        if elsewhere:
            (upstream.path / "kernel/slow.c").write_text("int slow;\n")
            upstream.git("add", "--all")
            upstream.git("commit", "--quiet", "-m", "workqueue: be slow")
            commits += [upstream.git("rev-parse", "HEAD")]
        commits += grow(upstream, 3 if elsewhere else 4)[1:]
        Planted(lab, from_on(commits, commits[5], -0.1), random.Random(1))
        number = begin(lab, commits[0], "for-next", metric="throughput", blocks=6)
        for _ in range(tries):
            lab.until_idle()
            lab.tick()
            lab.mark_all_good()
            lab.sql("UPDATE orders SET due_at = now()")
        return to_end(lab, number), commits

    def test_effect_of_the_revert_is_measured(self, hardware: WatchingLab, upstream: Upstream) -> None:
        found, commits = self.bisect(hardware, upstream, elsewhere=True)
        assert (found.state, found.culprit) == (State.FOUND, commits[5])
        last = steps(hardware, found.id)[-1]
        assert (last.kind, last.state, last.baseline, last.candidate) == (
            Kind.REVERT, StepState.MEASURED, commits[-1], commits[5],
        )  # fmt: skip
        assert last.effect is not None and 8 < last.effect < 14, "the throughput comes back"
        with hardware.transaction() as session:
            (view,) = bisections_of(session, [session.get_one(Bisection, found.id)])
        assert view.reverted is not None and view.reverted.effect == last.effect
        assert view.culprit_effect is not None and view.culprit_effect < 0

    def test_conflicting_revert_is_reported_and_the_commit_is_found(
        self, hardware: WatchingLab, upstream: Upstream
    ) -> None:
        found, commits = self.bisect(hardware, upstream, elsewhere=False)
        assert (found.state, found.culprit) == (State.FOUND, commits[5])
        last = steps(hardware, found.id)[-1]
        assert (last.kind, last.state) == (Kind.REVERT, StepState.UNUSABLE)
        assert "cannot be reverted on top of" in last.reason and "the files conflict" in last.reason

    def test_lost_lab_ends_with_the_commit_and_without_a_revert(
        self, hardware: WatchingLab, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        planted_run = Planted.run

        def run(planted: Planted, session: RunSession) -> RunResult | None:
            with hardware.transaction() as db:
                request = db.get_one(Submission, db.get_one(Run, session.job.run_id).submission_id).request
            if request.series and request.series.commits and request.series.commits.reverted:
                return infrastructure_result()
            return planted_run(planted, session)

        monkeypatch.setattr(Planted, "run", run)
        found, commits = self.bisect(hardware, upstream, elsewhere=True, tries=4)
        assert (found.state, found.culprit) == (State.FOUND, commits[5])
        tried = [each.state for each in steps(hardware, found.id) if each.kind is Kind.REVERT]
        assert tried == [StepState.REPEATED] * 3
