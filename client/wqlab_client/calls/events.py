"""Calls that follow a submission until it is finished."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from typing import TYPE_CHECKING

from pydantic import ValidationError

from wqlab_contracts.enums import SubmissionState
from wqlab_contracts.messages import Event

from .. import sse
from ..errors import LabUnavailable
from ..follow import follow
from ..transport import ONCE
from .submissions import SubmissionCalls, submission_path

if TYPE_CHECKING:
    import httpx

    from wqlab_contracts.api.submissions import SubmissionView


class EventCalls(SubmissionCalls):
    """Calls that follow submissions."""

    def events(
        self,
        submission_id: int,
        *,
        after: int = 0,
        give_up_s: float = 600.0,
        silence_s: float = 60.0,
        on_connected: Callable[[], None] | None = None,
        stop: threading.Event | None = None,
    ) -> Iterator[Event]:
        """Yield the submission's events with `seq` above `after`, each once, until the submission is finished.

        Survives lost connections and restarts of the server: it reconnects with back-off and resumes after the last
        event that it yielded. A stream that is silent for `silence_s` seconds counts as lost. Raises LabUnavailable
        after `give_up_s` seconds without contact. `stop`, set from another thread, ends the iteration at the next
        bytes from the server.
        """
        path, what = submission_path(submission_id)
        received = False
        failures, lost_at = 0, None

        def read_until_stopped(response: httpx.Response) -> Iterator[bytes]:
            nonlocal received, failures
            for chunk in response.iter_bytes():
                if stop is not None and stop.is_set():
                    return
                if chunk.startswith(b":"):  # a comment, which the server sends to keep the connection alive
                    received, failures = True, 0
                yield chunk

        while True:
            received = False
            reason = "the event stream ended"
            try:
                headers = {"Accept": "text/event-stream", "Last-Event-ID": str(after)}
                with self._transport.stream(
                    f"{path}/events", what=f"events of {what}", headers=headers, silence_s=silence_s
                ) as response:
                    lost_at = None
                    if on_connected is not None:
                        on_connected()
                    for message in sse.parse_events(read_until_stopped(response)):
                        received, failures = True, 0
                        event = Event.model_validate_json(message.data, extra="ignore")
                        if event.seq > after:
                            after = event.seq
                            yield event
                if stop is not None and stop.is_set():
                    return
                # The server closes the stream when the submission is finished, but also when it shuts down.
                if self.submission(submission_id, retry=ONCE).state is SubmissionState.FINISHED:
                    return
            except LabUnavailable as error:
                reason = error.summary
            except (ValidationError, ValueError) as error:
                raise LabUnavailable(
                    f"events of {what}: the stream contains an invalid event ({error})",
                    "check that client and server have the same version",
                ) from None
            if stop is not None and stop.is_set():
                return
            failures += 0 if received else 1
            now = time.monotonic()
            lost_at = now if lost_at is None else lost_at
            if now - lost_at > give_up_s:
                raise LabUnavailable(
                    f"events of {what}: no contact with {self.url} for {give_up_s:.0f} s ({reason})",
                    f"the submission goes on without you; resume with `wqlab watch {submission_id}`",
                )
            self._transport.wait(self._transport.retry.wait_s(max(failures, 1)), reason)

    def wait(self, submission_id: int, *, timeout_s: float | None = None) -> SubmissionView:
        """Wait until the submission is finished and return it. Raises TimeoutError after `timeout_s` seconds."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        with closing(self.follow(submission_id, tick_s=1.0)) as views:
            for view in views:
                if view.state is SubmissionState.FINISHED:
                    return view
                if deadline is not None and time.monotonic() > deadline:
                    break
        raise TimeoutError(f"submission {submission_id} is not finished after {timeout_s:.0f} s")

    def follow(
        self, submission_id: int, *, tick_s: float | None = None, give_up_s: float = 600.0
    ) -> Generator[SubmissionView, None, None]:
        """Yield the submission now and after every change until it is finished (see `follow.follow`)."""
        return follow(self, submission_id, tick_s=tick_s, give_up_s=give_up_s)
