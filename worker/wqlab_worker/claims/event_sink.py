"""A run's outbox: events and console text leave in the order they came, in batches, at least once.

The server is idempotent, so a batch whose answer was lost is simply sent again. Memory is bounded: when the server
has been away for so long that the bound is reached, `event` and `console` block, and the lease runs out meanwhile.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import httpx
import structlog

from wqlab_contracts.messages import BootKey, ConsoleAnswer, RunEvent

from .server import JobRef, Server, ServerRefused, StaleFence

log = structlog.get_logger()

BATCH_EVENTS = 200
BATCH_CONSOLE = 256 * 1024
LIMIT_BYTES = 64 << 20
"""More than an hour of a serial console at 115200 baud."""
EVENT_BYTES = 512
"""Counted for an event's envelope besides its texts."""


@dataclass
class _Console:
    boot: BootKey
    offset: int
    data: bytearray

    @property
    def size(self) -> int:
        return len(self.data)


@dataclass
class _Event:
    event: RunEvent
    size: int


class Outbox:
    """`refused(error)` is called once when the server refuses a batch (any 4xx: stale fence, malformed), or a batch
    cannot be sent at all; no more is sent."""

    def __init__(
        self,
        server: Server,
        job: JobRef,
        refused: Callable[[Exception], None],
        *,
        limit_bytes: int = LIMIT_BYTES,
        linger_s: float = 0.2,
        retry_s: float = 0.5,
    ) -> None:
        self._server = server
        self._job = job
        self._refused = refused
        self._limit_bytes = limit_bytes
        self._linger_s = linger_s
        self._retry_s = retry_s
        self._queue: deque[_Event | _Console] = deque()
        self._bytes = 0
        self._sending = False
        self._closed = False
        self._error: Exception | None = None
        self._capped: set[BootKey] = set()
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._deliver, name=f"outbox {job}", daemon=True)
        self._thread.start()

    # --- filling ------------------------------------------------------------------------------------------------

    def event(self, event: RunEvent) -> None:
        size = EVENT_BYTES + len(getattr(event, "excerpt", "")) + 100 * len(getattr(event, "samples", ()))
        with self._changed:
            self._make_room(size)
            self._queue.append(_Event(event, size))

    def console(self, boot: BootKey, offset: int, data: bytes) -> None:
        """`offset` is the place of `data` in the boot's console; adjacent pieces are joined."""
        with self._changed:
            if boot in self._capped:
                return
            self._make_room(len(data))
            last = self._queue[-1] if self._queue else None
            if (
                isinstance(last, _Console)
                and last.boot == boot
                and last.offset + len(last.data) == offset
                and len(last.data) + len(data) <= BATCH_CONSOLE
            ):
                last.data += data
            else:
                self._queue.append(_Console(boot, offset, bytearray(data)))

    def _make_room(self, size: int) -> None:
        self._changed.wait_for(lambda: self._error or self._closed or self._bytes + size <= self._limit_bytes)
        self._bytes += size
        self._changed.notify_all()

    # --- emptying -----------------------------------------------------------------------------------------------

    def flush(self, timeout_s: float) -> bool:
        """Waits until everything was delivered; False when it was not in time, or was refused."""
        with self._changed:
            empty = self._changed.wait_for(
                lambda: self._error is not None or (not self._queue and not self._sending), timeout_s
            )
            return empty and self._error is None

    def close(self) -> None:
        """Stops sending; call `flush` first for what must arrive."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join(timeout=60)

    def _deliver(self) -> None:
        while True:
            batch = self._next_batch()
            if batch is None:
                return
            try:
                self._send_until_answered(batch)
            except Exception as error:
                # Refused, or a message that cannot be put into words: the same batch would fail again, so nothing is
                # sent any more, and whoever waits in `event` or `flush` learns of it.
                if not isinstance(error, (StaleFence, ServerRefused)):
                    log.exception("outbox failed", job=str(self._job))
                with self._changed:
                    self._error = error
                    self._queue.clear()
                    self._sending = False
                    self._changed.notify_all()
                self._refused(error)
                return
            with self._changed:
                self._sending = False
                self._bytes -= batch.size if isinstance(batch, _Console) else sum(entry.size for entry in batch)
                self._changed.notify_all()

    def _next_batch(self) -> list[_Event] | _Console | None:
        with self._changed:
            self._changed.wait_for(lambda: bool(self._queue) or self._closed)
            if self._closed:
                return None
            self._sending = True
            if len(self._queue) == 1 and isinstance(self._queue[0], _Console):
                # A console dribbles: let a little more come, unless somebody waits in flush().
                self._changed.wait_for(lambda: len(self._queue) > 1 or self._closed, self._linger_s)
            first = self._queue.popleft()
            if isinstance(first, _Console):
                return first
            events = [first]
            while self._queue and len(events) < BATCH_EVENTS:
                following = self._queue[0]
                if isinstance(following, _Console):
                    break
                events.append(following)
                self._queue.popleft()
            return events

    def _send_until_answered(self, batch: list[_Event] | _Console) -> None:
        delay = self._retry_s
        while True:
            try:
                if isinstance(batch, _Console):
                    self._send_console(batch)
                else:
                    self._server.send_events(self._job, [entry.event for entry in batch])
                return
            except httpx.TransportError as error:
                log.warning("outbox waits for the server", job=str(self._job), error=repr(error))
            with self._changed:
                if self._changed.wait_for(lambda: self._closed, delay):
                    return
            delay = min(delay * 2, 5.0)

    def _send_console(self, chunk: _Console) -> None:
        answer: ConsoleAnswer = self._server.send_console(self._job, chunk.boot, chunk.offset, bytes(chunk.data))
        if answer.truncated:
            with self._changed:
                self._capped.add(chunk.boot)
