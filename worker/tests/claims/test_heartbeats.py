"""Heartbeats, and the stop of work whose claim is lost."""

from __future__ import annotations

import time

import httpx
import pytest

from wqlab_contracts.enums import ErrorKind
from wqlab_contracts.messages import Failure
from wqlab_worker.backends.cancellation import Stop
from wqlab_worker.claims.heartbeats import Heartbeats

from .fakelab import REF, CommandResult, server


def heartbeats(answer: CommandResult, lease_s: float) -> tuple[Heartbeats, Stop]:
    stop = Stop()
    return Heartbeats(server(answer), REF, lease_s, time.monotonic(), stop), stop


def test_heartbeats_extend_the_lease() -> None:
    beats, stop = heartbeats(lambda request: httpx.Response(200, json={"expires_in_s": 3600, "cancel": False}), 8.0)
    known = stop.holds_until
    with beats:
        assert stop.wait_extension(known, 3600) > known + 1000
    assert not stop.is_set()


@pytest.mark.parametrize("status", [0, 500])
def test_work_stops_before_the_lease_expires(status: int) -> None:
    def away(request: httpx.Request) -> httpx.Response:
        if status:
            return httpx.Response(status)
        raise httpx.ConnectError("no", request=request)

    claimed = time.monotonic()
    beats, stop = heartbeats(away, 2.0)
    with beats:
        assert stop.wait()
    assert stop.holds_until < claimed + 2.0
    assert stop.failure and stop.failure.kind is ErrorKind.INFRASTRUCTURE


def test_cancellation_and_stale_fence_stop_the_work() -> None:
    for answer, kind in (
        (httpx.Response(200, json={"expires_in_s": 60, "cancel": True}), ErrorKind.CANCELED),
        (httpx.Response(409), ErrorKind.INFRASTRUCTURE),
    ):
        beats, stop = heartbeats(lambda request, answer=answer: answer, 8.0)  # type: ignore[misc]
        with beats:
            assert stop.wait()
        assert stop.failure and stop.failure.kind is kind


def test_first_reason_to_stop_is_kept() -> None:
    stop = Stop()
    stop.request(Failure(kind=ErrorKind.CANCELED, summary="first"))
    stop.request(Failure(kind=ErrorKind.INFRASTRUCTURE, summary="second"))
    assert stop.failure and stop.failure.summary == "first"
