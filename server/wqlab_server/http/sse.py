"""Server-sent events, woken by PostgreSQL notifications.

One connection per process LISTENs; every stream subscribes to the (channel, payload) pairs it shows and re-reads its
rows when woken. A lost notification delays an event by at most one heartbeat interval and loses none, since events
are read from rows.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator
from contextlib import aclosing, contextmanager, suppress
from typing import Any

import psycopg
import structlog
from fastapi import Request
from psycopg import sql
from starlette.concurrency import run_in_threadpool

from .auth import may_read
from .metrics import Metrics

HEARTBEAT_S = 15.0
"""Longest time without data on a stream, so that proxies and clients see that the connection is alive."""
RECONNECT_S = 2.0
REAUTHORIZE_S = 30.0
"""Time between two checks that the client of a stream may still read."""

Topic = tuple[str, str]
"""NOTIFY channel and payload."""

log = structlog.get_logger(__name__)


class Subscription:
    """Subscription of one stream to its topics."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def wake(self) -> None:
        self._event.set()

    async def wait(self, timeout_s: float = HEARTBEAT_S) -> bool:
        """Return True once a topic was notified since the last `wait`, False after `timeout_s` without notification."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._event.wait()
        woken = self._event.is_set()
        self._event.clear()
        return woken


class Notifications:
    """The process's LISTEN connection and its subscriptions. The app's lifespan calls `start` and `stop`."""

    def __init__(self, conninfo: str, channels: Iterable[str]) -> None:
        """`conninfo` is a libpq connection string or URI (no SQLAlchemy driver suffix)."""
        self._conninfo = conninfo
        self._channels = list(channels)
        self._waiting: dict[Topic, set[Subscription]] = defaultdict(set)
        self._task: asyncio.Task[None] | None = None
        self.connected = asyncio.Event()

    @property
    def streams(self) -> int:
        """Number of open streams."""
        return len({subscription for waiting in self._waiting.values() for subscription in waiting})

    async def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="postgres-notifications")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        self._wake_all()

    @contextmanager
    def subscribe(self, *topics: Topic) -> Iterator[Subscription]:
        """Subscribe to topics. Do so before reading rows, so that a commit after the read wakes the stream."""
        subscription = Subscription()
        for topic in topics:
            self._waiting[topic].add(subscription)
        try:
            yield subscription
        finally:
            for topic in topics:
                self._waiting[topic].discard(subscription)
                if not self._waiting[topic]:
                    del self._waiting[topic]

    async def _run(self) -> None:
        while True:
            try:
                await self._listen()
            except (psycopg.Error, OSError) as error:
                log.warning("notifications_lost", error=str(error), retry_in_s=RECONNECT_S)
            self.connected.clear()
            await asyncio.sleep(RECONNECT_S)

    async def _listen(self) -> None:
        async with await psycopg.AsyncConnection.connect(self._conninfo, autocommit=True) as connection:
            for channel in self._channels:
                await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
            self.connected.set()
            self._wake_all()
            async for notification in connection.notifies():
                for subscription in self._waiting.get((notification.channel, notification.payload), ()):
                    subscription.wake()

    def _wake_all(self) -> None:
        for waiting in self._waiting.values():
            for subscription in waiting:
                subscription.wake()


def server_sent_event(*, event: str, data: str, event_id: int | None = None) -> str:
    """Format one event as text/event-stream; `data` must not contain a bare carriage return."""
    head = f"id: {event_id}\n" if event_id is not None else ""
    return f"{head}event: {event}\n" + "".join(f"data: {line}\n" for line in data.split("\n")) + "\n"


def event_schema(model: str) -> dict[str, Any]:
    """Return the schema of one event of a stream, whose `data` is a JSON document of `model`.

    OpenAPI 3.1 has no keyword for the items of a stream; the media type's schema describes each event.
    """
    return {
        "type": "object",
        "description": "One event of the stream, as `EventSource` parses it",
        "properties": {
            "id": {"type": "string", "pattern": "^[1-9][0-9]*$"},
            "event": {"type": "string"},
            "data": {
                "type": "string",
                "contentMediaType": "application/json",
                "contentSchema": {"$ref": f"#/components/schemas/{model}"},
            },
        },
        "required": ["id", "event", "data"],
    }


HEARTBEAT = b": still here\n\n"
"""A comment line, which clients ignore."""


def notifications_of(request: Request) -> Notifications:
    """Return the app's LISTEN connection."""
    found: Notifications = request.app.state.notifications
    return found


async def guarded(request: Request, parts: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
    """Yield `parts` while the client may read them, and count the stream among the open ones.

    The stream ends after the client was signed out or its token revoked; a new request is then refused.
    """
    metrics: Metrics = request.app.state.metrics
    authorized_at = time.monotonic()
    with metrics.streams.track_inprogress():
        async with aclosing(parts):
            async for part in parts:
                if time.monotonic() - authorized_at >= REAUTHORIZE_S:
                    if not await run_in_threadpool(may_read, request):
                        return
                    authorized_at = time.monotonic()
                yield part
