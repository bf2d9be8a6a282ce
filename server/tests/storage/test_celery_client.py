"""Messages after a commit, through a real Redis and without a broker."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import redis as redis_client
from sqlalchemy import text

from wqlab_contracts.celery_names import APPLY_QUEUE
from wqlab_contracts.enums import JobKind
from wqlab_server.settings import Settings
from wqlab_server.storage.celery_client import Sender, celery_app
from wqlab_server.storage.db import Message, make_engine, make_factory, post, transaction

pytestmark = pytest.mark.integration


@pytest.fixture
def queues(redis: str) -> redis_client.Redis:
    client = redis_client.Redis(unix_socket_path=redis.removeprefix("redis+socket://"))
    client.flushall()
    return client


def test_message_is_sent_only_after_the_commit(settings: Settings, redis: str, queues: redis_client.Redis) -> None:
    engine = make_engine(settings.database_url)
    factory = make_factory(engine, Sender(celery_app(redis)))
    with transaction(factory) as session:
        session.execute(text("SELECT 1"))
        for _ in range(3):
            post(session, Message(JobKind.APPLY, 7, APPLY_QUEUE))
        assert queues.llen(APPLY_QUEUE) == 0
    assert queues.llen(APPLY_QUEUE) == 1, "equal messages are sent once"
    envelope = json.loads(queues.lindex(APPLY_QUEUE, 0) or b"")
    assert envelope["headers"]["task"] == JobKind.APPLY
    assert envelope["headers"]["argsrepr"] == "(7,)"

    with pytest.raises(ZeroDivisionError), transaction(factory) as session:
        session.execute(text("SELECT 1"))
        post(session, Message(JobKind.APPLY, 8, APPLY_QUEUE))
        raise ZeroDivisionError
    assert queues.llen(APPLY_QUEUE) == 1
    engine.dispose()


def test_commit_succeeds_without_a_broker(settings: Settings, tmp_path: Path) -> None:
    engine = make_engine(settings.database_url)
    factory = make_factory(engine, Sender(celery_app(f"redis+socket://{tmp_path}/nobody.sock")))
    with transaction(factory) as session:
        session.execute(text("INSERT INTO labs (name, capacity) VALUES ('kept', 1)"))
        post(session, Message(JobKind.APPLY, 1, APPLY_QUEUE))
    with transaction(factory) as session:
        assert session.scalar(text("SELECT capacity FROM labs WHERE name = 'kept'")) == 1
    engine.dispose()
