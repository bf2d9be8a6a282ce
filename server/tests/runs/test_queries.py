"""Reading boots and pieces of stored consoles."""

from __future__ import annotations

import pytest
from sqlalchemy import func, select

from wqlab_server.http.problems import ApiProblem
from wqlab_server.models import Boot, Run
from wqlab_server.runs import queries

from ..support.lab import LabUnderTest, RunSession

pytestmark = pytest.mark.integration


def test_console_part_starts_inside_a_chunk_and_ends_with_the_boot(lab: LabUnderTest, run: RunSession) -> None:
    key = run.first_key
    events = run.boot_events(key)
    run.send(events[0])
    run.console(key, 0, b"hello ")
    run.console(key, 6, b"world")
    with lab.transaction() as session:
        boot_id = session.scalars(select(Boot.id).where(Boot.run_id == run.job.run_id)).one()
        part = queries.console_part(session, boot_id, 3)
    assert (part.data, part.ended) == (b"lo world", False)
    run.send(*events[1:])
    with lab.transaction() as session:
        assert queries.console_part(session, boot_id, 11).ended


def test_boot_defaults_to_the_newest_and_belongs_to_its_run(lab: LabUnderTest, run: RunSession) -> None:
    with lab.transaction() as session:
        row = session.get_one(Run, run.job.run_id)
        with pytest.raises(ApiProblem, match="has no boot yet"):
            queries.boot(session, row, None)
    run.send_block(run.remaining[0])
    with lab.transaction() as session:
        row = session.get_one(Run, run.job.run_id)
        newest = queries.boot(session, row, None)
        assert newest.id == session.scalar(select(func.max(Boot.id)).where(Boot.run_id == row.id))
        with pytest.raises(ApiProblem, match="boot of run"):
            queries.boot(session, row, newest.id + 1)


def test_sample_rows_leave_out_discarded_boots_by_default(lab: LabUnderTest, run: RunSession) -> None:
    run.send(*run.boot_events(run.first_key))
    with lab.transaction() as session:
        assert list(queries.sample_rows(session, run.job.run_id, discarded=False)) == []
        assert [len(rows) for rows in queries.sample_rows(session, run.job.run_id, discarded=True)] == [4]
