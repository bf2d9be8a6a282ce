"""Inspect or compare mboxes in a process of their own, with limits of time and memory.

Parsing a mailbox of the maximum size takes seconds, during which regular expressions hold the interpreter's lock; in a
thread, it would stop every other request.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Annotated, TypeVar

from anyio import BrokenWorkerProcess, CapacityLimiter, from_thread, to_process
from anyio.lowlevel import RunVar
from fastapi import Depends, Request

from wqlab_contracts.api.series import SeriesInspection
from wqlab_contracts.mails.inspection import inspect

from .limits import slow_responses
from .problems import invalid

T = TypeVar("T")
Inspect = Callable[[str], SeriesInspection]
"""Inspects an mbox, as `wqlab_contracts.mails.inspection.inspect` does."""

CPU_S = 30
"""CPU time of an inspection. On a busy machine an inspection of a second has been seen to take 30 s of the clock."""
MEMORY_BYTES = 2 << 30
"""Address space: an mbox of 20 million characters needs 0.5 GB."""
SHORT_LENGTH = 200_000
"""Longest mbox, in characters, that is inspected in a fraction of a second."""
_PROCESSES = 2
_limiter: RunVar[CapacityLimiter] = RunVar("inspections")


class InspectionFailed(Exception):
    """The inspection took too much CPU time or memory; the text names the fix."""


async def inspect_in_process(text: str) -> SeriesInspection:
    """Inspect an mbox as `inspect` does; waits while _PROCESSES others are inspected. Raises InspectionFailed."""
    return await run_in_process(inspect, text)


async def run_in_process(function: Callable[..., T], *texts: str | bytes) -> T:
    """Return what a function of mboxes returns; waits while _PROCESSES others run. Raises InspectionFailed."""
    limiter = _limiter.get(None)
    if limiter is None:
        _limiter.set(limiter := CapacityLimiter(_PROCESSES))
    async with limiter:
        try:
            return await to_process.run_sync(_limited, function, texts, CPU_S, cancellable=True)
        except (BrokenWorkerProcess, MemoryError):
            raise InspectionFailed(
                f"the mbox needs more than {CPU_S} s of CPU time or {MEMORY_BYTES >> 30} GB of memory to inspect: "
                "give the series as a git URL and branch, or save only the mails of this version"
            ) from None


class RequestInspection:
    """Inspects the mbox of a request, once, in a process; for endpoints that run in a thread."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._found: tuple[str, SeriesInspection] | None = None

    def __call__(self, text: str) -> SeriesInspection:
        """Return the inspection. Raises ApiProblem 422 if it needs too much time or memory, 429 and 503 without a
        slot. A short mbox needs no slot: several submissions at once are usual, and it only waits for a process."""
        if self._found is None or self._found[0] != text:
            slots = slow_responses(self._request).inspections
            with slots.use(self._request) if len(text) > SHORT_LENGTH else nullcontext():
                try:
                    self._found = text, from_thread.run(inspect_in_process, text)
                except InspectionFailed as error:
                    raise invalid([{"pointer": "/series/mbox/text", "detail": str(error)}]) from error
        return self._found[1]


BoundedInspect = Annotated[Inspect, Depends(RequestInspection)]


def _limited(function: Callable[..., T], texts: Sequence[str | bytes], cpu_s: int) -> T:
    """Call a function with limits: the kernel kills the process after `cpu_s` more seconds of CPU time."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    used, (_, most) = int(time.process_time()), resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (used + cpu_s, most))
    return function(*texts)
