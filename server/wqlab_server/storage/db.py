"""Engine, sessions, and what leaves the process only after a commit."""

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
    """A nudge: the task to run, the one id it is about (None for the tick), the queue."""

    task: str
    id: int | None
    queue: str


Send = Callable[[Message], None]


def make_engine(url: str) -> Engine:
    engine = create_engine(url, pool_pre_ping=True, pool_size=10, max_overflow=20)
    event.listen(engine, "connect", _without_jit)
    return engine


def _without_jit(connection: Any, _record: object) -> None:
    """Compiling a query of the tick to machine code takes PostgreSQL longer than running it."""
    connection.execute("SET jit = off")
    connection.commit()


def make_factory(engine: Engine, send: Send | None = None) -> SessionFactory:
    """`send` delivers what `post` was given, after the commit; without it nothing is sent (a tick finds the work)."""
    factory = sessionmaker(engine, expire_on_commit=False, info={_SEND: send})
    event.listen(factory, "after_commit", _run_after_commit)
    event.listen(factory, "after_rollback", _forget_after_rollback)
    return factory


@contextmanager
def transaction(factory: SessionFactory) -> Iterator[Session]:
    """One unit of work: commits at the end, rolls back on any exception."""
    with factory() as session, session.begin():
        yield session


def post(session: Session, message: Message) -> None:
    """Sends `message` once the session's transaction is committed; never when it is rolled back. Equal messages leave
    once. A message that cannot be sent is lost on purpose: the rows are there, and the next tick finds them."""
    outbox: dict[Message, None] = session.info.setdefault(_OUTBOX, {})
    outbox[message] = None


def clock(session: Session) -> datetime:
    """The database's clock, the only one that counts; it moves on within a transaction."""
    now = session.scalar(select(func.clock_timestamp()))
    assert isinstance(now, datetime)  # noqa: S101 - clock_timestamp() is never null
    return now


def pairs(session: Session, query: Select[K, V]) -> dict[K, V]:
    """A query of two columns as a mapping of the first to the second."""
    return {row[0]: row[1] for row in session.execute(query)}


def _run_after_commit(session: Session) -> None:
    if session.in_nested_transaction():
        return
    send: Send | None = session.info.get(_SEND)
    for message in session.info.pop(_OUTBOX, {}):
        if send is not None:
            send(message)


def _forget_after_rollback(session: Session) -> None:
    session.info.pop(_OUTBOX, None)
