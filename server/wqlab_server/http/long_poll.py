"""Hold a request until what it asks for has changed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from .limits import slow_responses
from .sse import notifications_of

DEFAULT_S = 10.0
MAX_S = 20.0

Found = TypeVar("Found")


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
