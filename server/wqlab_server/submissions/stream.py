"""Stream of a submission's events as server-sent events."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from starlette.concurrency import run_in_threadpool

from wqlab_contracts.messages import Event

from ..http.sse import HEARTBEAT, Notifications, server_sent_event
from ..storage.db import SessionFactory
from ..storage.events import SUBMISSION_CHANNEL
from . import queries


async def events(
    sessions: SessionFactory, notifications: Notifications, submission_id: int, after: int
) -> AsyncGenerator[bytes, None]:
    """Yield every event with a `seq` above `after` once it is committed, until the submission is finished."""

    def read(after: int) -> tuple[bool, list[Event]]:
        with sessions() as session:
            # Read the state first: all events emitted before the submission finished are then among the events read.
            finished = queries.is_finished(session, submission_id)
            return finished, queries.events_after(session, submission_id, after)

    with notifications.subscribe((SUBMISSION_CHANNEL, str(submission_id))) as subscription:
        yield HEARTBEAT
        while True:
            finished, batch = await run_in_threadpool(read, after)
            for event in batch:
                after = event.seq
                framed = server_sent_event(event=event.kind, data=event.model_dump_json(), event_id=event.seq)
                yield framed.encode()
            if batch:
                continue
            if finished:
                return
            if not await subscription.wait():
                yield HEARTBEAT
