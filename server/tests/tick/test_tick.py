"""Lost, duplicate and repeated messages."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from wqlab_contracts.enums import Outcome, SubmissionState
from wqlab_server.models import Apply, Build, Run

from ..support.lab import LabUnderTest

pytestmark = pytest.mark.integration


def test_lost_messages_are_sent_again(lab: LabUnderTest) -> None:
    """All first messages are lost; ticks alone send them again."""
    submission_id = lab.submit("locks@device")
    for _ in range(60):
        lab.sent.clear()  # lost
        lab.sql("UPDATE jobs SET nudged_at = nudged_at - interval '1 hour'")
        lab.tick()
        delivered, lab.sent[:] = list(lab.sent), []
        for message in delivered:
            lab.handle(message)
        if lab.submission(submission_id).state is SubmissionState.FINISHED:
            break
    assert lab.submission(submission_id).outcome is Outcome.PASSED


def test_duplicate_messages_cause_no_duplicate_work(lab: LabUnderTest) -> None:
    submission_id = lab.submit("locks@device")
    for _ in range(200):
        if not lab.sent:
            lab.tick()
        if not lab.sent:
            break
        message = lab.sent.pop(0)
        lab.handle(message)
        lab.handle(message)
    assert lab.submission(submission_id).outcome is Outcome.PASSED
    with lab.transaction() as session:
        assert len(session.scalars(select(Build.id)).all()) == 2
        assert session.scalars(select(Run.attempts)).all() == [1, 1]
        assert session.scalars(select(Apply.attempts).where(Apply.submission_id == submission_id)).all() == [1]


def test_ticks_send_each_message_once_per_backoff(lab: LabUnderTest) -> None:
    lab.settings = lab.settings.model_copy(update={"nudge_first_s": 3600.0})  # longer than ten ticks ever take
    lab.submit("locks@device")
    lab.sent.clear()
    for _ in range(10):
        lab.tick()
    per_job = [(message.task, message.id) for message in lab.sent if message.id is not None]
    assert len(per_job) == len(set(per_job))
