"""A finished submission is sent to a receiver that answers as KCIDB does, and again until it is accepted."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import select

from wqlab_contracts.enums import Arm, AttemptOutcome, DeliveryKind, DeliveryState
from wqlab_server.models import Delivery
from wqlab_server.outbox.send import deliver
from wqlab_server.storage.db import clock
from wqlab_server.submissions import service

from ..outbox.test_kcidb import Receiver, receiver, token
from ..support.lab import LabUnderTest

__all__ = ["receiver"]

pytestmark = pytest.mark.integration


def stored(lab: LabUnderTest) -> list[Delivery]:
    with lab.transaction() as session:
        rows = select(Delivery).where(Delivery.kind == DeliveryKind.KCIDB).order_by(Delivery.id)
        return list(session.scalars(rows))


@pytest.fixture
def lab(lab: LabUnderTest, receiver: Receiver, tmp_path: Path) -> LabUnderTest:
    lab.mark_all_good()
    (tmp_path / "kcidb.token").write_text(token())
    changes = {"kcidb_url": receiver.url, "kcidb_token_file": tmp_path / "kcidb.token", "kcidb_origin": "lab"}
    lab.settings = lab.settings.model_copy(update=changes)
    lab.worker.value = lambda arm, *_: 33.0 if arm is Arm.BASELINE else 5.0
    return lab


def test_each_finished_submission_is_sent_once(lab: LabUnderTest, receiver: Receiver) -> None:
    lab.finished(lab.submit("locks@single", force=True))
    (row,) = stored(lab)
    receiver.answer = lambda handler: handler.send_error(503)
    first = deliver(lab.sessions, lab.settings, row.id)
    assert first is not None and first.outcome is AttemptOutcome.FAILED
    receiver.answer = None
    with lab.transaction() as session:
        session.get_one(Delivery, row.id).next_at = clock(session) - timedelta(seconds=1)
    second = deliver(lab.sessions, lab.settings, row.id)
    assert second is not None and second.outcome is AttemptOutcome.ACCEPTED
    assert deliver(lab.sessions, lab.settings, row.id) is None
    (body,) = receiver.received
    document = json.loads(body)
    assert document["version"] == {"major": 5, "minor": 3}
    assert {test["origin"] for test in document["tests"]} == {"lab"}
    assert [each.state for each in stored(lab)] == [DeliveryState.DELIVERED]


def test_nothing_is_written_for_a_canceled_submission_or_without_a_database(lab: LabUnderTest) -> None:
    number = lab.submit("locks@single", force=True)
    with lab.transaction() as session:
        service.cancel(session, number)
    lab.finished(number)
    lab.settings = lab.settings.model_copy(update={"kcidb_url": ""})
    lab.finished(lab.submit("locks@single", force=True))
    assert stored(lab) == []
