"""Stream a boot's console as raw bytes."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from starlette.concurrency import run_in_threadpool

from ..http.sse import Notifications
from ..models import Boot
from ..storage.db import SessionFactory
from ..storage.events import RUN_CHANNEL, SUBMISSION_CHANNEL
from . import queries


async def console(
    sessions: SessionFactory,
    notifications: Notifications,
    *,
    boot: Boot,
    submission_id: int | None,
    offset: int,
    follow: bool,
) -> AsyncGenerator[bytes, None]:
    """Yield the stored bytes from `offset`; with `follow`, also new bytes until the boot has ended."""

    def read(offset: int) -> queries.ConsolePart:
        with sessions() as session:
            return queries.console_part(session, boot.id, offset)

    topics = [(RUN_CHANNEL, str(boot.run_id))]
    if submission_id is not None:
        topics.append((SUBMISSION_CHANNEL, str(submission_id)))  # announces the end of a boot
    with notifications.subscribe(*topics) as subscription:
        while True:
            part = await run_in_threadpool(read, offset)
            if part.data:
                yield part.data
                offset += len(part.data)
            elif part.ended or not follow:
                return
            else:
                await subscription.wait()
