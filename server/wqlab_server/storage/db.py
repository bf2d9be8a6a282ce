"""Database engine, sessions, and an outbox of messages that are sent after the commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import Engine, Select, create_engine, event, func, select
from sqlalchemy.orm import Session, sessionmaker

K = TypeVar("K")
V = TypeVar("V")

_OUTBOX = "wqlab.outbox"
_SEND = "wqlab.send"

SessionFactory = sessionmaker[Session]


@dataclass(frozen=True)
class Message:
    """A Celery message: the task, the id of its job (None for the tick), and the queue."""

    task: str
    id: int | None
    queue: str


Send = Callable[[Message], None]


def make_engine(url: str) -> Engine:
    """Return an engine whose connections have PostgreSQL's JIT turned off."""
    engine = create_engine(url, pool_pre_ping=True, pool_size=10, max_overflow=20)
    event.listen(engine, "connect", _turn_off_jit)
    return engine


def _turn_off_jit(connection: Any, _record: object) -> None:
    """Turn off JIT: compiling a query of the tick to machine code takes longer than running it."""
    connection.execute("SET jit = off")
    connection.commit()


def make_factory(engine: Engine, send: Send | None = None) -> SessionFactory:
    """Return a session factory. `send` gets the messages of `post` after each commit; without it none are sent."""
    factory = sessionmaker(engine, expire_on_commit=False, info={_SEND: send})
    event.listen(factory, "after_commit", _send_outbox)
    event.listen(factory, "after_rollback", _clear_outbox)
    return factory


@contextmanager
def transaction(factory: SessionFactory) -> Iterator[Session]:
    """Run one transaction: commit at the end, roll back on any exception."""
    with factory() as session, session.begin():
        yield session


def post(session: Session, message: Message) -> None:
    """Send `message` after the session's transaction is committed; discard it on a rollback.

    Equal messages are sent once. A message that cannot be sent is dropped on purpose: the rows are stored, and the next
    tick finds them.
    """
    outbox: dict[Message, None] = session.info.setdefault(_OUTBOX, {})
    outbox[message] = None


def clock(session: Session) -> datetime:
    """Return the current time of the database's clock, the only one used; it advances within a transaction."""
    now = session.scalar(select(func.clock_timestamp()))
    assert isinstance(now, datetime)  # noqa: S101 - clock_timestamp() is never null
    return now


def fetch_dict(session: Session, query: Select[K, V]) -> dict[K, V]:
    """Run a query of two columns and return a dict of the first to the second."""
    return {row[0]: row[1] for row in session.execute(query)}


def _send_outbox(session: Session) -> None:
    if session.in_nested_transaction():
        return
    send: Send | None = session.info.get(_SEND)
    for message in session.info.pop(_OUTBOX, {}):
        if send is not None:
            send(message)


def _clear_outbox(session: Session) -> None:
    session.info.pop(_OUTBOX, None)
