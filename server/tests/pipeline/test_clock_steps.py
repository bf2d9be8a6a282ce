"""The database's clock is set back by an hour: nothing waits until it has passed again."""

from __future__ import annotations

import pytest
from sqlalchemy import select, text

from wqlab_contracts.enums import JobKind, JobState, Outcome
from wqlab_server.models import Job, Lease

from ..support.lab import LabUnderTest, RunSession

pytestmark = pytest.mark.integration

HOUR = "interval '1 hour'"


def set_clock_back(lab: LabUnderTest) -> None:
    """Move every time in the database an hour into the future."""
    with lab.transaction() as session:
        columns = session.execute(
            text(
                "SELECT table_name, column_name FROM information_schema.columns JOIN information_schema.tables "
                "USING (table_schema, table_name) WHERE table_schema = current_schema() AND table_type = 'BASE TABLE' "
                "AND data_type = 'timestamp with time zone' AND table_name <> 'audit_log'"
            )
        ).all()
    for table, column in columns:
        lab.sql(f'UPDATE "{table}" SET "{column}" = "{column}" + {HOUR}')


def test_lease_of_a_dead_worker_expires(lab: LabUnderTest, run: RunSession) -> None:
    set_clock_back(lab)
    lab.tick()
    with lab.transaction() as session:
        left = "extract(epoch FROM expires_at - clock_timestamp())"
        (lease_s,) = session.scalars(select(text(f"{left}::float8")).select_from(Lease)).all()
        (run_s,) = session.scalars(select(text(f"{left}::float8")).select_from(Job).where(Job.id == run.job.run_id))
    assert 0 < lease_s <= lab.settings.lease_s
    assert 0 < run_s <= lab.settings.lease_s


def test_live_worker_keeps_its_lease(lab: LabUnderTest, run: RunSession) -> None:
    set_clock_back(lab)
    assert run.heartbeat() == {"expires_in_s": lab.settings.lease_s, "cancel": False}
    lab.tick()
    assert run.heartbeat() == {"expires_in_s": lab.settings.lease_s, "cancel": False}


def test_claims_of_dead_apply_and_build_workers_expire(lab: LabUnderTest) -> None:
    submission_id = lab.submit("locks@device")
    assert lab.worker.claim(1) is not None
    set_clock_back(lab)
    lab.tick()
    with lab.transaction() as session:
        # The tick has queued another apply, for the health check of the device.
        left = "SELECT extract(epoch FROM expires_at - clock_timestamp())::float8 FROM jobs WHERE id = 1"
        left_s = session.scalar(text(left))
    assert 0 < left_s <= lab.settings.claim_s
    lab.expire(1)
    assert lab.finished(submission_id).outcome is Outcome.PASSED


def test_lost_messages_are_sent_again(lab: LabUnderTest) -> None:
    submission_id = lab.submit("locks@device")
    lab.sent.clear()  # lost
    set_clock_back(lab)
    lab.tick()
    assert [message for message in lab.sent if message.id is not None]
    assert lab.finished(submission_id).outcome is Outcome.PASSED


def test_offer_that_nobody_takes_expires(lab: LabUnderTest) -> None:
    lab.mark_all_good()
    submission_id = lab.submit("locks@single")
    lab.work(JobKind.APPLY, JobKind.BUILD, "wqlab.advance")
    assert lab.runs(submission_id)[0].state is JobState.QUEUED
    set_clock_back(lab)
    lab.tick()
    with lab.transaction() as session:
        left_s = session.scalar(text("SELECT extract(epoch FROM expires_at - clock_timestamp())::float8 FROM leases"))
    assert 0 < left_s <= lab.settings.offer_s
