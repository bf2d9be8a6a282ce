"""Estimate when a submission will finish, and describe its current work in words. Pure.

Estimates use measured times only: past boots of the plan on the device type, and past builds of the recipe. Without a
measured time there is no estimate, and the description says so.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from wqlab_contracts.enums import JobState, SubmissionState


@dataclass(frozen=True)
class Estimate:
    finish_at: datetime | None
    what: str
    """The current work, in words."""
    done_boots: int
    total_boots: int


@dataclass(frozen=True)
class RemainingBuild:
    """A build that the submission needs; times are in seconds."""

    arm: str
    recipe: str
    state: JobState
    elapsed_s: float
    progress: str
    done: int
    total: int
    typical_s: float | None
    """Mean duration of past builds like this; None when none was measured."""

    def remaining_s(self) -> float | None:
        """Return the seconds until the build is done; None if unknown."""
        if self.state is JobState.FINISHED:
            return 0.0
        if self.state is JobState.RUNNING and 0 < self.done <= self.total:
            return self.elapsed_s * (self.total - self.done) / self.done
        return None if self.typical_s is None else max(self.typical_s - self.elapsed_s, 0.0)


@dataclass(frozen=True)
class RemainingRun:
    """A run of the submission; times are in seconds."""

    plan: str
    device_type: str
    state: JobState
    progress: str
    done_boots: int
    total_boots: int
    boot_elapsed_s: float
    """Time since the current boot started; 0 without one."""
    boot_s: float | None
    """Mean time of one boot from power cycle to result; None when none was measured."""
    devices: int
    """Number of devices of the type in the pool."""
    ahead_boots: int
    """Number of boots of other runs on the type that come first."""

    def remaining_s(self) -> float | None:
        """Return the device time in seconds that the run still needs; None if unknown."""
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
    builds: Sequence[RemainingBuild],
    runs: Sequence[RemainingRun],
    planned_targets: int,
    apply_progress: str = "",
) -> Estimate:
    """Estimate the finish time and describe the current work.

    `planned_targets` is the number of targets in the request; the description uses it while no run exists yet.
    """
    done = sum(run.done_boots for run in runs)
    total = sum(run.total_boots for run in runs)
    left = sum(run.total_boots - run.done_boots for run in runs if run.state is not JobState.FINISHED)
    if state is SubmissionState.FINISHED:
        return Estimate(finished_at, "finished", done, total)
    remaining_s = _remaining_s(builds, runs)
    finish_at = None
    if remaining_s is not None and (runs or planned_targets == 0):
        finish_at = now + timedelta(seconds=math.ceil(remaining_s))
    text = _describe_progress(state, builds, runs, planned_targets, boots_left=left, apply_progress=apply_progress)
    if finish_at is None:
        text += "; no estimate yet: no similar build or boot was measured before"
    return Estimate(finish_at, text, done, total)


def _remaining_s(builds: Sequence[RemainingBuild], runs: Sequence[RemainingRun]) -> float | None:
    """Sum the builds, which run one after another, and the longest device type.

    Runs share the devices of their type; device types work in parallel.
    """
    build_left = [build.remaining_s() for build in builds]
    if any(left is None for left in build_left):
        return None
    by_type: dict[str, float] = defaultdict(float)
    for run in runs:
        left = run.remaining_s()
        if left is None or run.devices < 1:
            return None
        waiting = run.ahead_boots * (run.boot_s or 0.0) if run.state in {JobState.QUEUED, JobState.WAITING} else 0.0
        by_type[run.device_type] += left + waiting
    devices = {run.device_type: run.devices for run in runs}
    longest = {
        type_: max(*(run.remaining_s() or 0.0 for run in runs if run.device_type == type_), total / devices[type_])
        for type_, total in by_type.items()
    }
    return sum(left for left in build_left if left is not None) + max(longest.values(), default=0.0)


def _describe_progress(
    state: SubmissionState,
    builds: Sequence[RemainingBuild],
    runs: Sequence[RemainingRun],
    planned_targets: int,
    *,
    boots_left: int,
    apply_progress: str,
) -> str:
    if state is SubmissionState.APPLYING:
        now = apply_progress or "the series is being applied"
        return f"{now}; then kernels are built and {_count(planned_targets, 'target')} measured"
    if state is SubmissionState.COMPARING:
        return "boots are being compared and the report is being written"
    parts = []
    unfinished = [build for build in builds if build.state is not JobState.FINISHED]
    for build in unfinished:
        activity = {JobState.RUNNING: build.progress or "compiling", JobState.QUEUED: "waits for a builder"}
        parts.append(f"{build.arm} kernel ({build.recipe}): {activity.get(build.state, 'waits for its source')}")
    for run in runs:
        if run.state is JobState.FINISHED:
            continue
        name = f"{run.plan} on {run.device_type}"
        if run.state is JobState.RUNNING:
            parts.append(f"{name}: {run.progress or 'the device is being prepared'}")
        elif not unfinished:
            ahead = f", {_count(run.ahead_boots, 'boot')} of other runs first" if run.ahead_boots else ""
            parts.append(f"{name}: waits for a device{ahead}")
    parts.append(f"{_count(boots_left, 'boot')} left" if runs else f"then {_count(planned_targets, 'target')} measured")
    return "; ".join(parts)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
