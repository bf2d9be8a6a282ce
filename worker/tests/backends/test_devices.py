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
    LabPower,
    RunEvent,
    RunJob,
    RunResult,
)
from wqlab_worker.backends.cancellation import Stop
from wqlab_worker.backends.labgrid import clear
from wqlab_worker.backends.session_messages import ClearRequest
from wqlab_worker.claims.server import Lease
from wqlab_worker.reaper import reap

from .conftest import COMMANDED, DeviceLab, RecordingSink, lasting

pytestmark = pytest.mark.device


def execute(
    lab: DeviceLab, job: RunJob, sink: RecordingSink, stop: Stop | None = None, remaining: list[BlockPlan] | None = None
) -> RunResult:
    result = lab.backend().execute(job, job.blocks if remaining is None else remaining, sink, stop or lasting())
    assert lab.holder(job.device.name) is None, "the place is released"
    assert not lab.powered(job.device.name), "the device is off"
    return result


@pytest.mark.nightly  # a hang under load takes minutes; the default suite has test_ssh_device.py
def test_panic_and_hang_are_findings_and_device_recovers(device_lab: DeviceLab) -> None:
    device_lab.faults(
        "tiny-1",
        {"kind": "panic", "when": "plan-setup", "once": True},
    )

    def then_hang(event: RunEvent) -> None:
        if isinstance(event, BlockFinished) and event.block == 0:
            device_lab.faults("tiny-1", {"kind": "hang", "when": "plan-setup", "once": True})

    sink = RecordingSink(then_hang)
    job = device_lab.job([[Arm.CANDIDATE], [Arm.CANDIDATE]], run_id=102, seconds=1)
    assert execute(device_lab, job, sink).outcome is Outcome.PASSED
    panic, hang = sink.of(Finding)
    assert (panic.kind, panic.fatal, panic.boot.block) == (FindingKind.PANIC, True, 0)
    assert "sysrq triggered crash" in panic.excerpt
    assert "---[ end Kernel panic" in panic.excerpt.splitlines()[-1]
    assert sink.consoles[panic.boot][panic.console_offset :].startswith(panic.excerpt.splitlines()[0].encode()[:20])
    assert (hang.kind, hang.fatal, hang.boot.block) == (FindingKind.HANG, True, 1)
    assert [(d.block, d.attempt, d.arm, d.failure.kind) for d in sink.of(BlockDiscarded)] == [
        (0, 0, Arm.CANDIDATE, ErrorKind.KERNEL),
        (1, 0, Arm.CANDIDATE, ErrorKind.KERNEL),
    ]
    assert [(event.block, event.attempt) for event in sink.of(BlockFinished)] == [(0, 1), (1, 1)]


def test_a_dead_device_is_suspect(device_lab: DeviceLab) -> None:
    device_lab.faults("tiny-1", {"kind": "dead"})
    job = device_lab.job([[Arm.BASELINE]], run_id=104)
    boot = job.device.boot.model_copy(update={"golden_timeout_s": 5})
    job = job.model_copy(update={"device": job.device.model_copy(update={"boot": boot})})
    result = execute(device_lab, job, RecordingSink())
    device_lab.faults("tiny-1")
    assert result.failure and result.failure.kind is ErrorKind.INFRASTRUCTURE
    assert result.device_suspect


def test_session_ends_when_its_lease_is_not_extended(device_lab: DeviceLab) -> None:
    device_lab.faults("tiny-1", {"kind": "hang", "when": "Linux version"})
    stop = Stop()
    stop.extend(time.monotonic() + 5)
    result = execute(device_lab, device_lab.job([[Arm.BASELINE]], run_id=106), RecordingSink(), stop)
    assert result.failure and result.failure.kind is ErrorKind.INFRASTRUCTURE
    assert "lease" in result.failure.summary


def test_killed_session_powers_off_and_releases_the_device(device_lab: DeviceLab) -> None:
    device_lab.faults("tiny-1")

    def kill(event: RunEvent) -> None:
        if isinstance(event, BootStarted):
            os.killpg(_session_pid(), signal.SIGKILL)

    result = execute(device_lab, device_lab.job([[Arm.BASELINE]], run_id=107), RecordingSink(kill))
    assert result.failure and result.failure.kind is ErrorKind.INFRASTRUCTURE


def test_reaper_frees_places_of_a_dead_worker(device_lab: DeviceLab) -> None:
    """A device with power commands; its place has no power port."""
    device_lab.faults("tiny-1")
    power = device_lab.power_commands("tiny-1")
    stop = lasting()
    booted_or_ended = threading.Event()
    sink = RecordingSink(lambda event: booted_or_ended.set() if isinstance(event, BootVerified) else None)
    job = device_lab.job([[Arm.BASELINE]], run_id=108, device=COMMANDED, seconds=500)
    job = job.model_copy(update={"device": job.device.model_copy(update={"power": power})})
    listing = ClearRequest(coordinator=device_lab.coordinator, lab="local")
    orphan = _OrphanedBackend(device_lab)
    results: list[RunResult] = []

    def execute() -> None:
        try:
            results.append(orphan.execute(job, job.blocks, sink, stop))
        finally:
            booted_or_ended.set()

    thread = threading.Thread(target=execute)
    thread.start()
    booted_or_ended.wait()
    assert sink.of(BootVerified), results
    (held,) = clear(listing)
    assert held.place == COMMANDED
    live = [Lease(device=COMMANDED, run_id=108, fence=1, holder="w", expires_in_s=60)]
    known = LabPower(power={COMMANDED: power})
    assert reap(device_lab.coordinator, "local", lambda: live, lambda: known) == [], "its holder has a live lease"
    assert device_lab.powered("tiny-1")
    os.killpg(_session_pid(), signal.SIGKILL)
    thread.join()
    assert device_lab.holder(COMMANDED) is not None
    assert device_lab.powered("tiny-1")
    assert reap(device_lab.coordinator, "local", lambda: [], lambda: known) == [held]
    assert device_lab.holder(COMMANDED) is None
    assert not device_lab.powered("tiny-1")


class _OrphanedBackend:
    """A worker that is killed with its session and cleans up nothing."""

    def __init__(self, lab: DeviceLab) -> None:
        self._lab = lab

    def execute(self, *arguments: Any) -> RunResult:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("wqlab_worker.backends.labgrid.clear", lambda order: [])
            return self._lab.backend().execute(*arguments)


def _session_pid() -> int:
    """Return the process id of this test's session process, the leader of its process group."""
    (pid,) = (int(folder.name) for folder in Path("/proc").glob("[0-9]*") if _is_own_session(folder))
    return pid


def _is_own_session(folder: Path) -> bool:
    try:
        is_session = b"wqlab_worker.backends.labgrid_session\0run\0" in (folder / "cmdline").read_bytes()
        return is_session and f"PPid:\t{os.getpid()}\n" in (folder / "status").read_text()
    except OSError:
        return False  # it ended meanwhile
