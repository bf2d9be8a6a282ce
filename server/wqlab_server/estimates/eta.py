"""When a submission will be finished, and what it is doing, in words. Pure.

An estimate comes from measured times only: how long boots of this plan on this device type took, how long builds of
this recipe took. Where nothing was measured yet there is no estimate, and the words say so.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from wqlab_contracts.enums import JobState, SubmissionState


@dataclass(frozen=True)
class Eta:
    finish_at: datetime | None
    what: str
    done_boots: int
    total_boots: int


@dataclass(frozen=True)
class BuildLeft:
    """A build that the submission needs; times in seconds."""

    arm: str
    recipe: str
    state: JobState
    elapsed_s: float
    progress: str
    done: int
    total: int
    usual_s: float | None
    """How long such a build took before; None when none was measured."""

    def left_s(self) -> float | None:
        if self.state is JobState.FINISHED:
            return 0.0
        if self.state is JobState.RUNNING and 0 < self.done <= self.total:
            return self.elapsed_s * (self.total - self.done) / self.done
        return None if self.usual_s is None else max(self.usual_s - self.elapsed_s, 0.0)


@dataclass(frozen=True)
class RunLeft:
    """A run of the submission; times in seconds."""

    plan: str
    device_type: str
    state: JobState
    progress: str
    done_boots: int
    total_boots: int
    boot_elapsed_s: float
    """Since the present boot began; 0 without one."""
    boot_s: float | None
    """How long one such boot takes, everything included; None when none was measured."""
    devices: int
    """Devices of the type in the pool."""
    ahead_boots: int
    """Boots that others' runs on the type still have to make first."""

    def left_s(self) -> float | None:
        if self.state is JobState.FINISHED:
            return 0.0
        if self.boot_s is None:
            return None
        return max((self.total_boots - self.done_boots) * self.boot_s - min(self.boot_elapsed_s, self.boot_s), 0.0)


def estimate(
    state: SubmissionState,
    now: datetime,
    finished_at: datetime | None,
    *,
    builds: Sequence[BuildLeft],
    runs: Sequence[RunLeft],
    planned_targets: int,
    apply_progress: str = "",
) -> Eta:
    """`planned_targets` counts the targets of the request: before the builds are known they are all there is to say."""
    done = sum(run.done_boots for run in runs)
    total = sum(run.total_boots for run in runs)
    if state is SubmissionState.FINISHED:
        return Eta(finished_at, "finished", done, total)
    left_s = _left_s(builds, runs)
    finish_at = None
    if left_s is not None and (runs or planned_targets == 0):
        finish_at = now + timedelta(seconds=math.ceil(left_s))
    words = _words(state, builds, runs, planned_targets, apply_progress)
    if finish_at is None:
        words += "; no estimate yet: nothing like this was timed before"
    return Eta(finish_at, words, done, total)


def _left_s(builds: Sequence[BuildLeft], runs: Sequence[RunLeft]) -> float | None:
    """Builds one after another, then runs: side by side over the devices of each type, types side by side."""
    build_left = [build.left_s() for build in builds]
    if any(left is None for left in build_left):
        return None
    by_type: dict[str, float] = defaultdict(float)
    for run in runs:
        left = run.left_s()
        if left is None or run.devices < 1:
            return None
        waiting = run.ahead_boots * (run.boot_s or 0.0) if run.state in {JobState.QUEUED, JobState.WAITING} else 0.0
        by_type[run.device_type] += left + waiting
    devices = {run.device_type: run.devices for run in runs}
    longest = {
        type_: max(*(run.left_s() or 0.0 for run in runs if run.device_type == type_), total / devices[type_])
        for type_, total in by_type.items()
    }
    return sum(left for left in build_left if left is not None) + max(longest.values(), default=0.0)


def _words(
    state: SubmissionState,
    builds: Sequence[BuildLeft],
    runs: Sequence[RunLeft],
    planned_targets: int,
    apply_progress: str,
) -> str:
    if state is SubmissionState.APPLYING:
        now = apply_progress or "the series is being applied"
        return f"{now}; then kernels are built and {_count(planned_targets, 'target')} measured"
    if state is SubmissionState.COMPARING:
        return "boots are compared and the report is written"
    parts = []
    unfinished = [build for build in builds if build.state is not JobState.FINISHED]
    for build in unfinished:
        what = {JobState.RUNNING: build.progress or "compiling", JobState.QUEUED: "waits for a builder"}
        parts.append(f"{build.arm} kernel ({build.recipe}): {what.get(build.state, 'waits for its source')}")
    for run in runs:
        if run.state is JobState.FINISHED:
            continue
        name = f"{run.plan} on {run.device_type}"
        if run.state is JobState.RUNNING:
            parts.append(f"{name}: {run.progress or 'the device is being prepared'}")
        elif not unfinished:
            ahead = f", {_count(run.ahead_boots, 'boot')} of other runs first" if run.ahead_boots else ""
            parts.append(f"{name}: waits for a device{ahead}")
    left = sum(run.total_boots - run.done_boots for run in runs if run.state is not JobState.FINISHED)
    parts.append(f"{_count(left, 'boot')} left" if runs else f"then {_count(planned_targets, 'target')} measured")
    return "; ".join(parts)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
