"""Watch a submission: the event stream says *when* to look, the submission itself says *what* is so.

Reading state instead of adding up events means that a watcher who joins late, reconnects or misses something still
shows the truth.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Generator
from typing import TYPE_CHECKING

from wqlab_contracts.api.submissions import SubmissionView
from wqlab_contracts.enums import SubmissionState

from .errors import LabUnavailable, WqlabError
from .transport import ONCE

if TYPE_CHECKING:
    from .client import Client

CALM_S = 0.5
"""At most one look per this many seconds, however many events arrive."""
SETTLE_S = 30.0
"""A look that failed is repeated after this time even without an event."""


class _Ended:
    """The event stream is complete."""


class _Changed:
    """Something happened, or contact was regained."""


_Note = _Ended | _Changed | WqlabError


def follow(
    client: Client, submission_id: int, *, tick_s: float | None = None, give_up_s: float = 600.0
) -> Generator[SubmissionView, None, None]:
    """Yield the submission now and after every change; the last one yielded is finished.

    `tick_s`: also yield the last known one again when nothing happened for that long (for clocks on a screen).
    Raises RequestRefused (no such submission, token revoked) and LabUnavailable (no contact for `give_up_s`).
    """
    view = client.submission(submission_id)
    if view.state is SubmissionState.FINISHED:
        yield view
        return
    notes: queue.SimpleQueue[_Note] = queue.SimpleQueue()
    stop = threading.Event()
    threading.Thread(
        target=_listen, args=(client, submission_id, give_up_s, notes, stop), name="wqlab-events", daemon=True
    ).start()
    looked_at, stale, ended = time.monotonic(), False, False
    try:
        yield view
        while True:
            note = _next(notes, tick_s if not stale else min(tick_s or SETTLE_S, SETTLE_S))
            while note is not None:
                if isinstance(note, WqlabError):
                    raise note
                stale = True
                ended = ended or isinstance(note, _Ended)
                # Gather what arrives within the calm time: one look covers all of it.
                wait_s = 0.0 if ended else max(0.0, looked_at + CALM_S - time.monotonic())
                note = None if ended else _next(notes, wait_s)
            if stale:
                looked_at = time.monotonic()
                try:
                    view = client.submission(submission_id, retry=None if ended else ONCE)
                    stale = False
                except LabUnavailable:
                    # While it lives, the listener notices too and decides when to give up.
                    if ended:
                        raise
            yield view
            if view.state is SubmissionState.FINISHED:
                return
    finally:
        stop.set()


def _next(notes: queue.SimpleQueue[_Note], timeout_s: float | None) -> _Note | None:
    try:
        return notes.get(timeout=timeout_s)
    except queue.Empty:
        return None


def _listen(
    client: Client,
    submission_id: int,
    give_up_s: float,
    notes: queue.SimpleQueue[_Note],
    stop: threading.Event,
) -> None:
    def changed() -> None:
        notes.put(_Changed())

    try:
        for _ in client.events(submission_id, give_up_s=give_up_s, on_connected=changed, stop=stop):
            changed()
        notes.put(_Ended())
    except WqlabError as error:
        notes.put(error)
    except RuntimeError:
        # The follower went away and closed the client under the stream.
        if not stop.is_set():
            raise
