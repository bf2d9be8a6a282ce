"""The order in which the boots of a run are made, and how they end."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from wqlab_contracts.enums import Arm
from wqlab_worker.backends.instrumented.boots import Boots
from wqlab_worker.backends.instrumented.emulator import Emulator, Ended, Seeded

A, B = Arm.BASELINE, Arm.CANDIDATE
PLAN: list[Seeded] = [(A, 0), (B, 0), (A, 1), (B, 1)]


def ended(status: int) -> Ended:
    return Ended(output=Path("none"), status=status, stderr="", seconds=1.0, timed_out=False)


class HeldEmulator:
    """An emulator whose boots last until the test ends them, or until they are stopped."""

    def __init__(self) -> None:
        self.started: list[Seeded] = []
        self.changed = threading.Condition()
        self._ends: defaultdict[Seeded, threading.Event] = defaultdict(threading.Event)

    def run(self, boot: Seeded, stop: threading.Event) -> Ended:
        with self.changed:
            self.started.append(boot)
            self.changed.notify_all()
        while not self._ends[boot].wait(0.01):
            if stop.is_set():
                return ended(-9)
        if boot == (B, 7):
            raise OSError("no space")
        return ended(0)

    def end(self, boot: Seeded) -> None:
        self._ends[boot].set()

    def wait_started(self, count: int) -> list[Seeded]:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.started) >= count)
            return list(self.started)


@pytest.fixture
def emulator() -> HeldEmulator:
    return HeldEmulator()


@pytest.fixture
def boots(emulator: HeldEmulator) -> Iterator[Boots]:
    boots = Boots(cast("Emulator", emulator), 1)
    boots.plan(PLAN)
    yield boots
    boots.close()


def test_boots_are_made_once_in_the_planned_order(emulator: HeldEmulator, boots: Boots) -> None:
    boots.plan([(A, 0), (B, 0), (A, 9)])
    for boot in (*PLAN, (A, 9)):
        emulator.end(boot)
    assert boots.boot((A, 9)).result() == ended(0)
    assert emulator.wait_started(5) == [*PLAN, (A, 9)]


def test_error_of_an_emulator_is_raised_where_its_boot_is_needed(emulator: HeldEmulator, boots: Boots) -> None:
    for boot in (*PLAN, (B, 7)):
        emulator.end(boot)
    with pytest.raises(OSError, match="no space"):
        boots.boot((B, 7)).result()


def test_closing_stops_what_runs_and_cancels_the_rest(emulator: HeldEmulator, boots: Boots) -> None:
    first, last = boots.boot((A, 0)), boots.boot((B, 1))
    emulator.wait_started(1)
    boots.close()
    assert first.result(0) == ended(-9)
    assert last.cancelled()
    assert emulator.started == [(A, 0)]
