"""The initramfs of instrumented boots."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from wqlab_bench import cpio
from wqlab_bench.instrument.qemu_arguments import Model
from wqlab_contracts.enums import Arm, ArtifactKind
from wqlab_contracts.loading import load_data
from wqlab_contracts.messages import Artifact, Kernel
from wqlab_worker.backends.instrumented import boot_image
from wqlab_worker.backends.instrumented.guest import clock_problem, command_line, guest_of

from ..conftest import ROOT
from .conftest import job_of

KERNEL = Kernel(
    recipe="measure",
    build_id_gnu="ab" * 20,
    release="6",
    image=Artifact(sha256="0" * 64, size=1, kind=ArtifactKind.KERNEL, name="kernel"),
)
JOB = job_of(KERNEL, [[Arm.BASELINE], [Arm.BASELINE]])


def listed(archive: bytes, folder: Path) -> set[str]:
    subprocess.run(["cpio", "-idm", "--quiet"], input=archive, cwd=folder, check=True)
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_plan_and_calls_follow_the_image(tmp_path: Path) -> None:
    with (rootfs := tmp_path / "rootfs").open("wb") as output:
        cpio.write_archive([cpio.file("init", b"#!", True)], output)
    rootfs.write_bytes(rootfs.read_bytes() + b"\0")  # an odd size: the second archive has to be aligned
    boot_image.write(rootfs, JOB, [0, 1], {"x.ko": b"module"}, path := tmp_path / "image")
    image, base = path.read_bytes(), rootfs.read_bytes()
    assert image.startswith(base)
    at = image.index(b"070701", len(base))
    assert at % 4 == 0
    (unpacked := tmp_path / "unpacked").mkdir()
    names = listed(image[at:], unpacked)
    assert {
        "lab/run", "lab/calls.sh", "lab/probe", "lab/script", "lab/plan/pipe.sh", "lab/for/kernel/x.ko",
        "lab/calls/0", "lab/calls/1",
    } <= names  # fmt: skip
    assert "WINDOW=1" in (unpacked / "lab/calls/0").read_text()


def test_command_line_depends_on_the_seed_only() -> None:
    first, second = command_line(JOB.device, 1), command_line(JOB.device, 2)
    assert first == command_line(JOB.device, 1) != second
    assert "wqlab.seed=1" in first
    assert "wqlab.ip=" not in first, "there is no network"


def test_guest_is_the_device_type() -> None:
    guest = guest_of(JOB.device)
    assert (guest.memory_mib, guest.instruction_ns, guest.topology.cpus) == (1024, 8, 2)


@pytest.mark.parametrize(("cores", "modelled", "one_by_one"), [(2, True, False), (3, True, True), (3, False, False)])
def test_many_cpus_of_a_model_are_brought_up_one_by_one(cores: int, modelled: bool, one_by_one: bool) -> None:
    topology = JOB.device.topology.model_copy(update={"cores_per_l3": cores, "threads_per_core": 2})
    costs = load_data(ROOT).cost_profiles["ryzen-3900x"] if modelled else None
    device = JOB.device.model_copy(update={"topology": topology, "costs": costs})
    assert ("cpuhp.parallel=0" in command_line(device, 1)) == one_by_one


@pytest.mark.parametrize(
    ("modelled", "clock", "named"),
    [
        (True, "tsc", ""),
        (True, "tsc-early", ""),
        (True, "acpi_pm", "clock source is acpi_pm, not tsc"),
        (True, "", "is unknown"),
        (False, "x", ""),
    ],
)
def test_clock_of_a_model_is_its_virtual_time(modelled: bool, clock: str, named: str) -> None:
    costs = load_data(ROOT).cost_profiles["ryzen-3900x"] if modelled else None
    device = JOB.device.model_copy(update={"costs": costs})
    problem = clock_problem(device, {"clock source": clock} if clock else {})
    assert named in problem
    assert bool(named) == bool(problem)


def test_modelled_guest_counts_nanoseconds() -> None:
    model = Model(Path("/qemu"), Path("/costs"))
    guest = guest_of(JOB.device, model)
    assert (guest.instruction_ns, guest.model) == (1, model)
