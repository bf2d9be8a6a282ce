"""The lab's own kernel modules: built for each kernel, not counted against it, and sent to devices that need them."""

from __future__ import annotations

import io
import tarfile
import tracemalloc
from pathlib import Path

import pytest

from wqlab_contracts.enums import ArtifactKind, Outcome
from wqlab_contracts.messages import ApplyJob, Artifact, BuildResult, Kernel, MboxSeries, Series, Source
from wqlab_contracts.specs import Tree
from wqlab_worker.apply.apply_series import apply
from wqlab_worker.apply.mirror import source_at, update_mirror
from wqlab_worker.build.build_kernel import build
from wqlab_worker.build.kept_builds import build_folder
from wqlab_worker.build.modules import files_for_device
from wqlab_worker.failures import InfrastructureError
from wqlab_worker.workspace import Workspace

MODULES = {
    "load": {
        "Kbuild": "obj-m := load.o\n",
        "load.c": '#include "workqueue.h"\nint load(struct workqueue_struct *wq) { return wq->max_active; }\n',
    }
}


@pytest.fixture
def base(tree: Tree, workspace: Workspace) -> Source:
    mirror = update_mirror(tree, workspace)
    return source_at(tree, mirror.git, mirror.head)


def named(result: BuildResult) -> dict[str, Artifact]:
    assert result.outcome is Outcome.PASSED, result.failure
    return {artifact.name: artifact for artifact in result.artifacts}


def test_module_is_built_with_kernel_and_reused(base: Source, workspace: Workspace, build_job) -> None:
    without = build(build_job(base), workspace)
    result = build(build_job(base, modules=MODULES), workspace)
    module = named(result)["load.ko"]
    assert module.kind is ArtifactKind.MODULE
    assert workspace.path_of(module).read_bytes().startswith(b"\x7fELF")
    assert result.failed_modules == {}
    assert result.build_id_gnu == without.build_id_gnu
    log = (build_folder(workspace, build_job(base, modules=MODULES).key) / "build.log").read_text()
    assert "wqlab: module load\n" in log
    again = build(build_job(base, modules=MODULES), workspace)
    assert again.reused
    assert named(again)["load.ko"] == module


def test_failed_module_does_not_fail_kernel_build(
    base: Source, workspace: Workspace, build_job, repository, tree: Tree
) -> None:
    repository.edit("kernel/workqueue.h", "max_active", "most_active")
    repository.commit("workqueue: rename max_active")
    series = Series(mbox=MboxSeries(text=repository.mbox("-1")))
    repository.git("reset", "--hard", "--quiet", "HEAD~1")
    candidate = apply(ApplyJob(submission_id=1, tree=tree, series=series), workspace).candidate
    assert candidate
    job = build_job(candidate, modules=MODULES)
    result = build(job, workspace)
    assert "load.ko" not in named(result)
    assert result.failed_modules.keys() == {"load"}
    assert result.failed_modules["load"].startswith("load.c:2:")
    assert "max_active" in result.failed_modules["load"]
    assert result.warnings == [], "warnings about our module do not count for the series"
    log = (build_folder(workspace, job.key) / "build.log").read_text()
    assert "wqlab: module load does not build against this kernel: load.c:2:" in log


def test_failed_module_does_not_stop_the_next_module(base: Source, workspace: Workspace, build_job) -> None:
    other = {"load": {"Kbuild": "", "load.c": "#error never\n"}, "probe": {"Kbuild": "", "probe.c": "int probe;\n"}}
    result = build(build_job(base, modules=other), workspace)
    assert result.failed_modules["load"].startswith("load.c:1:")
    assert "probe.ko" in named(result)


# --- files for the device -----------------------------------------------------------------------------------------


def kernel(**fields: object) -> Kernel:
    image = Artifact(sha256="0" * 64, size=1, kind=ArtifactKind.KERNEL, name="kernel")
    return Kernel.model_validate({"recipe": "measure", "build_id_gnu": "b", "release": "r", "image": image, **fields})


def stored(folder: Path, name: str, data: bytes, kind: ArtifactKind) -> Artifact:
    (folder / name).write_bytes(data)
    return Artifact(sha256="1" * 64, size=len(data), kind=kind, name=name)


def test_device_gets_each_module_or_reason_for_its_absence(tmp_path: Path) -> None:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        entry = tarfile.TarInfo("lib/modules/7.1.0/kernel/lib/test-workqueue.ko")
        entry.size = 3
        tar.addfile(entry, io.BytesIO(b"own"))
    running = kernel(
        modules={"load": stored(tmp_path, "load.ko", b"ours", ArtifactKind.MODULE)},
        failed_modules={"probe": "probe.c:2: error: no such member"},
        own_modules=stored(tmp_path, "modules.tar", archive.getvalue(), ArtifactKind.MODULES),
    )
    files = files_for_device(
        ["load", "probe", "test_workqueue", "gone"], running, lambda artifact: tmp_path / artifact.name
    )
    assert files == {
        "load.ko": b"ours",
        "probe.absent": b"module probe does not build against this kernel: probe.c:2: error: no such member\n",
        "test_workqueue.ko": b"own",
        "gone.absent": b"this kernel has no module gone\n",
    }


def archive_of(folder: Path, members: dict[str, bytes]) -> Kernel:
    """Return a kernel with an archive of modules that has these members."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, content in members.items():
            entry = tarfile.TarInfo(f"lib/modules/6.12.117/{name}")
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return kernel(own_modules=stored(folder, "modules.tar", archive.getvalue(), ArtifactKind.MODULES))


DEPENDENCIES = (
    b"kernel/host/nvme-core.ko:\nkernel/host/nvme-tcp.ko: kernel/host/nvme-fabrics.ko kernel/host/nvme-core.ko\n"
)


def test_device_gets_the_modules_that_a_module_needs(tmp_path: Path) -> None:
    running = archive_of(
        tmp_path,
        {
            "kernel/host/nvme-tcp.ko": b"tcp",
            "kernel/host/nvme-core.ko": b"core",
            "modules.dep": DEPENDENCIES,
            "kernel/host/nvme-fabrics.ko": b"fabrics",
            "kernel/fs/other.ko": b"other",
        },
    )
    files = files_for_device(["nvme_tcp"], running, lambda artifact: tmp_path / artifact.name)
    assert files == {
        "nvme_tcp.ko": b"tcp",
        "nvme_core.ko": b"core",
        "nvme_fabrics.ko": b"fabrics",
        "nvme_tcp.depends": b"nvme_core\nnvme_fabrics\n",
    }


def test_reason_names_a_needed_module_that_is_absent(tmp_path: Path) -> None:
    running = archive_of(
        tmp_path,
        {"modules.dep": DEPENDENCIES, "kernel/nvme-tcp.ko": b"tcp", "kernel/nvme-core.ko": b"core"},
    )
    files = files_for_device(["nvme_tcp"], running, lambda artifact: tmp_path / artifact.name)
    assert files == {"nvme_tcp.absent": b"this kernel has no module nvme_fabrics, which nvme_tcp needs\n"}


def test_module_that_is_built_in_is_not_absent(tmp_path: Path) -> None:
    running = archive_of(tmp_path, {"modules.builtin": b"kernel/drivers/md/dm-verity.ko\nkernel/fs/xfs/xfs.ko\n"})
    files = files_for_device(["dm_verity", "verity"], running, lambda artifact: tmp_path / artifact.name)
    assert files == {"dm_verity.builtin": b"", "verity.absent": b"this kernel has no module verity\n"}


def test_unreadable_archive_has_no_modules(tmp_path: Path) -> None:
    broken = kernel(own_modules=stored(tmp_path, "modules.tar", b"no tar", ArtifactKind.MODULES))
    assert files_for_device(["gone"], broken, lambda artifact: tmp_path / artifact.name).keys() == {"gone.absent"}


def test_compressed_archive_has_no_modules(tmp_path: Path) -> None:
    """tuxmake compresses no archive here; a build may, with gigabytes of zeros in a megabyte."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:xz") as tar:
        entry = tarfile.TarInfo("gone.ko")
        entry.size = 3
        tar.addfile(entry, io.BytesIO(b"own"))
    packed = kernel(own_modules=stored(tmp_path, "modules.tar", archive.getvalue(), ArtifactKind.MODULES))
    assert files_for_device(["gone"], packed, lambda artifact: tmp_path / artifact.name).keys() == {"gone.absent"}


def test_extended_header_of_an_archive_is_not_read_into_memory(tmp_path: Path) -> None:
    entry = tarfile.TarInfo("x")
    entry.size, entry.type = 200 << 20, tarfile.XHDTYPE
    with (tmp_path / "modules.tar").open("wb") as file:
        file.write(entry.tobuf(tarfile.GNU_FORMAT))
        file.truncate(256 << 20)
    modules = Artifact(sha256="1" * 64, size=256 << 20, kind=ArtifactKind.MODULES, name="modules.tar")
    tracemalloc.start()
    try:
        files = files_for_device(["gone"], kernel(own_modules=modules), lambda artifact: tmp_path / artifact.name)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
    assert files.keys() == {"gone.absent"}


def test_long_name_in_an_archive_is_read(tmp_path: Path) -> None:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.GNU_FORMAT) as tar:
        entry = tarfile.TarInfo(f"lib/{'long/' * 40}own.ko")
        entry.size = 3
        tar.addfile(entry, io.BytesIO(b"own"))
    running = kernel(own_modules=stored(tmp_path, "modules.tar", archive.getvalue(), ArtifactKind.MODULES))
    assert files_for_device(["own"], running, lambda artifact: tmp_path / artifact.name) == {"own.ko": b"own"}


def test_module_over_the_limit_is_an_infrastructure_failure(tmp_path: Path) -> None:
    """The size that the server declares is checked before the file is read."""
    huge = Artifact(sha256="1" * 64, size=1 << 30, kind=ArtifactKind.MODULE, name="load.ko")
    with pytest.raises(InfrastructureError, match=r"load\.ko has 1073741824 bytes"):
        files_for_device(["load"], kernel(modules={"load": huge}), lambda artifact: tmp_path / artifact.name)
