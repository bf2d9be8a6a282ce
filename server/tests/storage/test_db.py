"""Transactions and the outbox of messages."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, select

from wqlab_contracts.celery_names import APPLY_QUEUE
from wqlab_contracts.enums import JobKind
from wqlab_server.models import Lab
from wqlab_server.storage.db import Message, clock, fetch_dict, make_factory, post, transaction

pytestmark = pytest.mark.integration

MESSAGE = Message(JobKind.APPLY, 7, APPLY_QUEUE)


def test_equal_messages_are_sent_once_after_the_commit(engine: Engine) -> None:
    sent: list[Message] = []
    factory = make_factory(engine, sent.append)
    with transaction(factory) as session:
        session.add(Lab(name="far", capacity=3))
        post(session, MESSAGE)
        post(session, MESSAGE)
        assert sent == []
    assert sent == [MESSAGE]


def test_rollback_discards_rows_and_messages(engine: Engine) -> None:
    sent: list[Message] = []
    factory = make_factory(engine, sent.append)
    with pytest.raises(ZeroDivisionError), transaction(factory) as session:
        session.add(Lab(name="far", capacity=3))
        post(session, MESSAGE)
        session.flush()
        raise ZeroDivisionError
    with transaction(factory) as session:
        assert session.get(Lab, "far") is None
    assert sent == []


def test_clock_advances_within_a_transaction(engine: Engine) -> None:
    with transaction(make_factory(engine)) as session:
        assert clock(session) < clock(session)


def test_query_of_two_columns_becomes_a_dict(engine: Engine) -> None:
    with transaction(make_factory(engine)) as session:
        session.add_all([Lab(name="far", capacity=3), Lab(name="near", capacity=1)])
        assert fetch_dict(session, select(Lab.name, Lab.capacity)) == {"far": 3, "near": 1}
