"""Bisections in a lab whose commits are real: commits with planted values, noise and failures."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select

from wqlab_contracts.api.bisections import OPEN_STATES, BisectionRequest
from wqlab_contracts.enums import Arm, ErrorKind, Outcome
from wqlab_contracts.messages import BuildJob, BuildResult, RunResult
from wqlab_server.bisections import service
from wqlab_server.models import Bisection, BisectionStep, HistoryShift, Run, Submission

from .lab import RunSession, failed, passing_build
from .scripted_worker import ScriptedWorker
from .watching import Upstream, WatchingLab

BOOT_SD = 0.006
"""Standard deviation between boots, as the emulated devices have it, relative to the value."""
LEVEL = 34.0


def grow(upstream: Upstream, count: int) -> list[str]:
    """Add `count` commits to for-next and return them, the head before first."""
    return [upstream.git("rev-parse", "HEAD"), *(upstream.push() for _ in range(count))]


@dataclass
class Planted:
    """What the kernels of the lab give: a level with noise, shifted from one commit on, and failures."""

    lab: WatchingLab
    shifted: Callable[[str], float] = lambda commit: 0.0
    """Commit -> its shift, relative to the level."""
    noise: random.Random | None = None
    """Source of the noise; None: exact counts."""
    broken: set[str] = field(default_factory=set)
    """Commits that do not build."""
    oops: Callable[[str, int], str] = lambda commit, boot: ""
    """Commit, and number of the boot of the lab -> what the kernel reports; empty if it passes."""
    lost: int = 0
    """Number of runs that the lab loses before one passes."""
    boots: int = 0

    def __post_init__(self) -> None:
        self.lab.worker.on_run = self.run
        self.lab.worker.on_build = self.build

    def build(self, job: BuildJob, worker: ScriptedWorker) -> BuildResult:
        if job.source.commit in self.broken:
            return BuildResult(outcome=Outcome.FAILED, failure=failed(ErrorKind.USER, "kernel/workqueue.c: error"))
        return passing_build(job, worker)

    def run(self, session: RunSession) -> RunResult | None:
        if self.lost:
            self.lost -= 1
            return RunResult(outcome=Outcome.FAILED, failure=failed(ErrorKind.INFRASTRUCTURE, "the outlet is dead"))
        with self.lab.transaction() as db:
            submission = db.get_one(Submission, db.get_one(Run, session.job.run_id).submission_id)
            assert submission.request.series and submission.request.series.commits
            pair = submission.request.series.commits
        candidate = pair.candidate if pair.reverted is None else f"{pair.candidate} without {pair.reverted}"
        commits = {Arm.BASELINE: pair.baseline, Arm.CANDIDATE: candidate}
        session.worker.value = lambda arm, _s, metric, block: self.value(commits[arm])
        for plan in session.remaining:
            for arm in plan.arms:
                self.boots += 1
                report = self.oops(commits[arm], self.boots)
                if report:
                    failure = failed(ErrorKind.KERNEL, report)
                    session.send_failed_boot(plan, arm, failure)
                    return RunResult(outcome=Outcome.FAILED, failure=failure)
            session.send_block(plan)
            session.heartbeat()  # a busy machine takes longer than a lease
        return RunResult(outcome=Outcome.PASSED)

    def value(self, commit: str) -> float:
        value = LEVEL * (1 + self.shifted(commit))
        if self.noise is None:
            return round(value)
        # One boot in twenty is an outlier, as boots of the devices are.
        spread = BOOT_SD * (3 if self.noise.random() < 0.05 else 1)
        return value * (1 + self.noise.gauss(0, spread))


def request(good: str, bad: str, **more: Any) -> BisectionRequest:
    values = {"plan": "locks", "device_type": "device", "metric": "locks_per_flush", **more}
    return BisectionRequest(tree="lab-tree", good=good, bad=bad, **values)


def begin(lab: WatchingLab, good: str, bad: str, **more: Any) -> int:
    with lab.transaction() as session:
        return service.create(session, lab.data, request(good, bad, **more), "bot", limited=False).id


def bisection(lab: WatchingLab, bisection_id: int) -> Bisection:
    with lab.transaction() as session:
        return session.get_one(Bisection, bisection_id)


def steps(lab: WatchingLab, bisection_id: int) -> list[BisectionStep]:
    with lab.transaction() as session:
        query = select(BisectionStep).where(BisectionStep.bisection_id == bisection_id).order_by(BisectionStep.id)
        return list(session.scalars(query))


def shifts(lab: WatchingLab) -> list[HistoryShift]:
    with lab.transaction() as session:
        return list(session.scalars(select(HistoryShift).order_by(HistoryShift.id)))


def to_end(lab: WatchingLab, bisection_id: int, most: int = 100) -> Bisection:
    """Work until the bisection has ended, and return it."""
    for _ in range(most):
        found = bisection(lab, bisection_id)
        if found.state not in OPEN_STATES:
            assert lab.tick_errors() == {}
            return found
        lab.tick()
        lab.work(limit=1000)
    raise AssertionError(f"bisection goes on: {found.state}, {found.reason}, {lab.tick_errors()}")
