"""Sessions on emulated devices, through real labgrid."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from wqlab_contracts.enums import Arm, ErrorKind, FindingKind, Outcome
from wqlab_contracts.messages import (
    BlockDiscarded,
    BlockFinished,
    BlockPlan,
    BootStarted,
    BootVerified,
    Finding,
    RunEvent,
    RunJob,
    RunResult,
)
from wqlab_worker.backends.labgrid import clear
from wqlab_worker.backends.session_messages import Clearing
from wqlab_worker.claims.heartbeats import Stop
from wqlab_worker.claims.server import Lease
from wqlab_worker.reaper import reap

from .conftest import COMMANDED, DeviceLab, Told

pytestmark = [pytest.mark.device, pytest.mark.timeout(900)]


def execute(
    lab: DeviceLab, job: RunJob, told: Told, stop: Stop | None = None, remaining: list[BlockPlan] | None = None
) -> RunResult:
    if stop is None:
        stop = Stop()
        stop.extend(time.monotonic() + 800)
    result = lab.backend().execute(job, job.blocks if remaining is None else remaining, told, stop)
    assert lab.holder(job.device.name) is None, "the place is released"
    assert not lab.powered(job.device.name), "the device is off"
    return result


@pytest.mark.nightly  # a hang under load takes minutes to be called one; test_diagnosis.py and tests/scenarios have the rest
def test_a_panic_and_a_hang_are_findings_and_the_device_comes_back(device_lab: DeviceLab) -> None:
    device_lab.faults(
        "tiny-1",
        {"kind": "panic", "when": "plan-setup", "once": True},
    )

    def then_hang(event: RunEvent) -> None:
        if isinstance(event, BlockFinished) and event.block == 0:
            device_lab.faults("tiny-1", {"kind": "hang", "when": "plan-setup", "once": True})

    told = Told(then_hang)
    job = device_lab.job([[Arm.CANDIDATE], [Arm.CANDIDATE]], run_id=102, seconds=1)
    assert execute(device_lab, job, told).outcome is Outcome.PASSED
    panic, hang = told.of(Finding)
    assert (panic.kind, panic.fatal, panic.boot.block) == (FindingKind.PANIC, True, 0)
    assert "sysrq triggered crash" in panic.excerpt
    assert "---[ end Kernel panic" in panic.excerpt.splitlines()[-1]
    assert told.consoles[panic.boot][panic.console_offset :].startswith(panic.excerpt.splitlines()[0].encode()[:20])
    assert (hang.kind, hang.fatal, hang.boot.block) == (FindingKind.HANG, True, 1)
    assert [(d.block, d.attempt, d.arm, d.failure.kind) for d in told.of(BlockDiscarded)] == [
        (0, 0, Arm.CANDIDATE, ErrorKind.KERNEL),
        (1, 0, Arm.CANDIDATE, ErrorKind.KERNEL),
    ]
    assert [(event.block, event.attempt) for event in told.of(BlockFinished)] == [(0, 1), (1, 1)]


def test_a_dead_device_is_suspect(device_lab: DeviceLab) -> None:
    device_lab.faults("tiny-1", {"kind": "dead"})
    job = device_lab.job([[Arm.BASELINE]], run_id=104)
    boot = job.device.boot.model_copy(update={"golden_timeout_s": 5})
    job = job.model_copy(update={"device": job.device.model_copy(update={"boot": boot})})
    result = execute(device_lab, job, Told())
    device_lab.faults("tiny-1")
    assert result.failure and result.failure.kind is ErrorKind.INFRASTRUCTURE
    assert result.device_suspect


def test_a_lease_that_is_not_extended_ends_the_session_by_itself(device_lab: DeviceLab) -> None:
    device_lab.faults("tiny-1", {"kind": "hang", "when": "Linux version"})
    stop = Stop()
    stop.extend(time.monotonic() + 5)
    result = execute(device_lab, device_lab.job([[Arm.BASELINE]], run_id=106), Told(), stop)
    assert result.failure and result.failure.kind is ErrorKind.INFRASTRUCTURE
    assert "lease" in result.failure.summary


def test_a_killed_session_leaves_no_device_behind(device_lab: DeviceLab) -> None:
    device_lab.faults("tiny-1")

    def kill(event: RunEvent) -> None:
        if isinstance(event, BootStarted):
            os.killpg(_session_pid(), signal.SIGKILL)

    result = execute(device_lab, device_lab.job([[Arm.BASELINE]], run_id=107), Told(kill))
    assert result.failure and result.failure.kind is ErrorKind.INFRASTRUCTURE


def test_the_reaper_frees_what_a_dead_worker_left(device_lab: DeviceLab) -> None:
    """On a device that commands switch: its place has no power port."""
    device_lab.faults("tiny-1")
    power = device_lab.power_commands("tiny-1")
    stop = Stop()
    stop.extend(time.monotonic() + 600)
    booting = threading.Event()
    told = Told(lambda event: booting.set() if isinstance(event, BootVerified) else None)
    job = device_lab.job([[Arm.BASELINE]], run_id=108, device=COMMANDED, seconds=60)
    job = job.model_copy(update={"device": job.device.model_copy(update={"power": power})})
    listing = Clearing(coordinator=device_lab.coordinator, lab="local")
    orphan = _OrphanedBackend(device_lab)
    thread = threading.Thread(target=lambda: orphan.execute(job, job.blocks, told, stop))
    thread.start()
    assert booting.wait(60)
    (held,) = clear(listing)
    assert held.place == COMMANDED
    live = [Lease(device=COMMANDED, run_id=108, fence=1, holder="w", expires_in_s=60)]
    commands = {COMMANDED: power}
    assert reap(device_lab.coordinator, "local", lambda: live, lambda: commands) == [], "its holder has a live lease"
    assert device_lab.powered("tiny-1")
    os.killpg(_session_pid(), signal.SIGKILL)
    thread.join()
    assert device_lab.holder(COMMANDED) is not None
    assert device_lab.powered("tiny-1")
    assert reap(device_lab.coordinator, "local", lambda: [], lambda: commands) == [held]
    assert device_lab.holder(COMMANDED) is None
    assert not device_lab.powered("tiny-1")


class _OrphanedBackend:
    """A worker that dies with its session: nobody clears up after it."""

    def __init__(self, lab: DeviceLab) -> None:
        self._lab = lab

    def execute(self, *arguments: Any) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("wqlab_worker.backends.labgrid.clear", lambda order: [])
            self._lab.backend().execute(*arguments)


def _session_pid() -> int:
    """The session process of this test process: its own process group's leader."""
    (pid,) = (
        int(folder.name)
        for folder in Path("/proc").glob("[0-9]*")
        if _is_session(folder) and f"PPid:\t{os.getpid()}\n" in (folder / "status").read_text()
    )
    return pid


def _is_session(folder: Path) -> bool:
    try:
        return b"wqlab_worker.backends.session\0run\0" in (folder / "cmdline").read_bytes()
    except OSError:
        return False  # it ended meanwhile
