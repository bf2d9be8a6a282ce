"""Keep a claim with heartbeats, and stop the work before the claim can expire."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

import httpx
import structlog

from wqlab_contracts.enums import ErrorKind
from wqlab_contracts.messages import Failure, HeartbeatAnswer

from ..backends.cancellation import Stop, canceled
from .server import JobRef, Server, ServerRefused, StaleFence

log = structlog.get_logger()

SAFETY_SHARE = 0.25
"""Share of a lease that is left when the work is stopped, so that the device is off before another run gets it."""


def lease_lost(summary: str) -> Failure:
    return Failure(
        kind=ErrorKind.INFRASTRUCTURE,
        summary=summary,
        advice="The server gives the work to another worker; no result is counted twice.",
    )


class Heartbeats:
    """Context manager that sends heartbeats for the claim of `ref`, and requests `stop` if the claim is lost.

    A worker that does not reach the server stops after three quarters of the lease. This time starts *before* the last
    successful heartbeat was sent, so the worker always stops before the server's lease expires.
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
            answer = self._send(self._stop.holds_until - sent_at)
            if answer is None:
                pause = min(1.0, self._lease_s / 20)
                continue
            self._extend(sent_at, answer.expires_in_s)
            pause = self._lease_s / 4
            if answer.cancel:
                self._stop.request(canceled())

    def _send(self, timeout_s: float) -> HeartbeatAnswer | None:
        try:
            return self._server.heartbeat(self._ref, timeout_s=min(10.0, max(1.0, timeout_s)))
        except StaleFence:
            self._stop.request(lease_lost(f"{self._ref}: another worker holds the claim"))
        except ServerRefused as error:
            log.error("heartbeat refused", job=str(self._ref), error=str(error))
        except httpx.TransportError as error:
            log.warning("heartbeat failed", job=str(self._ref), error=repr(error))
        return None
