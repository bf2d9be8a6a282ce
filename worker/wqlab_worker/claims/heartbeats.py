"""Holding a claim: heartbeats keep it, and the work stops by itself before the claim can expire."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

import httpx
import structlog

from wqlab_contracts.enums import ErrorKind
from wqlab_contracts.messages import Failure, HeartbeatAnswer

from .server import JobRef, Server, ServerRefused, StaleFence

log = structlog.get_logger()

SAFETY_SHARE = 0.25
"""Share of a lease kept back: the work is stopped this early, to power a device off before somebody else gets it."""


class Stop:
    """Tells work to end, and why; carries how long the claim is certain to hold.

    Set once: the first reason stays. Safe from any thread.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._failure: Failure | None = None
        self._holds_until = float("inf")

    def request(self, failure: Failure) -> None:
        with self._condition:
            self._failure = self._failure or failure
            self._condition.notify_all()

    @property
    def failure(self) -> Failure | None:
        """Why to stop; None while the work may go on."""
        return self._failure

    def is_set(self) -> bool:
        return self._failure is not None

    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits until a stop is requested; False when the time is over first."""
        with self._condition:
            return self._condition.wait_for(lambda: self._failure is not None, timeout_s)

    def extend(self, holds_until: float) -> None:
        """The claim holds until this time.monotonic() at least."""
        with self._condition:
            self._holds_until = holds_until
            self._condition.notify_all()

    @property
    def holds_until(self) -> float:
        return self._holds_until

    def wait_extension(self, known: float, timeout_s: float) -> float:
        """Waits until the claim's end differs from `known` or a stop is requested; returns the present end."""
        with self._condition:
            self._condition.wait_for(lambda: self._failure is not None or self._holds_until != known, timeout_s)
            return self._holds_until


def canceled(summary: str = "canceled") -> Failure:
    return Failure(kind=ErrorKind.CANCELED, summary=summary)


def lease_lost(summary: str) -> Failure:
    return Failure(
        kind=ErrorKind.INFRASTRUCTURE,
        summary=summary,
        advice="The server hands the work to another worker; nothing of this one is counted twice.",
    )


class Heartbeats:
    """Context manager: a thread that keeps the claim of `ref` and requests `stop` when it cannot.

    A worker that does not reach the server stops at three quarters of the lease, counted from *before* the last
    answered request was sent, so that the server's clock never runs out first.
    """

    def __init__(self, server: Server, ref: JobRef, expires_in_s: float, claimed_at: float, stop: Stop) -> None:
        self._server = server
        self._ref = ref
        self._stop = stop
        self._lease_s = expires_in_s
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._beat, name=f"heartbeat {ref}", daemon=True)
        self._extend(claimed_at, expires_in_s)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()

    def _extend(self, sent_at: float, expires_in_s: float) -> None:
        self._lease_s = expires_in_s
        self._stop.extend(sent_at + expires_in_s * (1 - SAFETY_SHARE))

    def _beat(self) -> None:
        pause = self._lease_s / 4
        while not self._done.wait(max(0.0, min(pause, self._stop.holds_until - time.monotonic()))):
            if time.monotonic() >= self._stop.holds_until:
                self._stop.request(lease_lost(f"the server did not answer in time to keep the claim of {self._ref}"))
                return
            sent_at = time.monotonic()
            answer = self._ask(self._stop.holds_until - sent_at)
            if answer is None:
                pause = min(1.0, self._lease_s / 20)
                continue
            self._extend(sent_at, answer.expires_in_s)
            pause = self._lease_s / 4
            if answer.cancel:
                self._stop.request(canceled())

    def _ask(self, patience_s: float) -> HeartbeatAnswer | None:
        try:
            return self._server.heartbeat(self._ref, timeout_s=min(10.0, max(1.0, patience_s)))
        except StaleFence:
            self._stop.request(lease_lost(f"{self._ref}: the claim is no longer ours"))
        except ServerRefused as error:
            log.error("heartbeat refused", job=str(self._ref), error=str(error))
        except httpx.TransportError as error:
            log.warning("heartbeat not answered", job=str(self._ref), error=repr(error))
        return None
