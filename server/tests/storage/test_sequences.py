"""Ids continue without a gap after PostgreSQL was killed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import cast

import pytest
from sqlalchemy import Engine, Table, func, select

from wqlab_server.models import LabInvite
from wqlab_server.storage.db import SessionFactory, make_factory, transaction
from wqlab_server.storage.sequences import close_gaps

pytestmark = pytest.mark.integration

INVITES = cast("Table", LabInvite.__table__)


@pytest.fixture
def factory(engine: Engine) -> SessionFactory:
    return make_factory(engine, lambda _message: None)


def add(factory: SessionFactory, name: str) -> int:
    with transaction(factory) as session:
        invite = make(name)
        session.add(invite)
        session.flush()
        return invite.id


def make(name: str) -> LabInvite:
    return LabInvite(lab=name, digest=name, invited_by="ann", expires_at=datetime.now(UTC))


def skip_ids(factory: SessionFactory, count: int) -> None:
    """Advance the sequence as the recovery from a crash does."""
    with transaction(factory) as session:
        for _ in range(count):
            session.scalar(select(func.nextval(func.pg_get_serial_sequence("lab_invites", "id"))))


def close(factory: SessionFactory) -> list[str]:
    with transaction(factory) as session:
        return close_gaps(session, [INVITES])


def test_ids_continue_after_the_highest_one(factory: SessionFactory) -> None:
    first = add(factory, "a")
    skip_ids(factory, 32)
    assert close(factory) == ["lab_invites"]
    assert add(factory, "b") == first + 1
    assert close(factory) == []


def test_ids_of_an_empty_table_start_at_one(factory: SessionFactory) -> None:
    skip_ids(factory, 33)
    assert close(factory) == ["lab_invites"]
    assert add(factory, "a") == 1


def test_sequence_without_a_gap_is_left_alone(factory: SessionFactory) -> None:
    add(factory, "a")
    skip_ids(factory, 1)
    assert close(factory) == []


def test_ids_of_running_transactions_are_not_given_twice(factory: SessionFactory) -> None:
    add(factory, "a")
    skip_ids(factory, 10)
    with transaction(factory) as unfinished:
        row = make("b")
        unfinished.add(row)
        unfinished.flush()
        assert close(factory) == [], "an insert holds the table"
    assert close(factory) == []
    assert add(factory, "c") == row.id + 1
