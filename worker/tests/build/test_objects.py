"""A candidate's build that starts from its base's object files gives the same kernel as one from scratch."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from wqlab_contracts.enums import Outcome
from wqlab_contracts.messages import BuildJob, Source
from wqlab_worker.apply.checkout import Change, CheckedOut, checked_out
from wqlab_worker.build import objects
from wqlab_worker.build.build_kernel import build
from wqlab_worker.build.kept_builds import build_folder
from wqlab_worker.workspace import Workspace


@pytest.fixture
def mailed(repository, workspace: Workspace, base: Source, candidate, build_job):
    """Build the base and then the edited repository; return the candidate's job and the compiled object files."""

    def submit() -> tuple[BuildJob, set[str]]:
        assert build(build_job(base), workspace).outcome is Outcome.PASSED
        repository.commit("toy: change")
        job = build_job(candidate(), trusted=False)
        result = build(job, workspace)
        assert result.outcome is Outcome.PASSED, result.failure
        return job, compiled(workspace, job.key)

    return submit


def compiled(workspace: Workspace, key: str) -> set[str]:
    lines = (build_folder(workspace, key) / "build.log").read_text().splitlines()
    return {line.split()[1] for line in lines if line.startswith("  CC ")}


def build_from_scratch(job: BuildJob, workspace: Workspace, tmp_path: Path) -> bytes:
    elsewhere = Workspace(tmp_path / "elsewhere", local_git_paths=workspace.local_git_paths, jobs=1)
    assert job.source.bundle
    shutil.copy(workspace.path_of(job.source.bundle), elsewhere.path_of(job.source.bundle))
    assert build(job, elsewhere).outcome is Outcome.PASSED
    assert compiled(elsewhere, job.key) == {"kernel/fork.o", "kernel/workqueue.o"}
    return (build_folder(elsewhere, job.key) / "vmlinux").read_bytes()


@pytest.mark.parametrize(
    ("file", "old", "new", "touched"),
    [
        ("kernel/workqueue.c", "512", "1024", {"kernel/workqueue.o"}),
        ("kernel/workqueue.h", "#define IDLE_S 1", "#define IDLE_S 300", {"kernel/fork.o"}),
    ],
)
def test_edit_compiles_only_affected_files_and_gives_same_kernel(
    mailed, repository, workspace: Workspace, tmp_path: Path, file: str, old: str, new: str, touched: set[str]
) -> None:
    repository.edit(file, old, new)
    job, objects_compiled = mailed()
    assert objects_compiled == touched
    assert (build_folder(workspace, job.key) / "vmlinux").read_bytes() == build_from_scratch(job, workspace, tmp_path)


def test_untracked_changes_are_built_from_scratch(
    repository, base: Source, candidate, build_job, workspace: Workspace, tmp_path: Path
) -> None:
    assert build(build_job(base), workspace).outcome is Outcome.PASSED
    workqueue_h = repository.path / "kernel/workqueue.h"

    def restores_base(change: Callable[[], object]) -> bool:
        change()
        repository.commit("toy: change")
        job = build_job(candidate(), trusted=False)
        objects_folder = tmp_path / job.key
        objects_folder.mkdir()
        with checked_out(job.source, workspace) as source:
            found = objects.restore_base(workspace, job, source, objects_folder)
        assert bool(found) == any(objects_folder.iterdir())
        return bool(found)

    assert restores_base(lambda: repository.edit("kernel/fork.c", "idle_s", "idle_seconds"))
    assert not restores_base(lambda: repository.write({"kernel/string.h": ""}))
    assert not restores_base(workqueue_h.unlink)
    assert not restores_base(lambda: workqueue_h.rename(workqueue_h.with_name("wq.h")))
    assert not restores_base(lambda: (workqueue_h.unlink(), workqueue_h.symlink_to("fork.c")))
    assert not restores_base(lambda: repository.edit("Makefile", "-O2", "-O1"))
    assert not restores_base(lambda: repository.edit("scripts/tool.c", "0", "1"))


def test_symbolic_link_is_not_a_tracked_change(base: Source, build_job, workspace: Workspace, tmp_path: Path) -> None:
    """The target of the link may be anywhere, and its time is not changed."""
    assert build(build_job(base), workspace).outcome is Outcome.PASSED
    (files := tmp_path / "files").mkdir()
    (outside := tmp_path / "outside.h").write_text("")
    os.utime(outside, (0, 0))
    (files / "link.h").symlink_to(outside)
    (objects_folder := tmp_path / "objects_folder").mkdir()
    source = CheckedOut(files, base.tree_oid, (Change("M", "link.h"),))
    assert objects.restore_base(workspace, build_job(base), source, objects_folder) == ""
    assert outside.stat().st_mtime == 0
    source = CheckedOut(files, base.tree_oid)
    assert objects.restore_base(workspace, build_job(base), source, objects_folder), (
        "without the link, the objects are used"
    )


def test_edited_file_is_newer_than_base_built_later(
    repository, base: Source, candidate, build_job, workspace: Workspace, tmp_path: Path
) -> None:
    repository.edit("kernel/workqueue.c", "512", "1024")
    repository.commit("toy: change")
    job = build_job(candidate(), trusted=False)
    objects_folder = tmp_path / "objects_folder"
    objects_folder.mkdir()
    with checked_out(job.source, workspace) as source:
        assert build(build_job(base), workspace).outcome is Outcome.PASSED
        assert objects.restore_base(workspace, job, source, objects_folder) == build_job(base).key
        edited = (source.files / "kernel/workqueue.c").stat().st_mtime_ns
    assert edited > (objects_folder / "kernel/workqueue.o").stat().st_mtime_ns


def test_candidate_build_does_not_change_base_objects(mailed, repository, workspace: Workspace) -> None:
    repository.edit("kernel/workqueue.c", "512", "1024")
    job, _ = mailed()
    (kept,) = workspace.objects.iterdir()
    assert kept.name != job.key, "the objects of candidates are not kept"
    assert (kept / "vmlinux").read_bytes() == (build_folder(workspace, kept.name) / "vmlinux").read_bytes()


def test_least_recently_used_objects_are_removed(
    base: Source, workspace: Workspace, build_job, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = {"base": "CONFIG_SMP=y\n", "emulated": ""}
    first, second = build_job(base), build_job(base, fragments=other)
    assert build(first, workspace).outcome is Outcome.PASSED
    (kept,) = workspace.objects.iterdir()
    assert kept.name == first.key
    size = objects.disk_usage(kept)
    monkeypatch.setattr(objects, "KEPT_BYTES", size * 3 // 2)
    assert build(second, workspace).outcome is Outcome.PASSED
    assert [kept.name for kept in workspace.objects.iterdir()] == [second.key]
    monkeypatch.setattr(objects, "KEPT_BYTES", 0)
    third = build_job(base, fragments={"base": "", "emulated": ""})
    assert build(third, workspace).outcome is Outcome.PASSED, (
        "the build passes although its objects are too large to keep"
    )
    assert [kept.name for kept in workspace.objects.iterdir()] == [second.key]
