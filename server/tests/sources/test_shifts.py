"""From the heads of a watched branch to lines, suspected shifts and their confirmation."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select

from wqlab_contracts.enums import Arm, ErrorKind, OutboxEvent, Outcome, ShiftSource, ShiftState
from wqlab_contracts.messages import BuildJob, BuildResult, RunResult
from wqlab_server.models import (
    HistoryLine,
    HistoryPoint,
    HistoryShift,
    PendingEvent,
    Run,
    Submission,
    WatchedHead,
)

from ..support.lab import RunSession, failed, passing_run
from ..support.scripted_worker import ScriptedWorker, passing_build
from ..support.watching import Upstream, WatchingLab

pytestmark = pytest.mark.integration


class Levels:
    """Locks per flush of each commit, as every boot of its kernel counts them."""

    def __init__(self, lab: WatchingLab) -> None:
        self.lab = lab
        self.of: dict[str, float] = {}
        self.again: dict[str, float] = {}
        """What a commit gives when a shift is confirmed, if that is something else."""
        self.default = 34.0
        lab.worker.on_run = self.run

    def run(self, session: RunSession) -> RunResult | None:
        with self.lab.transaction() as db:
            submission = db.get_one(Submission, db.get_one(Run, session.job.run_id).submission_id)
            confirms = db.scalar(select(HistoryShift.id).where(HistoryShift.submission_id == submission.id))
            assert submission.request.series and submission.request.series.commits
            pair = submission.request.series.commits
        commits = {Arm.BASELINE: pair.baseline, Arm.CANDIDATE: pair.candidate}
        known = self.of | self.again if confirms else self.of
        session.worker.value = lambda arm, _s, _m, _b: known.get(commits[arm], self.default)
        return passing_run(session)


@pytest.fixture
def levels(watching: WatchingLab) -> Levels:
    return Levels(watching)


def next_head(watching: WatchingLab, upstream: Upstream, levels: Levels, value: float) -> str:
    commit = upstream.push()
    levels.of[commit] = value
    watching.look()
    watching.measure()
    watching.measure()  # what the history asks for
    assert watching.tick_errors() == {}
    return commit


def rows(watching: WatchingLab, model: Any) -> list[Any]:
    with watching.transaction() as session:
        return list(session.scalars(select(model).order_by(*model.__table__.primary_key)))


def events(watching: WatchingLab) -> list[OutboxEvent]:
    return [event.event for event in rows(watching, PendingEvent)]


def test_heads_become_points_of_a_line(watching: WatchingLab, upstream: Upstream, levels: Levels) -> None:
    watching.look()
    next_head(watching, upstream, levels, 34)
    next_head(watching, upstream, levels, 34)
    (line,) = rows(watching, HistoryLine)  # the throughput of an emulated device is no evidence
    assert (line.watch, line.ref, line.plan_name, line.metric) == ("next", "for-next", "locks", "locks_per_flush")
    assert (line.points, line.recent) == (3, [34, 34, 34])
    points = rows(watching, HistoryPoint)
    assert [point.head_id for point in points] == [head.id for head in watching.heads()]
    assert [(point.value, point.n, point.cut) for point in points] == [(34, 2, "")] * 3
    assert points[0].effect is None and points[1].effect == 0  # nothing was before the first head
    (level,) = line.levels
    assert (level.start, level.end, level.middle) == (0, 3, 34)
    assert rows(watching, HistoryShift) == []


@pytest.mark.nightly
def test_byte_identical_kernel_has_the_value_of_the_head_before(
    watching: WatchingLab, upstream: Upstream, levels: Levels
) -> None:
    start = upstream.git("rev-parse", "for-next")
    content = ["a"]

    def build(job: BuildJob, worker: ScriptedWorker) -> BuildResult:
        digest = "b" if job.source.commit == start else content[0]
        return passing_build(job, worker).model_copy(update={"content_sha256": digest * 64})

    watching.worker.on_build = build
    watching.look()
    next_head(watching, upstream, levels, 34)
    for _ in range(2):
        next_head(watching, upstream, levels, 99)  # its kernel is that of the head before, and is not booted
    content[0] = "c"
    next_head(watching, upstream, levels, 34)
    (line,) = rows(watching, HistoryLine)
    points = rows(watching, HistoryPoint)
    assert [(point.value, point.n) for point in points] == [(34, 2), (34, 2), (34, 0), (34, 0), (34, 2)]
    assert (points[2].effect, points[2].verdict, points[2].stddev, points[2].cut) == (0, "equivalent", None, "")
    assert (line.points, line.recent) == (5, [34] * 5)
    assert [(level.start, level.end) for level in line.levels] == [(0, 5)]


def test_regression_is_told_only_after_a_second_paired_run(
    watching: WatchingLab, upstream: Upstream, levels: Levels
) -> None:
    watching.look()
    before = next_head(watching, upstream, levels, 34)
    after = upstream.push()
    levels.of[after] = 40
    watching.look()
    watching.work()
    watching.tick()
    with watching.transaction() as session:
        head = session.scalars(select(WatchedHead).where(WatchedHead.commit == after)).one()
        assert head.verdicts == ["regression"]
    assert OutboxEvent.REGRESSION_FOUND not in events(watching)
    (shift,) = rows(watching, HistoryShift)
    assert (shift.state, shift.source, shift.suspected_effect) == (ShiftState.NEW, ShiftSource.VERDICT, 6)
    assert shift.submission_id is not None
    with watching.transaction() as session:
        commits = session.get_one(Submission, shift.submission_id).request.series.commits
        assert (commits.baseline, commits.candidate) == (before, after)

    watching.measure()
    watching.measure()
    (shift,) = rows(watching, HistoryShift)
    assert (shift.state, shift.effect, shift.verdict, shift.reason) == (ShiftState.CONFIRMED, 6, "regression", "")
    assert shift.decided_at is not None
    told = [event for event in rows(watching, PendingEvent) if event.event is OutboxEvent.REGRESSION_FOUND]
    assert [event.submission_id for event in told] == [shift.submission_id]
    # The same level afterwards opens nothing new.
    for _ in range(3):
        next_head(watching, upstream, levels, 40)
    assert len(rows(watching, HistoryShift)) == 1


@pytest.mark.nightly
def test_shift_that_does_not_come_again_keeps_its_figures(
    watching: WatchingLab, upstream: Upstream, levels: Levels
) -> None:
    watching.look()
    next_head(watching, upstream, levels, 34)
    after = upstream.push()
    levels.of[after], levels.again[after] = 40, 34
    watching.look()
    watching.measure()
    watching.measure()
    (shift,) = rows(watching, HistoryShift)
    assert (shift.state, shift.effect, shift.verdict) == (ShiftState.NOT_REPRODUCED, 0, "equivalent")
    assert "the same" in shift.reason
    assert shift.suspected_effect == 6
    assert OutboxEvent.REGRESSION_FOUND not in events(watching)


def test_lab_failure_is_tried_again_and_a_broken_kernel_is_left_to_a_person(
    watching: WatchingLab, upstream: Upstream, levels: Levels
) -> None:
    watching.look()
    next_head(watching, upstream, levels, 34)
    after = upstream.push()
    levels.of[after] = 40
    watching.look()
    watching.work()
    watching.tick()
    (shift,) = rows(watching, HistoryShift)
    first = shift.submission_id
    kinds = [ErrorKind.INFRASTRUCTURE] * 2 + [ErrorKind.KERNEL]
    for attempt, kind in enumerate(kinds, start=1):
        (shift,) = rows(watching, HistoryShift)
        order = watching.order("shift", f"{shift.before_id}:{shift.after_id}:locks@device")
        assert order.tries == attempt
        with watching.transaction() as session:
            submission = session.get_one(Submission, shift.submission_id)
            submission.state, submission.outcome = "finished", Outcome.FAILED
            submission.failure = failed(kind, "the outlet is dead" if kind is ErrorKind.INFRASTRUCTURE else "panic")
        watching.sent.clear()
        watching.tick()
        last = rows(watching, HistoryShift)[0].submission_id
        if kind is ErrorKind.INFRASTRUCTURE:
            assert last is None
            watching.tick()  # not due yet
            assert rows(watching, HistoryShift)[0].submission_id is None
        watching.sql("UPDATE orders SET due_at = now()")
        watching.tick()
    (shift,) = rows(watching, HistoryShift)
    assert (shift.state, shift.submission_id) == (ShiftState.NEW, last)
    assert "did not measure it: panic" in shift.reason
    assert first is not None


@pytest.mark.nightly
def test_what_a_shift_waits_for_is_said(watching: WatchingLab, upstream: Upstream, levels: Levels) -> None:
    watching.look()
    next_head(watching, upstream, levels, 34)
    after = upstream.push()
    levels.of[after] = 40
    watching.look()
    watching.sql("UPDATE watches SET enabled_at = NULL")
    watching.measure()
    (shift,) = rows(watching, HistoryShift)
    assert shift.submission_id is None
    assert shift.reason == "waits: the watch next is disabled or removed"
    watching.sql("UPDATE watches SET enabled_at = now()")
    watching.sql("UPDATE orders SET due_at = now()")
    watching.tick()
    (shift,) = rows(watching, HistoryShift)
    assert shift.submission_id is not None and shift.reason == ""


def test_change_of_the_environment_cuts_the_line(watching: WatchingLab, upstream: Upstream, levels: Levels) -> None:
    watching.look()
    next_head(watching, upstream, levels, 34)
    plan = watching.settings.data_dir / "testplans/locks/plan.yaml"
    plan.write_text(plan.read_text().replace("summary: locks,", "summary: locks of pools,"))
    watching.app.state.data._checked_at = float("-inf")
    next_head(watching, upstream, levels, 34)
    next_head(watching, upstream, levels, 34)
    points = rows(watching, HistoryPoint)
    assert [bool(point.cut) for point in points] == [False, False, True, False]
    assert points[2].cut.startswith("plan ")
    (line,) = rows(watching, HistoryLine)
    assert [(level.start, level.end) for level in line.levels] == [(0, 2), (2, 4)]
