"""Calls on what a series touches: the targets that the lab proposes for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from wqlab_contracts.api.series import BranchInspection
from wqlab_contracts.api.threads import ThreadPreview
from wqlab_contracts.api.touches import Touches, TouchesRequest
from wqlab_contracts.enums import ErrorKind, JobState

from ..errors import LabUnavailable, UsageError
from ..formatting import one_line
from ..transport import Params
from .connection import API, Connection

if TYPE_CHECKING:
    from wqlab_contracts.messages import Failure, GitSeries, Series, ThreadSeries

THREAD_WAIT_S = 300.0
"""Time for a worker to find a thread in the archives."""
BRANCH_WAIT_S = 1200.0
"""Time for a worker to read a branch. The first fetch of a tree takes minutes."""
_POLL_S = 20.0
_REPEAT_S = 30.0
"""Age of a line that is printed again, since CI systems end a job that prints nothing for some minutes."""

FoundT = TypeVar("FoundT", ThreadPreview, BranchInspection)


def ignore(_: str) -> None:
    """Do nothing with a line."""


class TouchesCalls(Connection):
    """Calls on what a series touches."""

    def touches(self, series: Series, tree: str | None = None, on_wait: Callable[[str], None] = ignore) -> Touches:
        """Return the targets that the lab proposes for an mbox, a mailed series or a branch, with their cost.

        `on_wait` is called when the text that says what the lab does changes, and at least once a minute. Raises
        UsageError if a mailed series is in no archive of the lab or a branch cannot be read, and LabUnavailable if
        the lab fails or does not know that in THREAD_WAIT_S or BRANCH_WAIT_S.
        """
        if series.thread is not None:
            self._find_thread(series.thread, on_wait)
        elif series.git is not None:
            self._read_branch(series.git, tree, on_wait)
        body = TouchesRequest(series=series, tree=tree).model_dump_json().encode()
        return self._post(Touches, f"{API}/touches", "what the series touches", body=body)

    def _find_thread(self, series: ThreadSeries, on_wait: Callable[[str], None]) -> ThreadPreview:
        """Let a worker look for a thread, and return what it found."""
        params: Params = {"message_id": series.message_id, "revision": series.revision}
        what = f"look for {series.message_id}"
        path = "/archives/thread"
        return self._wait_for(ThreadPreview, path, what, params, limit_s=THREAD_WAIT_S, on_wait=on_wait)

    def _read_branch(self, series: GitSeries, tree: str | None, on_wait: Callable[[str], None]) -> BranchInspection:
        """Let a worker read a branch, and return what it found."""
        params: Params = {"url": series.url, "ref": series.ref, "base": series.base, "tree": tree}
        what = f"read {series.ref} of {series.url}"
        path = "/git/branches/inspection"
        return self._wait_for(BranchInspection, path, what, params, limit_s=BRANCH_WAIT_S, on_wait=on_wait)

    def _wait_for(
        self,
        model: type[FoundT],
        path: str,
        what: str,
        params: Params,
        *,
        limit_s: float,
        on_wait: Callable[[str], None],
    ) -> FoundT:
        """Repeat a request whose answer a worker finds until it is finished, and return the answer."""
        deadline = time.monotonic() + limit_s
        told, told_at = "", 0.0
        while True:
            wait_s = int(max(0.0, min(_POLL_S, deadline - time.monotonic())))
            found = self._get(model, f"{API}{path}", what, {**params, "wait_s": wait_s})
            if (failure := found.failure) is not None:
                lab_failed = failure.kind is ErrorKind.INFRASTRUCTURE
                raise (LabUnavailable if lab_failed else UsageError)(f"{what}: {_cause(failure)}", failure.advice)
            if found.state is JobState.FINISHED:
                return found
            if time.monotonic() >= deadline:
                raise LabUnavailable(
                    f"{what}: not finished after {limit_s:.0f} s",
                    "check that the lab's workers run, and try again",
                )
            doing = (found.progress if isinstance(found, BranchInspection) else "") or _state_text(found)
            if doing != told or time.monotonic() - told_at >= _REPEAT_S:
                on_wait(f"{what}: {doing}")
                told, told_at = doing, time.monotonic()


def _cause(failure: Failure) -> str:
    """Return the summary of a failure with the last line of its excerpt, which is git's own message."""
    lines = failure.excerpt.strip().splitlines()
    return f"{failure.summary} ({one_line(lines[-1])})" if lines else failure.summary


def _state_text(found: ThreadPreview | BranchInspection) -> str:
    return "a worker has begun" if found.state is JobState.RUNNING else "waiting for a worker"
