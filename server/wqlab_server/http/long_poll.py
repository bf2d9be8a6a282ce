"""Hold a request until what it asks for has changed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated, Protocol, TypeVar

from fastapi import Query, Request
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool

from wqlab_contracts.enums import JobState

from ..storage.db import SessionFactory, transaction
from ..storage.events import JOB_CHANNEL
from .limits import slow_responses
from .sse import notifications_of

DEFAULT_S = 10.0
MAX_S = 20.0

WaitS = Annotated[float, Query(ge=0, le=MAX_S, description="Longest time to wait for the result")]

Found = TypeVar("Found")


class _HasState(Protocol):
    @property
    def state(self) -> JobState: ...


Looked = TypeVar("Looked", bound=_HasState)


async def wait_until(
    is_awaited: Callable[[Found], bool],
    read: Callable[[], Found],
    *,
    request: Request,
    topic: tuple[str, str],
    wait_s: float,
) -> Found:
    """Return the value of `read` as soon as `is_awaited` accepts it, or its current value after `wait_s` seconds.

    `topic` is the channel and key of the notifications after which `read` returns something else. `read` runs in a
    thread.

    Raises:
        ApiProblem: The client holds too many slow responses already.
    """
    deadline = time.monotonic() + wait_s
    with slow_responses(request).streams.use(request), notifications_of(request).subscribe(topic) as subscription:
        while True:
            found = await run_in_threadpool(read)
            left_s = deadline - time.monotonic()
            if is_awaited(found) or left_s <= 0:
                return found
            await subscription.wait(left_s)


async def wait_for_job(
    order: Callable[[Session], int], read: Callable[[Session, int], Looked], *, request: Request, wait_s: float
) -> Looked:
    """Order a job, and return what `read` makes of it once it is finished, or its current state after `wait_s` seconds.

    Each is called in a thread and a transaction of its own; `order` returns the job's id.
    """
    factory: SessionFactory = request.app.state.sessions

    def ordered() -> int:
        with transaction(factory) as session:
            return order(session)

    def current() -> Looked:
        with transaction(factory) as session:
            return read(session, job_id)

    job_id = await run_in_threadpool(ordered)
    topic = (JOB_CHANNEL, str(job_id))
    return await wait_until(
        lambda found: found.state is JobState.FINISHED, current, request=request, topic=topic, wait_s=wait_s
    )
