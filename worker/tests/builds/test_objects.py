"""A candidate's build begins with its base's objects, and gives what a build from nothing gives."""

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
from wqlab_worker.build.build_kernel import build, build_folder
from wqlab_worker.workspace import Workspace


@pytest.fixture
def mailed(repository, workspace: Workspace, base: Source, candidate, build_job):
    """Builds the base, then what the repository's files have become: the candidate's job, and the objects compiled."""

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


def from_nothing(job: BuildJob, workspace: Workspace, tmp_path: Path) -> bytes:
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
def test_only_what_an_edit_touches_is_compiled_and_the_kernel_is_the_same(
    mailed, repository, workspace: Workspace, tmp_path: Path, file: str, old: str, new: str, touched: set[str]
) -> None:
    repository.edit(file, old, new)
    job, objects_compiled = mailed()
    assert objects_compiled == touched
    assert (build_folder(workspace, job.key) / "vmlinux").read_bytes() == from_nothing(job, workspace, tmp_path)


def test_what_make_may_not_notice_is_built_from_nothing(
    repository, base: Source, candidate, build_job, workspace: Workspace, tmp_path: Path
) -> None:
    assert build(build_job(base), workspace).outcome is Outcome.PASSED
    workqueue_h = repository.path / "kernel/workqueue.h"

    def begins_with_objects(change: Callable[[], object]) -> bool:
        change()
        repository.commit("toy: change")
        job = build_job(candidate(), trusted=False)
        begun = tmp_path / job.key
        begun.mkdir()
        with checked_out(job.source, workspace) as source:
            found = objects.begin_with(workspace, job, source, begun)
        assert bool(found) == any(begun.iterdir())
        return bool(found)

    assert begins_with_objects(lambda: repository.edit("kernel/fork.c", "idle_s", "idle_seconds"))
    assert not begins_with_objects(lambda: repository.write({"kernel/string.h": ""}))
    assert not begins_with_objects(workqueue_h.unlink)
    assert not begins_with_objects(lambda: workqueue_h.rename(workqueue_h.with_name("wq.h")))
    assert not begins_with_objects(lambda: (workqueue_h.unlink(), workqueue_h.symlink_to("fork.c")))
    assert not begins_with_objects(lambda: repository.edit("Makefile", "-O2", "-O1"))
    assert not begins_with_objects(lambda: repository.edit("scripts/tool.c", "0", "1"))


def test_a_link_that_names_another_file_is_no_edit(
    base: Source, build_job, workspace: Workspace, tmp_path: Path
) -> None:
    """What it names may be anywhere, and is not touched."""
    assert build(build_job(base), workspace).outcome is Outcome.PASSED
    (files := tmp_path / "files").mkdir()
    (outside := tmp_path / "outside.h").write_text("")
    os.utime(outside, (0, 0))
    (files / "link.h").symlink_to(outside)
    (begun := tmp_path / "begun").mkdir()
    source = CheckedOut(files, base.tree_oid, (Change("M", "link.h"),))
    assert objects.begin_with(workspace, build_job(base), source, begun) == ""
    assert outside.stat().st_mtime == 0
    source = CheckedOut(files, base.tree_oid)
    assert objects.begin_with(workspace, build_job(base), source, begun), "but for the link, it could"


def test_an_edit_is_younger_than_a_base_built_meanwhile(
    repository, base: Source, candidate, build_job, workspace: Workspace, tmp_path: Path
) -> None:
    repository.edit("kernel/workqueue.c", "512", "1024")
    repository.commit("toy: change")
    job = build_job(candidate(), trusted=False)
    begun = tmp_path / "begun"
    begun.mkdir()
    with checked_out(job.source, workspace) as source:
        assert build(build_job(base), workspace).outcome is Outcome.PASSED
        assert objects.begin_with(workspace, job, source, begun) == build_job(base).key
        edited = (source.files / "kernel/workqueue.c").stat().st_mtime_ns
    assert edited > (begun / "kernel/workqueue.o").stat().st_mtime_ns


def test_a_candidate_leaves_its_bases_objects_as_they_were(mailed, repository, workspace: Workspace) -> None:
    repository.edit("kernel/workqueue.c", "512", "1024")
    job, _ = mailed()
    (kept,) = workspace.objects.iterdir()
    assert kept.name != job.key, "a candidate's own are not kept"
    assert (kept / "vmlinux").read_bytes() == (build_folder(workspace, kept.name) / "vmlinux").read_bytes()


def test_objects_of_trees_not_used_for_long_make_room(
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
    assert build(third, workspace).outcome is Outcome.PASSED, "a tree too large to keep"
    assert [kept.name for kept in workspace.objects.iterdir()] == [second.key]
