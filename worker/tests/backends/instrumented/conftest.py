"""An instrumented device with the lab's golden kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from wqlab_contracts.enums import Arm, ArtifactKind, RunPurpose
from wqlab_contracts.loading import load_data
from wqlab_contracts.messages import Artifact, BlockPlan, DeviceFacts, Kernel, RunJob
from wqlab_contracts.specs import DeviceType, Profile, Repetitions, Scenario, TestPlan
from wqlab_worker.backends.instrumented import InstrumentedBackend
from wqlab_worker.claims.server import sha256_of

from ..conftest import ROOT, Golden

SCRIPT = """\
#!/bin/sh
# Two tasks pass work on through a pipe; counts as many operations as fio would report.
. ./device.sh
case $1 in measure)
    window begin
    seq 200 | sort -r | sha256sum >/dev/null
    window end
    frame fio <<'END'
{"fio version": "fio-3", "jobs": [{"error": 0, "job options": {"numjobs": 1},
 "read": {"total_ios": 0}, "write": {"total_ios": 4, "io_bytes": 4194304, "runtime": 10}, "sync": {"total_ios": 4}}]}
END
    ;;
esac
"""
DATA = load_data(ROOT)
TINY: DeviceType = DATA.device_types["instrumented-tiny"]


def plan_of(device_type: DeviceType) -> TestPlan:
    profile = Profile(parameters={}, repetitions=Repetitions(warmup=0, untraced=1, traced=0), settings=[""])
    plan = TestPlan(
        name="pipe",
        summary="a pipe",
        script="pipe.sh",
        parser="xfs_fsync",
        scenarios=[Scenario(name="pipe", summary="a pipe")],
        reference_setting="",
        hardware=profile,
        emulated=profile,
        metrics=[],
    )
    return plan.on(device_type)


def job_of(kernel: Kernel, blocks: Sequence[Sequence[Arm]], *, device_type: DeviceType = TINY) -> RunJob:
    plan = plan_of(device_type)
    return RunJob(
        run_id=401,
        purpose=RunPurpose.MEASURE,
        device=DeviceFacts(
            name=device_type.units[0].name,
            device_type=device_type.name,
            lab="local",
            arch=device_type.arch,
            topology=device_type.topology,
            boot=device_type.boot.model_copy(update={"kernel_arguments": device_type.kernel_arguments}),
            emulated=True,
            backend="instrumented",
            emulation=device_type.emulation,
            costs=DATA.costs_of(device_type),
        ),
        plan=plan,
        profile=plan.emulated,
        files={"pipe.sh": SCRIPT, "device.sh": (ROOT / "testplans/common/device.sh").read_text()},
        kernels={arm: kernel for arms in blocks for arm in arms},
        blocks=[BlockPlan(block=number, arms=list(arms)) for number, arms in enumerate(blocks)],
        seed=1,
        touched=["pipe_write"],
    )


@pytest.fixture(scope="session")
def files(golden: Golden) -> dict[str, Path]:
    """Files of the golden kernel by their hash."""
    folder = golden.kernel.parent
    return {sha256_of(path): path for path in (golden.kernel, folder / "vmlinux")}


@pytest.fixture(scope="session")
def kernel(golden: Golden, files: dict[str, Path]) -> Kernel:
    def artifact(path: Path, kind: ArtifactKind) -> Artifact:
        digest = next(digest for digest, known in files.items() if known == path)
        return Artifact(sha256=digest, size=path.stat().st_size, kind=kind, name=path.name)

    return Kernel(
        recipe="measure",
        build_id_gnu=golden.built.build_id_gnu,
        release=golden.built.release,
        image=artifact(golden.kernel, ArtifactKind.KERNEL),
        vmlinux=artifact(golden.kernel.parent / "vmlinux", ArtifactKind.VMLINUX),
    )


@pytest.fixture(scope="session")
def backend(
    golden: Golden, files: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[], InstrumentedBackend]:
    cache = tmp_path_factory.mktemp("instrumented")

    def make() -> InstrumentedBackend:
        return InstrumentedBackend(
            cache=cache,
            scratch=cache / "scratch",
            rootfs=lambda: golden.rootfs,
            fetch=lambda artifact: files[artifact.sha256],
            files_of=lambda job, kernel: {},
        )

    return make
