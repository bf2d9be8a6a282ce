"""Sessions on labgrid devices: facts about the emulator, time limits, and the end of a session."""

from __future__ import annotations

import re
import stat
import subprocess
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from wqlab_bench import qemu, qemu_program
from wqlab_contracts import bench_addresses
from wqlab_contracts.bench_addresses import Accelerator, Published, PublishedDevice
from wqlab_contracts.enums import RunPurpose
from wqlab_contracts.messages import RunJob
from wqlab_contracts.specs import OwnSystem
from wqlab_worker.backends import labgrid
from wqlab_worker.backends.cancellation import Stop, canceled
from wqlab_worker.backends.kexec import LOAD_TIMEOUT_S
from wqlab_worker.backends.labgrid import LOAD_CRASH_KERNEL_S, emulator_facts, hard_limit_s
from wqlab_worker.backends.send_image import UPLOAD_TIMEOUT_S


@pytest.fixture
def state(tmp_path: Path) -> Path:
    device = PublishedDevice(
        index=1, console="127.0.0.1:1", ssh_port=2, power_url="http://x/1", log="x", device_type="tiny"
    )
    (tmp_path / "bench").mkdir()
    bench_addresses.write(
        tmp_path,
        Published(
            http="http://x", capacity=1, accelerator="tcg", emulator="QEMU 9.1.0, tcg", devices={"tiny-1": device}
        ),
    )
    return tmp_path


def test_a_device_of_the_bench_names_its_emulator(state: Path) -> None:
    assert emulator_facts("tiny-1", state) == {"emulator": "QEMU 9.1.0, tcg"}


def test_real_device_beside_a_bench_has_no_emulator(state: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert emulator_facts("server-7", state) == {}
    assert emulator_facts("tiny-1", tmp_path_factory.mktemp("no-bench")) == {}


@pytest.mark.parametrize(("accelerator", "how"), [("tcg", "tcg, one host thread"), ("kvm", "kvm")])
def test_version_and_accelerator_in_words(
    accelerator: Accelerator, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / qemu_program.PROGRAM["x86_64"]
    program.write_text("#!/bin/sh\necho 'QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)'\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert qemu.describe_emulator(accelerator) == f"QEMU 7.2.22, {how}"
    program.write_text("#!/bin/sh\n")
    assert re.fullmatch(f"QEMU, {how}", qemu.describe_emulator(accelerator))


def test_time_limit_counts_the_repetitions_beside_the_monitor(job: RunJob) -> None:
    """A cell has one untraced repetition; each of two boots has two cells and may be repeated."""
    emulated = job.model_copy(update={"purpose": RunPurpose.CANARY, "files": job.files | {"monitor.sh": ""}})
    hardware = emulated.model_copy(update={"device": job.device.model_copy(update={"emulated": False})})
    extra = hard_limit_s(hardware, job.blocks) - hard_limit_s(emulated, job.blocks)
    assert extra == 2 * 2 * 2 * job.profile.measure_timeout_s


def test_time_limit_counts_the_starts_of_an_own_system(job: RunJob) -> None:
    own = job.model_copy(update={"device": job.device.model_copy(update={"own_system": OwnSystem(timeout_s=1000)})})
    boots = 2 * sum(len(plan.arms) for plan in job.blocks)
    extra = hard_limit_s(own, job.blocks) - hard_limit_s(job, job.blocks)
    assert extra >= boots * 5 * 1000


def test_time_limit_counts_the_crash_kernel(job: RunJob) -> None:
    boot = job.device.boot.model_copy(update={"crash_kernel_mib": 256, "variant_timeout_s": 1000})
    with_it = job.model_copy(update={"device": job.device.model_copy(update={"boot": boot})})
    boots = 2 * sum(len(plan.arms) for plan in job.blocks)
    assert hard_limit_s(with_it, job.blocks) - hard_limit_s(job, job.blocks) >= boots * 2 * 1000
    assert LOAD_CRASH_KERNEL_S == UPLOAD_TIMEOUT_S + LOAD_TIMEOUT_S


@pytest.mark.parametrize(("own_system", "killed"), [(None, True), (OwnSystem(), False)])
def test_a_session_that_leaves_an_own_system_has_more_time_to_stop(
    job: RunJob, own_system: OwnSystem | None, killed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between power off and power on, it would leave the machine without power."""
    monkeypatch.setattr(labgrid, "STOP_GRACE_S", 0.1)
    device = job.device.model_copy(update={"own_system": own_system})
    request: Any = SimpleNamespace(
        job=SimpleNamespace(device=device), holder="local/run-1-fence-1", model_dump_json=lambda: "{}"
    )
    stop = Stop()
    stop.request(canceled("not needed any more"))
    ended = threading.Event()
    process = subprocess.Popen(["sleep", "60"], stdin=subprocess.PIPE, start_new_session=True)
    threading.Timer(1.0, ended.set).start()
    labgrid._supervise(process, request, stop, ended, 60.0)
    assert (process.poll() is not None) == killed
    process.kill()
    process.wait()
