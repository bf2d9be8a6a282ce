"""What answers by SSH after a power-on without a word on the console: the golden system, or what was there before."""

from __future__ import annotations

import time
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from wqlab_contracts.enums import Arm, DeviceStep, ErrorKind
from wqlab_contracts.messages import BootKey
from wqlab_contracts.specs import BootMethod
from wqlab_worker.backends import kexec
from wqlab_worker.backends.console import ConsoleTap, Watch
from wqlab_worker.backends.kexec import BootTimes, KexecStrategy, Status
from wqlab_worker.backends.ssh import Answer
from wqlab_worker.claims.heartbeats import Stop
from wqlab_worker.measure.device import DeviceFailure

from .conftest import Told

GOLDEN = "console=ttyS0,115200 panic=-1\n"


@dataclass
class Answering:
    """A system that lets us in at once."""

    said: str

    def close(self) -> None:
        pass

    def connect(self, *_: object) -> None:
        pass

    def start(self, *_: object) -> Any:
        return SimpleNamespace(done=True, answer=Answer(0, self.said.encode(), b""))


@pytest.fixture(autouse=True)
def hardly_any_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kexec, "QUIET_S", 0.05)


def switched_on(said: str) -> KexecStrategy:
    """After a golden boot of a device with a silent console, whose power switch takes every command."""
    watch, stop = Watch(), Stop()
    stop.extend(time.monotonic() + 60)
    strategy: Any = KexecStrategy.__new__(KexecStrategy)  # without labgrid's drivers
    strategy.status, strategy.stage, strategy.times, strategy.token = Status.unknown, None, BootTimes(), ""
    strategy.device = SimpleNamespace(boot=BootMethod(power_off_s=0, golden_timeout_s=10))
    strategy.watch, strategy.cancel, strategy.lost = watch, stop, lambda: None
    strategy.tap = ConsoleTap(SimpleNamespace(), Told(), watch)
    strategy.ssh, strategy.target = Answering(said), SimpleNamespace(activate=lambda driver: None)
    strategy.power = SimpleNamespace(on=lambda: None, off=lambda: None)
    try:
        strategy.transition(Status.golden, key=BootKey(block=0, position=0, arm=Arm.BASELINE, attempt=0))
    except DeviceFailure as failure:
        failure.stage = failure.stage or strategy.stage
        raise
    assert isinstance(strategy, KexecStrategy)
    return strategy


def test_a_golden_system_with_a_garbled_console_is_taken_at_its_word() -> None:
    assert switched_on(f"new-boot\n3.20 5.00\n{GOLDEN}").golden_boot_id == "new-boot"


@pytest.mark.parametrize(
    "said",
    [f"old-boot\n86400.00 1.00\n{GOLDEN}", "old-boot\n3.20 5.00\nconsole=ttyS0,115200 wqlab.token=feed panic=0\n"],
)
def test_what_was_there_before_is_no_cold_boot(said: str) -> None:
    """The wrong outlet was switched: yesterday's system answers, golden or a kernel under test."""
    with pytest.raises(DeviceFailure) as caught:
        switched_on(said)
    failure = caught.value.failure
    assert (failure.kind, caught.value.stage) == (ErrorKind.INFRASTRUCTURE, DeviceStep.POWER)
    assert "never off" in failure.summary and "outlet" in (failure.advice or "")
    assert caught.value.suspect


def test_an_answer_that_says_nothing_is_no_boot_either() -> None:
    with pytest.raises(DeviceFailure, match="does not say since when"):
        switched_on("sh: cat: not found\n")
