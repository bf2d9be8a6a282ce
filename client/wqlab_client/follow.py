"""Follow a submission until it is finished.

The event stream only says when to fetch the submission again. Because the state is fetched instead of being added up
from events, a follower that joins late, reconnects or misses an event still shows the current state.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Protocol

from wqlab_contracts.enums import SubmissionState

from .errors import LabUnavailable, WqlabError
from .transport import ONCE, Retry

if TYPE_CHECKING:
    from wqlab_contracts.api.submissions import SubmissionView
    from wqlab_contracts.messages import Event

MIN_FETCH_INTERVAL_S = 0.5
"""The submission is fetched at most once in this time, however many events arrive."""
REFETCH_S = 30.0
"""A failed fetch is repeated after this time even without an event."""
LISTENER_END_S = 2.0
"""Once the submission is finished, wait at most this time for the server to close the event stream."""


class SubmissionSource(Protocol):
    """The two methods of `Client` that following needs."""

    def submission(self, submission_id: int, *, retry: Retry | None = None) -> SubmissionView: ...

    def events(
        self,
        submission_id: int,
        *,
        give_up_s: float = ...,
        on_connected: Callable[[], None] | None = None,
        stop: threading.Event | None = None,
    ) -> Iterator[Event]: ...


class _Ended:
    """The event stream is complete."""


class _Changed:
    """An event arrived, or the connection was established again."""


_Signal = _Ended | _Changed | WqlabError


def follow(
    source: SubmissionSource, submission_id: int, *, tick_s: float | None = None, give_up_s: float = 600.0
) -> Generator[SubmissionView, None, None]:
    """Yield the submission now and after every change; the last one yielded is finished.

    `tick_s`: also yield the last known state again when nothing happened for that long (to update clocks on a screen).
    Raises RequestRefused (no such submission, token revoked) and LabUnavailable (no contact for `give_up_s`).
    """
    view = source.submission(submission_id)
    if view.state is SubmissionState.FINISHED:
        yield view
        return
    signals: queue.SimpleQueue[_Signal] = queue.SimpleQueue()
    stop = threading.Event()
    listener = threading.Thread(
        target=_listen, args=(source, submission_id, give_up_s, signals, stop), name="wqlab-events", daemon=True
    )
    listener.start()
    fetched_at, stale, ended = time.monotonic(), False, False
    try:
        yield view
        while True:
            signal = _next_signal(signals, tick_s if not stale else min(tick_s or REFETCH_S, REFETCH_S))
            while signal is not None:
                if isinstance(signal, WqlabError):
                    raise signal
                stale = True
                ended = ended or isinstance(signal, _Ended)
                # Collect the signals of the minimum interval: one fetch covers all of them.
                wait_s = 0.0 if ended else max(0.0, fetched_at + MIN_FETCH_INTERVAL_S - time.monotonic())
                signal = None if ended else _next_signal(signals, wait_s)
            if stale:
                fetched_at = time.monotonic()
                try:
                    view = source.submission(submission_id, retry=None if ended else ONCE)
                    stale = False
                except LabUnavailable:
                    # While the listener runs, it notices the failure too and decides when to give up.
                    if ended:
                        raise
            if view.state is SubmissionState.FINISHED:
                # The server ends the stream of a finished submission. A thread that still reads when the interpreter
                # exits can abort the process ("exception not rethrown").
                stop.set()
                listener.join(LISTENER_END_S)
            yield view
            if view.state is SubmissionState.FINISHED:
                return
    finally:
        stop.set()


def _next_signal(signals: queue.SimpleQueue[_Signal], timeout_s: float | None) -> _Signal | None:
    try:
        return signals.get(timeout=timeout_s)
    except queue.Empty:
        return None


def _listen(
    source: SubmissionSource,
    submission_id: int,
    give_up_s: float,
    signals: queue.SimpleQueue[_Signal],
    stop: threading.Event,
) -> None:
    def signal_change() -> None:
        signals.put(_Changed())

    try:
        for _ in source.events(submission_id, give_up_s=give_up_s, on_connected=signal_change, stop=stop):
            signal_change()
        signals.put(_Ended())
    except WqlabError as error:
        signals.put(error)
    except RuntimeError:
        # The follower ended and closed the client while the stream was being read.
        if not stop.is_set():
            raise
