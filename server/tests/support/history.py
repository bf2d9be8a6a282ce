"""Rows of a history as the pipeline writes them: one line with ten points, and a shift."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sqlalchemy.orm import Session

from wqlab_contracts.enums import (
    Direction,
    Evidence,
    Role,
    Scale,
    ShiftSource,
    ShiftState,
    Verdict,
    WatchedHeadState,
)
from wqlab_server.history.shifts import levels_of
from wqlab_server.models import (
    HistoryEnvironment,
    HistoryLine,
    HistoryPoint,
    HistoryShift,
    WatchedHead,
)

from .watches import add_tree_watch

START = datetime(2026, 11, 1, tzinfo=UTC)
VALUES = [34.0] * 6 + [40.0] * 4


def add_history(session: Session, run_id: int) -> None:
    """Add a watched tree with ten measured heads, whose locks rise from 34 to 40 at the seventh; all in one run."""
    add_tree_watch(session, owner="dev", tree="lab-tree", target="locks@device")
    session.add(HistoryEnvironment(id=1, digest="0" * 64, facts={"device": "device-1"}))
    line = HistoryLine(
        id=1, watch="next", ref="for-next", plan_name="locks", device_type="device", scenario="fsync",
        setting="", metric="locks_per_flush", unit="locks", scale=Scale.DIFFERENCE,
        direction=Direction.LOWER_IS_BETTER, role=Role.PRIMARY, evidence=Evidence.MECHANISM, delta=0.5,
        points=len(VALUES), recent=VALUES, last_at=START,
    )  # fmt: skip
    session.add(line)
    session.flush()
    points = []
    for index, value in enumerate(VALUES, start=1):
        session.add(
            WatchedHead(
                id=index, watch="next", ref="for-next", name="for-next", commit=f"{index:040x}",
                state=WatchedHeadState.MEASURED, seen_at=START, parent_id=index - 1 or None,
            )
        )  # fmt: skip
        session.flush()
        points.append(
            HistoryPoint(
                line_id=1, head_id=index, run_id=run_id, environment_id=1, value=value, stddev=0.0, n=2,
                effect=None if index == 1 else value - VALUES[index - 2], cut="", at=START + timedelta(days=index),
                verdict=None if index == 1 else Verdict.REGRESSION if index == 7 else Verdict.EQUIVALENT,
            )
        )  # fmt: skip
    session.add_all(points)
    line.levels = levels_of(points, line.scale)
    session.add(
        HistoryShift(
            id=1, line_id=1, before_id=6, after_id=7, source=ShiftSource.VERDICT, state=ShiftState.NEW,
            suspected_effect=6.0, created_at=START + timedelta(days=7),
        )
    )  # fmt: skip
