"""Event sink: deliver a run's events and console output to the server in order, in batches, at least once.

The server is idempotent, so a batch whose response was lost is sent again. Memory is bounded: if the server is
unreachable until the bound is reached, `event` and `console` block, and the lease expires meanwhile.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import httpx
import structlog
from pydantic_core import PydanticSerializationError, to_json

from wqlab_contracts.messages import BootKey, ConsoleAnswer, RunEvent

from .server import JobRef, Server, ServerRefused, StaleFence

log = structlog.get_logger()

BATCH_EVENTS = 200
BATCH_BYTES = 4 << 20
"""Bytes of events, as JSON, that are sent at once; the server accepts 24 MB."""
BATCH_CONSOLE = 256 * 1024
LIMIT_BYTES = 64 << 20
"""Bound on the queue: more than an hour of a serial console at 115200 baud."""


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


class ServerEventSink:
    """A queue of events and console output with a thread that sends them.

    `on_refused(error)` is called once, and nothing more is sent, if the server refuses a batch (any 4xx response, such
    as a stale fence) or a batch cannot be encoded.
    """

    def __init__(
        self,
        server: Server,
        job: JobRef,
        on_refused: Callable[[Exception], None],
        *,
        limit_bytes: int = LIMIT_BYTES,
        linger_s: float = 0.2,
        retry_s: float = 0.5,
    ) -> None:
        self._server = server
        self._job = job
        self._on_refused = on_refused
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
        self._thread = threading.Thread(target=self._deliver, name=f"event sink {job}", daemon=True)
        self._thread.start()

    # --- adding -------------------------------------------------------------------------------------------------

    def event(self, event: RunEvent) -> None:
        """Add an event to the queue."""
        size = _size_of(event)
        with self._changed:
            self._reserve(size)
            self._queue.append(_Event(event, size))

    def console(self, boot: BootKey, offset: int, data: bytes) -> None:
        """Add console output, which starts at `offset` of the boot's console; adjacent pieces are joined."""
        with self._changed:
            if boot in self._capped:
                return
            self._reserve(len(data))
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

    def _reserve(self, size: int) -> None:
        """Wait until `size` bytes fit into the queue, and count them."""
        self._changed.wait_for(lambda: self._error or self._closed or self._bytes + size <= self._limit_bytes)
        self._bytes += size
        self._changed.notify_all()

    # --- sending ------------------------------------------------------------------------------------------------

    def flush(self, timeout_s: float) -> bool:
        """Wait until everything is delivered. Return False on timeout or if the server refused a batch."""
        with self._changed:
            empty = self._changed.wait_for(
                lambda: self._error is not None or (not self._queue and not self._sending), timeout_s
            )
            return empty and self._error is None

    def close(self) -> None:
        """Stop sending. Call `flush` first to deliver what is queued."""
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
                self._send_with_retries(batch)
            except Exception as error:
                # The same batch would fail again, so nothing more is sent, and callers that wait in `event` or `flush`
                # return.
                if not isinstance(error, (StaleFence, ServerRefused)):
                    log.exception("event sink failed", job=str(self._job))
                with self._changed:
                    self._error = error
                    self._queue.clear()
                    self._sending = False
                    self._changed.notify_all()
                self._on_refused(error)
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
                # Console output comes in small pieces, so wait a moment for more.
                self._changed.wait_for(lambda: len(self._queue) > 1 or self._closed, self._linger_s)
            first = self._queue.popleft()
            if isinstance(first, _Console):
                return first
            events = [first]
            while self._queue and len(events) < BATCH_EVENTS:
                following = self._queue[0]
                if isinstance(following, _Console) or sum(each.size for each in events) + following.size > BATCH_BYTES:
                    break
                events.append(following)
                self._queue.popleft()
            return events

    def _send_with_retries(self, batch: list[_Event] | _Console) -> None:
        delay = self._retry_s
        while True:
            try:
                if isinstance(batch, _Console):
                    self._send_console(batch)
                else:
                    self._server.send_events(self._job, [entry.event for entry in batch])
                return
            except httpx.TransportError as error:
                log.warning("event sink waits for the server", job=str(self._job), error=repr(error))
            with self._changed:
                if self._changed.wait_for(lambda: self._closed, delay):
                    return
            delay = min(delay * 2, 5.0)

    def _send_console(self, chunk: _Console) -> None:
        response: ConsoleAnswer = self._server.send_console(self._job, chunk.boot, chunk.offset, bytes(chunk.data))
        if response.truncated:
            with self._changed:
                self._capped.add(chunk.boot)


def _size_of(event: RunEvent) -> int:
    """Return the size of an event in bytes, as JSON; 0 if it cannot be encoded, which ends the delivery later."""
    try:
        return len(to_json(event))
    except PydanticSerializationError:
        return 0
