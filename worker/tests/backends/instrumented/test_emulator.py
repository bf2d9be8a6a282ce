"""Emulators of instrumented boots."""

from __future__ import annotations

import signal
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from wqlab_bench.instrument import build_plugin
from wqlab_bench.qemu import Firmware
from wqlab_contracts.enums import Arm
from wqlab_contracts.messages import Kernel
from wqlab_worker.backends.instrumented.boots import Boots
from wqlab_worker.backends.instrumented.emulator import NICENESS, Emulator, parallel_boots, read_console
from wqlab_worker.backends.instrumented.guest import guest_of

from ..conftest import Golden
from .conftest import job_of

pytestmark = pytest.mark.device
A, B = Arm.BASELINE, Arm.CANDIDATE


@pytest.fixture
def emulator(golden: Golden, kernel: Kernel, tmp_path: Path) -> Emulator:
    return Emulator(
        guest=guest_of(job_of(kernel, [[A, B]]).device),
        kernels={A: [golden.kernel], B: [golden.kernel]},
        initramfs={A: golden.rootfs, B: golden.rootfs},
        command_line=lambda seed: f"console=ttyS0 panic=-1 wqlab.seed={seed}",
        layouts={},
        plugin=build_plugin.plugin(tmp_path),
        firmware=Firmware(tmp_path),
        scratch=tmp_path,
        limit_s=0.0,
    )


def test_boot_that_does_not_end_is_killed(emulator: Emulator) -> None:
    """Without a plan behind the image, the guest waits for a login."""
    ended = emulator.run((A, 3), threading.Event())
    assert ended.timed_out
    assert ended.status == -signal.SIGKILL


def test_emulator_that_does_not_start_says_why(emulator: Emulator, tmp_path: Path) -> None:
    broken = replace(emulator, kernels={A: [tmp_path / "none"]}, limit_s=60.0)
    ended = broken.run((A, 0), threading.Event())
    assert ended.status > 0
    assert "none" in ended.stderr
    assert "TCG doesn't support" not in ended.stderr


def processes_of(folder: Path) -> list[Path]:
    """Return the /proc/PID folder of each process that has `folder` in its command line."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if str(folder).encode() in (process / "cmdline").read_bytes():
                found.append(process)
    assert found
    return found


def niceness_of_session(process: Path) -> int | None:
    """Return the niceness of the process's autogroup; None without autogroups or if the process has ended."""
    with suppress(OSError):
        return int((process / "autogroup").read_text().rsplit("nice ", 1)[1])
    return None


def test_closing_ends_all_emulators(emulator: Emulator, tmp_path: Path) -> None:
    boots = Boots(replace(emulator, limit_s=100.0), 2)
    boots.plan([(A, 0), (B, 0), (A, 1)])
    first = boots.boot((A, 0))
    while not read_console(boots.console((A, 0)), 0):  # the emulator gives no event
        time.sleep(0.1)
    niceness = {niceness_of_session(process) for process in processes_of(tmp_path)}
    assert NICENESS in niceness or niceness == {None}
    boots.close()
    assert first.result().status == -signal.SIGKILL
    assert boots.boot((A, 1)).cancelled()


def test_memory_and_cores_limit_the_emulators() -> None:
    assert parallel_boots(1 << 30) == 1
    assert parallel_boots(256) >= 1
