"""A lab that watches a real git repository: looks, applies and commit lists are those of the real worker, boots are
scripted."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from sqlalchemy import select

from wqlab_contracts.enums import JobKind, Outcome
from wqlab_contracts.enums import WatchedHeadState as State
from wqlab_contracts.messages import ApplyJob, ApplyResult
from wqlab_contracts.messages.commit_lists import CommitListJob, CommitListResult
from wqlab_contracts.messages.lookups import LookupJob
from wqlab_server.intake import watches
from wqlab_server.models import Order, Submission, Watch, WatchedHead
from wqlab_server.orders import orders
from wqlab_server.storage.db import Message
from wqlab_worker.apply.apply_series import apply
from wqlab_worker.apply.list_commits import list_commits
from wqlab_worker.apply.lookup import look_up
from wqlab_worker.failures import JobError
from wqlab_worker.workspace import Workspace

from .lab import LabUnderTest, ScriptedWorker

FAKE_KERNEL = Path(__file__).parents[3] / "worker" / "tests" / "fakekernel"
DATE = "2026-11-01T00:00:00Z"
"""Date of all commits, so that each has the same hash in every test."""
FILE = """\
kind: tree
name: next
enabled: true
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
            f"GIT_{role}_{part}": value
            for role in ("AUTHOR", "COMMITTER")
            for part, value in (("NAME", "ada@example.org"), ("EMAIL", "ada@example.org"), ("DATE", DATE))
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
    """A lab whose looks, applies and commit lists are real."""

    workspace: Workspace

    def handle(self, message: Message) -> None:
        if message.task not in {JobKind.LIST_BRANCHES, JobKind.LIST_COMMITS}:
            super().handle(message)
            return
        assert message.id is not None
        if message.task == JobKind.LIST_COMMITS:
            self.list_commits(message.id)
            return
        claim = self.worker.claim(message.id)
        if claim is not None:
            result = look_up(LookupJob.model_validate(claim["job"]), self.workspace)
            self.worker.finish(message.id, claim["fence"], result)

    def list_commits(self, list_id: int) -> None:
        claim = self.worker.claim(list_id)
        if claim is None:
            return
        try:
            result = list_commits(CommitListJob.model_validate(claim["job"]), self.workspace)
        except JobError as error:
            result = CommitListResult(outcome=Outcome.FAILED, failure=error.failure)
        self.worker.finish(list_id, claim["fence"], result)

    def apply_for_real(self, job: ApplyJob, worker: ScriptedWorker) -> ApplyResult:
        result = apply(job, self.workspace)
        bundle = result.candidate.bundle if result.candidate is not None else None
        if bundle is not None:
            worker.upload(bundle.kind, bundle.name, self.workspace.path_of(bundle).read_bytes())
        return result

    def look(self) -> None:
        """Look now, and store what is found."""
        self.sql("UPDATE watches SET due_at = now()")
        self.tick()
        self.work(JobKind.LIST_BRANCHES)
        self.tick()
        assert self.tick_errors() == {}

    def heads(self, ref: str = "for-next") -> list[WatchedHead]:
        with self.transaction() as session:
            return list(session.scalars(select(WatchedHead).where(WatchedHead.ref == ref).order_by(WatchedHead.id)))

    def states(self, ref: str = "for-next") -> list[State]:
        return [head.state for head in self.heads(ref)]

    def watch(self) -> Watch:
        with self.transaction() as session:
            return session.scalars(select(Watch)).one()

    def order(self, source: str, key: int | str) -> Order:
        with self.transaction() as session:
            found = orders.find(session, source, key)
            assert found is not None
            return found

    def waiting_for(self) -> str:
        """Return why heads of the watched tree wait."""
        with self.transaction() as session:
            return orders.why_orders_wait(session, watches.TREE_SOURCE, "next")

    def configure(self, text: str) -> None:
        """Write the file of the watch; remove it if the text is empty."""
        file = self.settings.data_dir / "intake/watches/next.yaml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        if not text:
            file.unlink()
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
