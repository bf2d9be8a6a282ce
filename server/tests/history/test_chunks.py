"""Points of a line as JSON in chunks, against the rows from which they are written."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from wqlab_contracts.api.history import HistoryLineData
from wqlab_contracts.enums import Verdict, WatchedHeadState
from wqlab_server.history import chunks
from wqlab_server.history.views import line_data, line_json
from wqlab_server.models import HistoryChunk, HistoryLine, HistoryPoint, WatchedHead
from wqlab_server.settings import Settings

from ..support.history import START, VALUES, add_history
from ..support.lab import LabUnderTest

pytestmark = pytest.mark.integration


@pytest.fixture
def lab(settings: Settings, engine: Engine) -> Iterator[LabUnderTest]:
    lab = LabUnderTest(settings, engine)
    run = lab.runs(lab.submit("locks@device"))[0]
    with lab.client, lab.transaction() as session:
        add_history(session, run.id)
    yield lab


def add_point(session: Session, head_id: int, cut: str = "") -> None:
    """Add a head and its point with an interval, and write its chunk as the pipeline does."""
    line = session.get_one(HistoryLine, 1)
    session.add(
        WatchedHead(
            id=head_id, tree_name="next", ref="for-next", name="for-next", commit=f"{head_id:040x}",
            state=WatchedHeadState.MEASURED, seen_at=START,
        )
    )  # fmt: skip
    session.flush()
    run = session.scalars(select(HistoryPoint.run_id).limit(1)).one()
    session.add(
        HistoryPoint(
            line_id=1, head_id=head_id, run_id=run, environment_id=1, value=1 / 3, stddev=None, n=1, effect=-1e-9,
            ci_low=-0.1, ci_high=2e300, verdict=Verdict.BELOW_THRESHOLD, cut=cut,
            at=START + timedelta(days=head_id, microseconds=7),
        )
    )  # fmt: skip
    line.points += 1
    session.flush()
    chunks.add_to_chunk(session, 1, head_id)


def same_as_the_rows(session: Session) -> None:
    line = session.get_one(HistoryLine, 1)
    series = chunks.series_json(session, line)
    assert series is not None, "the chunks have all points"
    assert HistoryLineData.model_validate_json(line_json(session, line)) == line_data(session, line)


def bounds(session: Session) -> list[tuple[int, int]]:
    rows = session.execute(select(HistoryChunk.first_head_id, HistoryChunk.points).order_by(HistoryChunk.first_head_id))
    return [(first, points) for first, points in rows]


def test_chunks_have_what_the_rows_have(lab: LabUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "MOST_POINTS", 4)
    with lab.transaction() as session:
        chunks.write_chunks(session, 1)
        assert bounds(session) == [(1, 4), (5, 4), (9, 2)]
        same_as_the_rows(session)
        for head_id in (20, 22, 24):
            add_point(session, head_id, cut='compiler "gcc" -> \\ \x7f ü')
            same_as_the_rows(session)
        assert bounds(session) == [(1, 4), (5, 4), (9, 4), (24, 1)]


def test_head_that_gets_its_point_late_is_in_its_place(lab: LabUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "MOST_POINTS", 4)
    with lab.transaction() as session:
        chunks.write_chunks(session, 1)
        for head_id in (24, 22, 26, 21, 25):
            add_point(session, head_id)
            same_as_the_rows(session)
        assert sum(points for _, points in bounds(session)) == len(VALUES) + 5


def test_points_without_chunks_are_read_from_the_rows(lab: LabUnderTest) -> None:
    with lab.transaction() as session:
        line = session.get_one(HistoryLine, 1)
        assert chunks.series_json(session, line) is None
        read = HistoryLineData.model_validate_json(line_json(session, line))
        assert [point.value for point in read.series] == VALUES
