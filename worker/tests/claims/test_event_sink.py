"""Delivery of events and console output to a failing server: nothing is lost, repeated or reordered."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime

import httpx
import pytest

from wqlab_contracts.enums import Arm, ErrorKind
from wqlab_contracts.messages import BlockDiscarded, Failure, Progress, RunEvent, StackFrame
from wqlab_contracts.messages.base import STACK_LIMIT
from wqlab_worker.claims.event_sink import ServerEventSink
from wqlab_worker.claims.server import ServerRefused, StaleFence

from .fakelab import BOOT, REF, FakeLab, event, server


def make_sink(
    lab: FakeLab, refused: Callable[[Exception], None] = lambda error: None, **options: float
) -> ServerEventSink:
    return ServerEventSink(server(lab), REF, refused, linger_s=0.01, retry_s=0.02, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("status", [0, 500, 503])
def test_outage_loses_and_reorders_nothing(status: int) -> None:
    lab = FakeLab()
    lab.status = status
    sink = make_sink(lab)
    lab.broken.set()
    text = bytes(range(256)) * 100
    for number in range(300):
        sink.event(event(number))
        sink.console(BOOT, number * 80, text[number * 80 : number * 80 + 80])
    assert not sink.flush(0.2)
    lab.broken.clear()
    assert sink.flush(3600)
    sink.close()
    assert lab.blocks == list(range(300))
    assert bytes(lab.console) == text[: 300 * 80]


def test_batch_with_lost_response_is_sent_again() -> None:
    lab = FakeLab()
    lab.lose_responses = True
    sink = make_sink(lab)
    for number in range(20):
        sink.event(event(number))
    sink.console(BOOT, 0, b"hello")
    assert sink.flush(3600)
    sink.close()
    assert lab.blocks == list(range(20))
    assert bytes(lab.console) == b"hello"


def test_events_are_sent_in_batches() -> None:
    lab = FakeLab()
    sink = make_sink(lab)
    lab.broken.set()
    for number in range(1000):
        sink.event(event(number))
    lab.broken.clear()
    assert sink.flush(3600)
    assert lab.blocks == list(range(1000))
    assert lab.requests < 30
    sink.close()


def test_large_events_are_sent_in_small_batches() -> None:
    """As when a kernel prints two hundred warnings at once, each with a long call trace."""
    sizes: list[int] = []

    class Sizes(FakeLab):
        def __call__(self, request: httpx.Request) -> httpx.Response:
            sizes.append(len(request.content))
            return super().__call__(request)

    lab = Sizes()
    lab.broken.set()
    sink = make_sink(lab)
    trace = tuple(StackFrame(function="f" * 200, file="d" * 300, source="\U0001f512" * 120) for _ in range(STACK_LIMIT))
    for number in range(200):
        failure = Failure(kind=ErrorKind.KERNEL, summary="oops", excerpt="\U0001f512" * 16_000, stack=trace)
        sink.event(BlockDiscarded(at=datetime.now(UTC), block=number, attempt=0, arm=Arm.CANDIDATE, failure=failure))
    lab.broken.clear()
    assert sink.flush(3600)
    sink.close()
    assert 1 << 20 < max(sizes) < 5 << 20


def test_stale_fence_stops_the_sink() -> None:
    refused: list[Exception] = []
    lab = FakeLab()
    lab.status = 409
    lab.broken.set()
    sink = make_sink(lab, refused.append)
    sink.event(event(0))
    assert not sink.flush(10)
    assert isinstance(refused[0], StaleFence)
    assert lab.requests == 1
    sink.event(event(1))  # does not block
    sink.close()


@pytest.mark.parametrize("status", [400, 403, 404, 413, 422])
def test_refused_batch_stops_the_sink(status: int) -> None:
    refused: list[Exception] = []
    lab = FakeLab()
    lab.status = status
    lab.broken.set()
    sink = make_sink(lab, refused.append)
    sink.event(event(0))
    assert not sink.flush(10)
    assert isinstance(refused[0], ServerRefused)
    assert lab.requests == 1
    sink.close()


def test_unencodable_event_stops_the_sink() -> None:
    refused: list[Exception] = []
    lab = FakeLab()
    sink = make_sink(lab, refused.append, limit_bytes=1000)
    sink.event(Progress.model_construct(at=datetime.now(UTC), text="\ud800"))
    assert not sink.flush(10)
    assert len(refused) == 1
    for number in range(10):
        sink.event(event(number))  # does not block
    assert lab.blocks == []
    sink.close()


def test_full_queue_blocks() -> None:
    lab = FakeLab()
    lab.broken.set()
    sink = make_sink(lab, limit_bytes=10_000)
    done = threading.Event()

    def fill() -> None:
        for number in range(40):
            sink.console(BOOT, number * 1000, b"x" * 1000)
        done.set()

    threading.Thread(target=fill, daemon=True).start()
    assert not done.wait(0.3)
    lab.broken.clear()
    done.wait()
    assert sink.flush(3600)
    assert len(lab.console) == 40_000
    sink.close()


def test_truncated_console_is_not_sent_further() -> None:
    lab = FakeLab()
    lab.truncated_after = 10
    sink = make_sink(lab)
    sink.console(BOOT, 0, b"x" * 20)
    assert sink.flush(3600)
    before = lab.requests
    sink.console(BOOT, 20, b"x" * 20)
    assert sink.flush(3600)
    assert lab.requests == before
    sink.close()


def test_size_of_every_event_kind_is_counted() -> None:
    kinds = RunEvent.__args__[0].__args__  # type: ignore[attr-defined]
    assert len(kinds) == 10, "there is a new event kind: does the event sink count its size?"
