"""Inspect an mbox in a process of its own, with limits of time and memory.

Parsing a mailbox of the maximum size takes seconds, during which regular expressions hold the interpreter's lock; in a
thread, it would stop every other request.
"""

from __future__ import annotations

import resource
from collections.abc import Callable
from contextlib import nullcontext
from typing import Annotated

import anyio
from anyio import BrokenWorkerProcess, CapacityLimiter, from_thread, to_process
from anyio.lowlevel import RunVar
from fastapi import Depends, Request

from wqlab_contracts.api.series import SeriesInspection
from wqlab_contracts.mails.inspection import inspect

from .limits import slow_responses
from .problems import invalid

Inspect = Callable[[str], SeriesInspection]
"""Inspects an mbox, as `wqlab_contracts.mails.inspection.inspect` does."""

TIMEOUT_S = 30.0
MEMORY_BYTES = 2 << 30
"""Address space: an mbox of 20 million characters needs 0.5 GB."""
SHORT_LENGTH = 200_000
"""Longest mbox, in characters, that is inspected in a fraction of a second."""
_PROCESSES = 2
_limiter: RunVar[CapacityLimiter] = RunVar("inspections")


class InspectionFailed(Exception):
    """The inspection took too long or too much memory; the text names the fix."""


async def inspect_in_process(text: str) -> SeriesInspection:
    """Inspect an mbox as `inspect` does; waits while _PROCESSES others are inspected. Raises InspectionFailed."""
    limiter = _limiter.get(None)
    if limiter is None:
        _limiter.set(limiter := CapacityLimiter(_PROCESSES))
    advice = "give the series as a git URL and branch, or save only the mails of this version"
    async with limiter:
        try:
            with anyio.fail_after(TIMEOUT_S):
                return await to_process.run_sync(_inspect, text, cancellable=True)
        except TimeoutError:
            raise InspectionFailed(f"the mbox could not be inspected within {TIMEOUT_S:.0f} s: {advice}") from None
        except (BrokenWorkerProcess, MemoryError):
            raise InspectionFailed(f"the mbox needs too much memory to inspect: {advice}") from None


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


def _inspect(text: str) -> SeriesInspection:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    return inspect(text)
