"""Calls on what a series touches: the targets that the lab proposes for it."""

from __future__ import annotations

import time

from wqlab_contracts.api.threads import ThreadPreview
from wqlab_contracts.api.touches import Touches, TouchesRequest
from wqlab_contracts.enums import JobState
from wqlab_contracts.messages import Series, ThreadSeries

from ..errors import LabUnavailable, UsageError
from ..transport import Params
from .connection import API, Connection

THREAD_WAIT_S = 300.0
"""Time for a worker to find a thread in the archives."""
_POLL_S = 20.0


class TouchesCalls(Connection):
    """Calls on what a series touches."""

    def touches(self, series: Series, tree: str | None = None) -> Touches:
        """Return the targets that the lab proposes for an mbox or a mailed series, with their cost.

        Raises UsageError if a mailed series is in no archive of the lab, and LabUnavailable if it is not found in
        THREAD_WAIT_S.
        """
        if series.thread is not None:
            self._find_thread(series.thread)
        body = TouchesRequest(series=series, tree=tree).model_dump_json().encode()
        return self._post(Touches, f"{API}/touches", "what the series touches", body=body)

    def _find_thread(self, series: ThreadSeries) -> ThreadPreview:
        """Let a worker look for a thread, and return what it found."""
        what = f"look for {series.message_id}"
        deadline = time.monotonic() + THREAD_WAIT_S
        while True:
            wait_s = int(max(0.0, min(_POLL_S, deadline - time.monotonic())))
            params: Params = {"message_id": series.message_id, "revision": series.revision, "wait_s": wait_s}
            found = self._get(ThreadPreview, f"{API}/archives/thread", what, params)
            if found.failure is not None:
                raise UsageError(f"{what}: {found.failure.summary}", found.failure.advice)
            if found.state is JobState.FINISHED:
                return found
            if time.monotonic() >= deadline:
                raise LabUnavailable(
                    f"{what}: not finished after {THREAD_WAIT_S:.0f} s",
                    "check that the lab's workers run, and try again",
                )
