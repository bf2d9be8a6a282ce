"""CPU time and sleep of an emulator, shown with other programs."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from wqlab_worker.backends.instrumented import emulator_time
from wqlab_worker.backends.instrumented.emulator_time import HangWatch

BUSY = "while True: pass"
WAITING = "import signal; signal.pause()"


@contextmanager
def running(program: str) -> Iterator[int]:
    """Run a program as the child of another one, as an emulator is; yield the parent's process id."""
    inner = [sys.executable, "-c", program]
    code = f"import subprocess, sys; child = subprocess.Popen({inner!r}); print(flush=True); child.wait()"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True) as parent:
        assert parent.stdout
        parent.stdout.readline()
        try:
            yield parent.pid
        finally:
            subprocess.run(["pkill", "-KILL", "-s", str(parent.pid)], check=True)


def seconds_until_expired(watch: HangWatch) -> float:
    started = time.monotonic()
    while not watch.expired():
        time.sleep(0.01)  # the watch has no event
    return time.monotonic() - started


def test_busy_program_expires_by_the_cpu_time_of_its_child() -> None:
    with running(BUSY) as process:
        assert seconds_until_expired(HangWatch(process, 0.5)) > 0.2


def test_program_that_waits_expires_without_cpu_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emulator_time, "ASLEEP_S", 0.5)
    with running(WAITING) as process:
        assert seconds_until_expired(HangWatch(process, 1000.0)) > 0.4


def test_busy_program_does_not_expire_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emulator_time, "ASLEEP_S", 0.05)
    with running(BUSY) as process:
        watch = HangWatch(process, 1000.0)
        for _ in range(20):
            assert not watch.expired()
            time.sleep(0.02)
