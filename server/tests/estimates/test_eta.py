"""Estimated end of a submission."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from wqlab_contracts.enums import JobState, SubmissionState
from wqlab_server.estimates.eta import Estimate, RemainingBuild, RemainingRun, estimate

NOW = datetime(2026, 1, 1, tzinfo=UTC)
BUILD = RemainingBuild("baseline", "measure", JobState.FINISHED, 0, "", 0, 0, None)
RUN = RemainingRun("flush", "tiny", JobState.RUNNING, "boot 3 of 12", 2, 12, 10.0, 30.0, 1, 0)


def after(builds: list[RemainingBuild], runs: list[RemainingRun]) -> Estimate:
    return estimate(SubmissionState.RUNNING, NOW, None, builds=builds, runs=runs, planned_targets=1)


def seconds(builds: list[RemainingBuild], runs: list[RemainingRun]) -> float | None:
    finish_at = after(builds, runs).finish_at
    return None if finish_at is None else (finish_at - NOW).total_seconds()


def test_remaining_boots_take_the_time_of_one_boot_each() -> None:
    assert seconds([BUILD], [RUN]) == 10 * 30 - 10


def test_slow_boot_does_not_reduce_the_time_of_other_boots() -> None:
    assert seconds([], [replace(RUN, boot_elapsed_s=500)]) == 9 * 30
    assert seconds([], [replace(RUN, done_boots=12, boot_elapsed_s=500)]) == 0


def test_device_types_run_in_parallel_and_devices_share_runs() -> None:
    other = replace(RUN, device_type="big", boot_s=100.0)
    assert seconds([], [RUN, other]) == 10 * 100 - 10
    assert seconds([], [RUN, RUN]) == 2 * 290
    two = replace(RUN, devices=2)
    assert seconds([], [two, two]) == 290


def test_runs_ahead_are_counted() -> None:
    queued = replace(RUN, state=JobState.QUEUED, done_boots=0, boot_elapsed_s=0, ahead_boots=4)
    assert seconds([], [queued]) == (4 + 12) * 30
    assert "4 boots of other runs first" in after([], [queued]).what


@pytest.mark.parametrize(
    ("build", "left"),
    [
        (replace(BUILD, state=JobState.QUEUED, typical_s=100.0), 100),
        (replace(BUILD, state=JobState.RUNNING, typical_s=100.0, elapsed_s=40), 60),
        (replace(BUILD, state=JobState.RUNNING, typical_s=100.0, elapsed_s=400), 0),
        (replace(BUILD, state=JobState.RUNNING, elapsed_s=40, done=100, total=400), 120),
        (replace(BUILD, state=JobState.RUNNING, elapsed_s=40), None),
    ],
)
def test_build_time_uses_progress_else_past_builds(build: RemainingBuild, left: float | None) -> None:
    assert build.remaining_s() == left
    assert seconds([build], [RUN]) == (None if left is None else left + 290)


def test_no_estimate_without_measured_boot_or_device() -> None:
    for unknown in (replace(RUN, boot_s=None), replace(RUN, devices=0)):
        found = after([], [RUN, unknown])
        assert found.finish_at is None
        assert "no estimate yet" in found.what


def test_finished_submission_has_its_actual_end() -> None:
    then = NOW - timedelta(hours=1)
    assert estimate(SubmissionState.FINISHED, NOW, then, builds=[], runs=[RUN], planned_targets=1).finish_at == then
