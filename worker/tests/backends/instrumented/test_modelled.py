"""Runs on a modelled device: without its emulator, and by night with it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from wqlab_bench.instrument import build_plugin
from wqlab_bench.instrument.build_plugin import InstrumentUnsupported
from wqlab_bench.instrument.qemu_arguments import Model
from wqlab_bench.model import build_qemu
from wqlab_bench.qemu import Firmware
from wqlab_contracts.enums import Arm, ArtifactKind, ErrorKind, Outcome
from wqlab_contracts.messages import Artifact, BootVerified, Kernel
from wqlab_contracts.specs.cost_profile import cost_profile_hash, write_costs
from wqlab_worker.backends.instrumented import InstrumentedBackend
from wqlab_worker.backends.instrumented.emulator import Emulator
from wqlab_worker.backends.instrumented.guest import guest_of

from ..conftest import Golden, RecordingSink, lasting
from .conftest import DATA, job_of

MODELLED = DATA.device_types["modelled-tiny"]
A, B = Arm.BASELINE, Arm.CANDIDATE


def test_missing_emulator_is_a_failure_of_the_lab_with_the_command(tmp_path: Path) -> None:
    image = Artifact(sha256="0" * 64, size=1, kind=ArtifactKind.KERNEL, name="kernel")
    job = job_of(
        Kernel(recipe="measure", build_id_gnu="ab" * 20, release="6", image=image), [[A]], device_type=MODELLED
    )

    def unused(*_: object) -> Path:
        raise AssertionError("nothing is fetched")

    backend = InstrumentedBackend(
        cache=tmp_path, scratch=tmp_path / "scratch", rootfs=unused, fetch=unused, files_of=lambda job, kernel: {}
    )
    result = backend.execute(job, job.blocks, RecordingSink(), lasting())
    assert result.outcome is Outcome.FAILED
    assert result.failure is not None
    assert result.failure.kind is ErrorKind.INFRASTRUCTURE
    assert "QEMU" in result.failure.summary


@pytest.fixture
def program() -> Path:
    try:
        return build_qemu.find_program(Path(os.environ["WQLAB_CACHE"]), "x86_64")
    except InstrumentUnsupported as error:
        pytest.skip(str(error))


@pytest.fixture
def modelled(program: Path, backend: Callable[[], InstrumentedBackend]) -> InstrumentedBackend:
    made = backend()
    link = made._cache / "model-qemu"
    if not link.exists():
        link.symlink_to(program.parents[1])
    return made


@pytest.mark.device
@pytest.mark.nightly
def test_seed_gives_the_same_boot_with_its_costs_in_the_environment(
    modelled: InstrumentedBackend, kernel: Kernel
) -> None:
    job = job_of(kernel, [[A, B]], device_type=MODELLED)
    sink = RecordingSink()
    result = modelled.execute(job, job.blocks, sink, lasting())
    assert result.outcome is Outcome.PASSED, result.failure
    first, second = sink.consoles.values()
    assert first == second, "both arms have the same kernel and seed"
    costs = DATA.costs_of(MODELLED)
    assert costs is not None
    for verified in sink.of(BootVerified):
        assert verified.environment["cost profile"] == f"ryzen-3900x sha256:{cost_profile_hash(costs)}"
        assert verified.environment["emulator"].startswith(f"{build_qemu.describe()}, tcg")


@pytest.mark.device
@pytest.mark.nightly
def test_kernel_with_another_clock_is_named(modelled: InstrumentedBackend, kernel: Kernel) -> None:
    boot = MODELLED.boot.model_copy(update={"kernel_arguments": "clocksource=acpi_pm"})
    job = job_of(kernel, [[A]], device_type=MODELLED.model_copy(update={"boot": boot}))
    result = modelled.execute(job, job.blocks, RecordingSink(), lasting())
    assert result.outcome is Outcome.FAILED
    assert result.failure is not None
    assert "the kernel's clock source is acpi_pm, not tsc" in result.failure.summary


@pytest.mark.device
@pytest.mark.nightly
def test_guest_that_never_idles_and_never_ends_is_killed(
    program: Path, golden: Golden, kernel: Kernel, tmp_path: Path
) -> None:
    device, costs = job_of(kernel, [[A]], device_type=MODELLED).device, DATA.costs_of(MODELLED)
    assert costs is not None
    write_costs(costs, tmp_path / "costs", device.topology.l3_domains)
    emulator = Emulator(
        guest=guest_of(device, Model(program, tmp_path / "costs")),
        kernels={A: [golden.kernel]},
        initramfs={A: golden.rootfs},
        command_line=lambda seed: "console=ttyS0 idle=poll",
        layouts={},
        plugin=build_plugin.plugin(tmp_path, "x86_64", program),
        firmware=Firmware(tmp_path),
        scratch=tmp_path,
        limit_s=20.0,
    )
    ended = emulator.run((A, 3), threading.Event())
    assert ended.timed_out
    assert ended.status == -signal.SIGKILL
    assert b"using polling idle threads" in emulator.console((A, 3)).read_bytes()
