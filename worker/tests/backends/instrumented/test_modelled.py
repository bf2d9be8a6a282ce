"""Runs on a modelled device: without its emulator, and by night with it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from wqlab_bench.instrument.build_plugin import InstrumentUnsupported
from wqlab_bench.model import build_qemu
from wqlab_contracts.enums import Arm, ArtifactKind, ErrorKind, Outcome
from wqlab_contracts.messages import Artifact, BootVerified, Kernel
from wqlab_contracts.specs.cost_profile import cost_profile_hash
from wqlab_worker.backends.instrumented import InstrumentedBackend

from ..conftest import RecordingSink, lasting
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


@pytest.mark.device
@pytest.mark.nightly
def test_seed_gives_the_same_boot_with_its_costs_in_the_environment(
    backend: Callable[[], InstrumentedBackend], kernel: Kernel
) -> None:
    cache = Path(os.environ["WQLAB_CACHE"])
    try:
        build_qemu.find_program(cache, "x86_64")
    except InstrumentUnsupported as error:
        pytest.skip(str(error))
    instrumented = backend()
    link = instrumented._cache / "model-qemu"
    if not link.exists():
        link.symlink_to(cache / "model-qemu")
    job = job_of(kernel, [[A, B]], device_type=MODELLED)
    sink = RecordingSink()
    result = instrumented.execute(job, job.blocks, sink, lasting())
    assert result.outcome is Outcome.PASSED, result.failure
    first, second = sink.consoles.values()
    assert first == second, "both arms have the same kernel and seed"
    costs = DATA.costs_of(MODELLED)
    assert costs is not None
    for verified in sink.of(BootVerified):
        assert verified.environment["cost profile"] == f"ryzen-3900x sha256:{cost_profile_hash(costs)}"
        assert verified.environment["emulator"].startswith(f"{build_qemu.describe()}, tcg")
