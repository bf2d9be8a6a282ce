"""Watched trees from a push to the measured head: real git repositories, real look and apply; boots are scripted."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, select

from wqlab_contracts.celery_names import APPLY, BUILD, LOOKUP, RUN
from wqlab_contracts.enums import Arm, ErrorKind, JobState, UserRole
from wqlab_contracts.enums import WatchedHeadState as State
from wqlab_contracts.messages import ApplyJob, ApplyResult, RunResult
from wqlab_contracts.messages.lookups import LookupJob
from wqlab_server.models import Run, Submission, WatchedHead, WatchedTree
from wqlab_server.pipeline.advance import advance
from wqlab_server.settings import Settings
from wqlab_server.storage.db import Message
from wqlab_worker.apply.apply_series import apply
from wqlab_worker.apply.lookup import look_up
from wqlab_worker.workspace import Workspace

from ..support.lab import LabUnderTest, RunSession, ScriptedWorker, infrastructure_result, passing_run
from ..support.people import add_user

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]
FAKE_KERNEL = Path(__file__).parents[3] / "worker" / "tests" / "fakekernel"
FILE = """\
watched_trees:
  - name: next
    tree: lab-tree
    branches: [for-next]
    targets: [locks@device]
    owner: bot
"""


class Upstream:
    """A repository with the branches master and for-next."""

    def __init__(self, path: Path) -> None:
        self.path = path
        shutil.copytree(FAKE_KERNEL, path)
        self.git("init", "--quiet", "--initial-branch=master")
        self.git("add", "--all")
        self.git("commit", "--quiet", "-m", "toy: start")
        self.git("switch", "--quiet", "-c", "for-next")
        self.value = 512

    def git(self, *arguments: str) -> str:
        who = {
            f"GIT_{role}_{part}": "ada@example.org" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")
        }
        environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", "HOME": str(self.path), **who}
        done = subprocess.run(
            ["git", *arguments], cwd=self.path, env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def push(self) -> str:
        """Add a commit to for-next and return it."""
        file = self.path / "kernel/workqueue.c"
        new = self.value + 1
        text = file.read_text()
        assert f"= {self.value};" in text
        file.write_text(text.replace(f"= {self.value};", f"= {new};"))
        self.value = new
        self.git("commit", "--quiet", "--all", "-m", f"workqueue: raise max_active to {new}")
        return self.git("rev-parse", "HEAD")


class WatchingLab(LabUnderTest):
    """A lab whose looks and applies are real."""

    workspace: Workspace

    def handle(self, message: Message) -> None:
        if message.task != LOOKUP:
            super().handle(message)
            return
        assert message.id is not None
        claim = self.worker.claim("lookups", message.id)
        if claim is not None:
            result = look_up(LookupJob.model_validate(claim["job"]), self.workspace)
            self.worker.finish("lookups", message.id, claim["fence"], result)

    def apply_for_real(self, job: ApplyJob, _: ScriptedWorker) -> ApplyResult:
        return apply(job, self.workspace)

    def look(self) -> None:
        """Look now, and store what is found."""
        self.sql("UPDATE watched_trees SET due_at = now()")
        self.tick()
        self.work(LOOKUP)
        self.tick()
        assert self.tick_errors() == {}

    def heads(self, ref: str = "for-next") -> list[WatchedHead]:
        with self.transaction() as session:
            return list(session.scalars(select(WatchedHead).where(WatchedHead.ref == ref).order_by(WatchedHead.id)))

    def states(self, ref: str = "for-next") -> list[State]:
        return [head.state for head in self.heads(ref)]

    def tree(self) -> WatchedTree:
        with self.transaction() as session:
            return session.scalars(select(WatchedTree)).one()

    def configure(self, text: str) -> None:
        (self.settings.data_dir / "intake/watched-trees.yaml").write_text(text)
        self.app.state.data._checked_at = float("-inf")  # it is read at most once a second

    def measure(self) -> None:
        """Work until everything that is submitted is measured and recorded."""
        self.until_idle()
        self.tick()

    def arms_of(self, head: WatchedHead) -> tuple[str, str]:
        """Return the commits of baseline and candidate of a head's submission."""
        with self.transaction() as session:
            submission = session.get_one(Submission, head.submission_id)
            assert submission.request.series and submission.request.series.commits
            return submission.request.series.commits.baseline, submission.request.series.commits.candidate


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    return Upstream(tmp_path / "linux")


@pytest.fixture
def watching(
    settings: Settings, engine: Engine, upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[WatchingLab]:
    trees = f"default: lab-tree\ntrees: [{{name: lab-tree, summary: s, url: {upstream.path}}}]\n"
    (settings.data_dir / "kernels/trees.yaml").write_text(trees)
    lab = WatchingLab(settings.model_copy(update={"local_git_paths": str(upstream.path)}), engine)
    lab.configure(FILE)
    (tmp_path / "cache").mkdir()
    lab.workspace = Workspace(tmp_path / "cache", local_git_paths=(upstream.path,))
    lab.worker.on_apply = lab.apply_for_real
    with lab.client, lab.transaction() as session:
        add_user(session, "bot", UserRole.SUBMITTER)
    lab.mark_all_good()
    yield lab


def test_first_head_is_the_starting_point_and_the_next_is_measured_against_it(
    watching: WatchingLab, upstream: Upstream
) -> None:
    start = upstream.git("rev-parse", "for-next")
    watching.look()
    (head,) = watching.heads()
    assert (head.state, head.commit, head.submission_id) == (State.START, start, None)
    assert "starting point" in head.reason
    assert watching.tree().from_file and watching.tree().looked_at is not None

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


@pytest.mark.parametrize("batch", ["newest", "range", "all"])
def test_five_heads_that_come_faster_than_the_device(watching: WatchingLab, upstream: Upstream, batch: str) -> None:
    watching.configure(f"{FILE}    batch: {batch}\n")
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


def test_restart_between_any_two_steps_measures_each_head_once(
    watching: WatchingLab, upstream: Upstream, engine: Engine
) -> None:
    """Messages are lost with the process that would send them, and another server does the rest."""
    watching.look()
    upstream.push()
    other = WatchingLab.__new__(WatchingLab)
    other.__dict__.update(watching.__dict__)
    watching.sql("UPDATE watched_trees SET due_at = now()")
    watching.tick()
    watching.sent.clear()  # the message to look is lost
    watching.sql("UPDATE lookups SET nudged_at = now() - interval '1 hour' WHERE state = 'queued'")
    other.tick()
    other.work(LOOKUP)
    other.tick()  # heads are stored, and the head is submitted
    watching.sent.clear()  # the message to apply is lost
    watching.tick()
    other.tick()
    assert watching.states() == [State.START, State.RUNNING]
    watching.sql("UPDATE applies SET nudged_at = NULL, nudges = 0")
    watching.measure()
    assert watching.states() == [State.START, State.MEASURED]
    with watching.transaction() as session:
        assert len(session.scalars(select(Submission)).all()) == 1


def test_submission_that_was_made_before_its_head_was_marked_is_found_again(
    watching: WatchingLab, upstream: Upstream
) -> None:
    watching.look()
    upstream.push()
    watching.look()
    watching.sql(
        "UPDATE watched_heads SET state = 'waiting', submission_id = NULL, attempts = 0 WHERE state = 'running'"
    )
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
    watching.work(APPLY, BUILD)
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
        watching.work(LOOKUP, APPLY, BUILD, "wqlab.advance", RUN)
        watching.tick()
    submission = watching.heads()[-1].submission_id
    assert submission is not None
    (run,) = watching.runs(submission)
    assert (run.state, run.wanted_device, run.device_name) == (JobState.QUEUED, used, None)


def test_failure_of_the_lab_is_tried_again_and_then_given_up(watching: WatchingLab, upstream: Upstream) -> None:
    watching.configure(f"{FILE}    minutes_a_day: 1000\n")
    watching.worker.on_run = lambda run: infrastructure_result()
    watching.look()
    upstream.push()
    watching.look()
    for attempt in range(1, 4):
        for _ in range(6):
            watching.mark_all_good()
            watching.measure()
        (_, head) = watching.heads()
        assert head.attempts == attempt
        assert head.state is (State.WAITING if attempt < 3 else State.FAILED), head.reason
        assert "power switch does not answer" in head.reason
        watching.sql("UPDATE watched_heads SET due_at = now() WHERE due_at IS NOT NULL")
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
        from ..support.lab import failed

        failure = failed(ErrorKind.KERNEL, "kernel panic")
        run.send_failed_boot(run.remaining[0], Arm.CANDIDATE, failure)
        return RunResult(outcome="failed", failure=failure)

    watching.configure(f"{FILE}    batch: range\n")
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
        ("    quiet_hours: [{begins: '00:00', ends: '12:00'}, {begins: '12:00', ends: '00:00'}]\n", "quiet hours"),
        ("    minutes_a_day: 1\n", "minutes of device time, and minutes_a_day is 1"),
        ("    parameters: {nonsense: 1}\n", "has no parameter 'nonsense'"),
    ):
        watching.configure(FILE + more)
        watching.look()
        assert watching.states() == [State.START, State.WAITING]
        assert text in watching.tree().waiting_for
    watching.configure(FILE.replace("owner: bot", "owner: nobody"))
    watching.look()
    assert "nobody is no account that may submit" in watching.tree().waiting_for
    watching.configure(f"{FILE}    minutes_a_day: 100\n")
    watching.look()
    assert (watching.tree().waiting_for, watching.states()) == ("", [State.START, State.RUNNING])
    watching.measure()
    assert watching.states() == [State.START, State.MEASURED]
    watching.sql("UPDATE watched_heads SET quoted_s = 6010 WHERE quoted_s IS NOT NULL")
    upstream.push()
    watching.look()
    assert watching.states() == [State.START, State.MEASURED, State.WAITING]
    assert "100 of 100 minutes of device time are used; some is left again at" in watching.tree().waiting_for


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
    assert watching.tree().problem == "the repository has no branch gone"
    moved = upstream.path.rename(upstream.path.with_name("moved"))
    watching.look()
    assert "cannot list the branches" in watching.tree().problem
    moved.rename(upstream.path)
    watching.configure(FILE)
    watching.look()
    assert (watching.tree().problem, watching.states()) == ("", [State.START])


def test_tree_that_leaves_the_file_is_removed_and_its_heads_stay(watching: WatchingLab, upstream: Upstream) -> None:
    watching.look()
    watching.configure("watched_trees: []\n")
    upstream.push()
    watching.look()
    assert watching.tree().removed_at is not None
    assert watching.states() == [State.START]
    watching.configure(FILE)
    watching.look()
    assert watching.tree().removed_at is None
    assert watching.states() == [State.START, State.RUNNING]
