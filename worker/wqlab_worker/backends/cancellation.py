"""Cancellation of a run: a request to stop, with its reason."""

from __future__ import annotations

import threading

from wqlab_contracts.enums import ErrorKind
from wqlab_contracts.messages import Failure


class Stop:
    """A request to stop work, with its reason, and the time until which the claim is certain to hold.

    The first reason is kept. Thread-safe.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._failure: Failure | None = None
        self._holds_until = float("inf")

    def request(self, failure: Failure) -> None:
        """Request a stop for this reason; it is ignored if one was requested before."""
        with self._condition:
            self._failure = self._failure or failure
            self._condition.notify_all()

    @property
    def failure(self) -> Failure | None:
        """The reason to stop; None while the work may continue."""
        return self._failure

    def is_set(self) -> bool:
        return self._failure is not None

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until a stop is requested; return False on timeout."""
        with self._condition:
            return self._condition.wait_for(lambda: self._failure is not None, timeout_s)

    def extend(self, holds_until: float) -> None:
        """Note that the claim holds at least until this value of time.monotonic()."""
        with self._condition:
            self._holds_until = holds_until
            self._condition.notify_all()

    @property
    def holds_until(self) -> float:
        return self._holds_until

    def wait_extension(self, known: float, timeout_s: float) -> float:
        """Wait until `holds_until` differs from `known` or a stop is requested; return the current `holds_until`."""
        with self._condition:
            self._condition.wait_for(lambda: self._failure is not None or self._holds_until != known, timeout_s)
            return self._holds_until


def canceled(summary: str = "canceled") -> Failure:
    """Return the failure of a run that was canceled."""
    return Failure(kind=ErrorKind.CANCELED, summary=summary)
