"""Archive of the source files of a build."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from wqlab_contracts.enums import ArtifactKind, Outcome
from wqlab_contracts.messages import Source
from wqlab_worker.build import pack_sources, source_archive
from wqlab_worker.build.build_kernel import build
from wqlab_worker.build.kept_builds import build_folder
from wqlab_worker.workspace import Workspace


def folders(tmp_path: Path) -> tuple[Path, Path]:
    source, build_dir = tmp_path / "src", tmp_path / "build"
    for folder in (source / "kernel", build_dir / "kernel", build_dir / "include/generated"):
        folder.mkdir(parents=True)
    (source / "kernel/a.c").write_text("int a;\n")
    (source / "kernel/unused.c").write_text("int unused;\n")
    (build_dir / "include/generated/b.h").write_text("#define B\n")
    return source, build_dir


def packed(source: Path, build_dir: Path, listed: str, limit: int = 1 << 20) -> list[str]:
    (build_dir / "kernel/.a.o.cmd").write_text(listed)
    target = build_dir.parent / "sources.zip"
    pack_sources.pack(str(source), str(build_dir), target, limit)
    with zipfile.ZipFile(target) as archive:
        return archive.namelist()


def test_archive_has_the_files_of_the_objects(tmp_path: Path) -> None:
    source, build_dir = folders(tmp_path)
    listed = f"""savedcmd_kernel/a.o := gcc -c -o kernel/a.o {source}/kernel/a.c
source_kernel/a.o := {source}/kernel/a.c
deps_kernel/a.o := \\
    $(wildcard include/config/FOO) \\
  include/generated/b.h \\
  ../src/kernel/a.c \\
  /usr/include/stdio.h \\
  {source}/kernel/missing.h \\
"""
    assert packed(source, build_dir, listed) == ["include/generated/b.h", "kernel/a.c"]


def test_files_outside_the_tree_are_not_packed(tmp_path: Path) -> None:
    source, build_dir = folders(tmp_path)
    (tmp_path / "secret.c").write_text("secret")
    os.mkfifo(source / "kernel/fifo.c")
    listed = f"{source}/../secret.c ../secret.c {tmp_path}/secret.c {source}/kernel/fifo.c {source}/kernel/a.c"
    assert packed(source, build_dir, listed) == ["kernel/a.c"]


def test_archive_is_bounded(tmp_path: Path) -> None:
    source, build_dir = folders(tmp_path)
    (source / "kernel/random.c").write_bytes(os.urandom(1 << 20))
    with pytest.raises(ValueError, match="more than 500000 bytes"):
        packed(source, build_dir, f"{source}/kernel/random.c", 500_000)
    assert not (tmp_path / "sources.zip").exists()


def test_build_keeps_its_sources(base: Source, workspace: Workspace, build_job) -> None:
    job = build_job(base)
    result = build(job, workspace)
    assert result.outcome is Outcome.PASSED, result.failure
    assert ArtifactKind.SOURCES in {artifact.kind for artifact in result.artifacts}
    with zipfile.ZipFile(build_folder(workspace, job.key) / source_archive.NAME) as archive:
        assert {"kernel/fork.c", "kernel/workqueue.c", "kernel/workqueue.h"} <= set(archive.namelist())


def test_sources_that_cannot_be_packed_do_not_fail_the_build(
    base: Source, workspace: Workspace, build_job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_archive, "LIMIT", 10)
    result = build(build_job(base), workspace)
    assert result.outcome is Outcome.PASSED, result.failure
    assert ArtifactKind.SOURCES not in {artifact.kind for artifact in result.artifacts}
