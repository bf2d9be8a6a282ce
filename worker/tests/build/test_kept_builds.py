"""Reuse of finished builds, and repair of damaged ones."""

from __future__ import annotations

import pytest

from wqlab_contracts.enums import ArtifactKind, Outcome
from wqlab_contracts.messages import BuildResult, Source
from wqlab_worker.build.build_kernel import build
from wqlab_worker.build.kept_builds import build_folder
from wqlab_worker.workspace import Workspace, sha256_of


def passed(result: BuildResult) -> BuildResult:
    assert result.outcome is Outcome.PASSED, result.failure
    return result


def test_finished_build_is_reused(base: Source, workspace: Workspace, build_job) -> None:
    first = passed(build(build_job(base), workspace))
    stamp = (build_folder(workspace, build_job(base).key) / "vmlinux").stat().st_mtime_ns
    again = passed(build(build_job(base), workspace))
    assert (first.reused, again.reused) == (False, True)
    assert again.build_id_gnu == first.build_id_gnu
    assert (build_folder(workspace, build_job(base).key) / "vmlinux").stat().st_mtime_ns == stamp


def test_build_with_missing_file_is_built_again(base: Source, workspace: Workspace, build_job) -> None:
    first = passed(build(build_job(base), workspace))
    workspace.path_of(first.artifacts[0]).unlink()
    second = passed(build(build_job(base), workspace))
    assert not second.reused
    assert workspace.path_of(second.artifacts[0]).is_file()


@pytest.mark.parametrize("text", ["", "{", '{"outcome": "passed"}', '{"outcome": "failed"}', "\x00" * 64])
def test_build_with_damaged_result_is_built_again(base: Source, workspace: Workspace, build_job, text: str) -> None:
    job = build_job(base)
    first = passed(build(job, workspace))
    (build_folder(workspace, job.key) / "result.json").write_text(text)
    second = passed(build(job, workspace))
    assert (second.reused, second.build_id_gnu) == (False, first.build_id_gnu)
    assert passed(build(job, workspace)).reused


def test_build_with_damaged_file_is_built_again(base: Source, workspace: Workspace, build_job) -> None:
    job = build_job(base)
    first = passed(build(job, workspace))
    kernel = next(artifact for artifact in first.artifacts if artifact.kind is ArtifactKind.KERNEL)
    path = workspace.path_of(kernel)
    path.write_bytes(b"\0" * kernel.size)
    second = passed(build(job, workspace))
    assert not second.reused
    for artifact in second.artifacts:
        assert sha256_of(workspace.path_of(artifact)) == artifact.sha256
    assert passed(build(job, workspace)).reused
