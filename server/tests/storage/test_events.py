"""Events of submissions and their notifications."""

from __future__ import annotations

import psycopg
import pytest
from sqlalchemy import make_url

from wqlab_contracts.enums import EventKind
from wqlab_server.storage.events import SUBMISSION_CHANNEL, emit, emit_to_all

from ..support.lab import LabUnderTest

pytestmark = pytest.mark.integration


def test_event_is_numbered_and_leaves_out_empty_fields(lab: LabUnderTest) -> None:
    submission_id = lab.submit("locks@single")
    before = lab.events(submission_id)
    with lab.transaction() as session:
        emit(session, submission_id, EventKind.RUN_PROGRESS, run_id=None, text="boot 1 of 4", total=None)
    event = lab.events(submission_id)[-1]
    assert (event.seq, event.kind, event.data) == (len(before) + 1, EventKind.RUN_PROGRESS, {"text": "boot 1 of 4"})


def test_job_without_a_submission_emits_nothing(lab: LabUnderTest) -> None:
    with lab.transaction() as session:
        emit(session, None, EventKind.RUN_PROGRESS, text="boot 1 of 4")
        assert not session.new


def test_build_event_goes_to_every_submission_with_one_notification_each(lab: LabUnderTest) -> None:
    first, second = lab.submit("locks@single"), lab.submit("locks@single")
    url = make_url(lab.settings.database_url).set(drivername="postgresql").render_as_string()
    with psycopg.connect(url, autocommit=True) as listening:
        listening.execute(f"LISTEN {SUBMISSION_CHANNEL}")
        with lab.transaction() as session:
            emit_to_all(session, [second, first], EventKind.BUILD_PROGRESS, build_id=1, text="CC kernel/workqueue.o")
        payloads = [notify.payload for notify in listening.notifies(stop_after=2)]
    assert payloads == [str(first), str(second)]
    assert {lab.events(each)[-1].build_id for each in (first, second)} == {1}
