"""Events and consoles on their way to a server that fails: nothing is lost, doubled or disordered."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from wqlab_contracts.messages import Progress
from wqlab_worker.claims.event_sink import Outbox
from wqlab_worker.claims.server import ServerRefused, StaleFence

from .fakelab import BOOT, REF, FakeLab, event, server


def outbox(lab: FakeLab, refused: Callable[[Exception], None] = lambda error: None, **options: float) -> Outbox:
    return Outbox(server(lab), REF, refused, linger_s=0.01, retry_s=0.02, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("status", [0, 500, 503])
def test_nothing_is_lost_or_disordered_by_an_outage(status: int) -> None:
    lab = FakeLab()
    lab.status = status
    box = outbox(lab)
    lab.broken.set()
    text = bytes(range(256)) * 100
    for number in range(300):
        box.event(event(number))
        box.console(BOOT, number * 80, text[number * 80 : number * 80 + 80])
    assert not box.flush(0.2)
    lab.broken.clear()
    assert box.flush(20)
    box.close()
    assert lab.blocks == list(range(300))
    assert bytes(lab.console) == text[: 300 * 80]


def test_lost_answers_are_sent_again_and_counted_once() -> None:
    lab = FakeLab()
    lab.lose_answers = True
    box = outbox(lab)
    for number in range(20):
        box.event(event(number))
    box.console(BOOT, 0, b"hello")
    assert box.flush(20)
    box.close()
    assert lab.blocks == list(range(20))
    assert bytes(lab.console) == b"hello"


def test_events_travel_in_batches() -> None:
    lab = FakeLab()
    box = outbox(lab)
    lab.broken.set()
    for number in range(1000):
        box.event(event(number))
    lab.broken.clear()
    assert box.flush(20)
    assert lab.blocks == list(range(1000))
    assert lab.requests < 30
    box.close()


def test_a_stale_fence_ends_the_outbox_and_says_so() -> None:
    refused: list[Exception] = []
    lab = FakeLab()
    lab.status = 409
    lab.broken.set()
    box = outbox(lab, refused.append)
    box.event(event(0))
    assert not box.flush(10)
    assert isinstance(refused[0], StaleFence)
    assert lab.requests == 1
    box.event(event(1))  # does not block
    box.close()


@pytest.mark.parametrize("status", [400, 403, 404, 413, 422])
def test_a_refusal_ends_the_outbox_instead_of_being_repeated(status: int) -> None:
    refused: list[Exception] = []
    lab = FakeLab()
    lab.status = status
    lab.broken.set()
    box = outbox(lab, refused.append)
    box.event(event(0))
    assert not box.flush(10)
    assert isinstance(refused[0], ServerRefused)
    assert lab.requests == 1
    box.close()


def test_what_cannot_be_sent_ends_the_outbox_and_blocks_nobody() -> None:
    refused: list[Exception] = []
    lab = FakeLab()
    box = outbox(lab, refused.append, limit_bytes=1000)
    box.event(Progress.model_construct(at=datetime.now(UTC), text="\ud800"))
    assert not box.flush(10)
    assert len(refused) == 1
    for number in range(10):
        box.event(event(number))  # does not block
    assert lab.blocks == []
    box.close()


def test_memory_is_bounded_by_blocking() -> None:
    lab = FakeLab()
    lab.broken.set()
    box = outbox(lab, limit_bytes=10_000)
    done = threading.Event()

    def fill() -> None:
        for number in range(40):
            box.console(BOOT, number * 1000, b"x" * 1000)
        done.set()

    threading.Thread(target=fill, daemon=True).start()
    assert not done.wait(0.3)
    lab.broken.clear()
    assert done.wait(20)
    assert box.flush(20)
    assert len(lab.console) == 40_000
    box.close()


def test_a_capped_console_is_not_sent_on() -> None:
    lab = FakeLab()
    lab.truncated_after = 10
    box = outbox(lab)
    box.console(BOOT, 0, b"x" * 20)
    assert box.flush(10)
    before = lab.requests
    box.console(BOOT, 20, b"x" * 20)
    assert box.flush(10)
    assert lab.requests == before
    box.close()
