"""Builds of the toy kernel: found again, deterministic, honest about whose fault a failure is."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from wqlab_contracts.enums import ArtifactKind, ErrorKind, Outcome
from wqlab_contracts.messages import BuildJob, BuildResult, Source
from wqlab_worker.build import build_kernel as builds
from wqlab_worker.build.build_id import build_id
from wqlab_worker.build.build_kernel import build, build_folder
from wqlab_worker.build.reproduce import reproducer
from wqlab_worker.workspace import Workspace, sha256_of


def passed(result: BuildResult) -> BuildResult:
    assert result.outcome is Outcome.PASSED, result.failure
    return result


def test_a_build_gives_everything_that_a_run_needs(base: Source, workspace: Workspace, build_job) -> None:
    job = build_job(base)
    seen: list[str] = []
    result = passed(build(job, workspace, lambda text, done, total: seen.append(text)))
    folder = build_folder(workspace, job.key)
    assert {path.name for path in folder.iterdir()} == {
        *("kernel", "vmlinux", "System.map", "config", "build.log", "metadata.json", "modules.tar", "result.json"),
        "workqueue-layout.json",
    }
    assert {artifact.kind for artifact in result.artifacts} >= {
        *(ArtifactKind.KERNEL, ArtifactKind.VMLINUX, ArtifactKind.SYSTEM_MAP, ArtifactKind.CONFIG),
        *(ArtifactKind.BUILD_LOG, ArtifactKind.METADATA, ArtifactKind.MODULES),
    }
    for artifact in result.artifacts:
        assert workspace.path_of(artifact).read_bytes() == (folder / artifact.name).read_bytes()
    assert result.release == "6.12.99-toy"
    assert result.build_id_gnu == build_id(folder / "vmlinux")
    assert len(result.build_id_gnu) == 40
    assert result.compiler.startswith(("gcc", "x86_64-linux-gnu-gcc"))
    assert "  CC      kernel/workqueue.o" in (folder / "build.log").read_text()
    assert BuildResult.model_validate_json((folder / "result.json").read_text()) == result
    assert "configuring" in seen


def test_options_that_did_not_take_effect_are_named(base: Source, workspace: Workspace, build_job) -> None:
    job = build_job(base)
    assert passed(build(job, workspace)).unmet_options == ["CONFIG_ABSENT=y (is n)"]
    log = (build_folder(workspace, job.key) / "build.log").read_text()
    assert log.endswith("wqlab: not in the finished configuration: CONFIG_ABSENT=y (is n)\n")
    assert "CONFIG_NR_CPUS=64" in (build_folder(workspace, job.key) / "config").read_text()


def test_nothing_is_built_twice(base: Source, workspace: Workspace, build_job) -> None:
    first = passed(build(build_job(base), workspace))
    stamp = (build_folder(workspace, build_job(base).key) / "vmlinux").stat().st_mtime_ns
    again = passed(build(build_job(base), workspace))
    assert (first.reused, again.reused) == (False, True)
    assert again.build_id_gnu == first.build_id_gnu
    assert (build_folder(workspace, build_job(base).key) / "vmlinux").stat().st_mtime_ns == stamp


def test_a_build_of_before_gets_its_layout_without_being_built_again(
    base: Source, workspace: Workspace, build_job
) -> None:
    job = build_job(base)
    first = passed(build(job, workspace))
    folder = build_folder(workspace, job.key)
    older = [artifact for artifact in first.artifacts if artifact.kind is not ArtifactKind.WORKQUEUE_LAYOUT]
    assert len(older) == len(first.artifacts) - 1
    (folder / "result.json").write_text(first.model_copy(update={"artifacts": older}).model_dump_json())
    (folder / "workqueue-layout.json").unlink()
    stamp = (folder / "vmlinux").stat().st_mtime_ns
    for _ in range(2):
        again = passed(build(job, workspace))
        assert again.reused
        assert {artifact.kind for artifact in again.artifacts} == {artifact.kind for artifact in first.artifacts}
    assert (folder / "vmlinux").stat().st_mtime_ns == stamp


def test_two_workers_build_one_key_once(base: Source, workspace: Workspace, build_job) -> None:
    results: list[BuildResult] = []
    workers = [threading.Thread(target=lambda: results.append(build(build_job(base), workspace))) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(passed(result).reused for result in results) == [False, True]


def test_the_same_content_gives_the_same_build_id(
    base: Source, workspace: Workspace, build_job, tmp_path: Path
) -> None:
    elsewhere = Workspace(tmp_path / "elsewhere", local_git_paths=workspace.local_git_paths, jobs=1)
    first = passed(build(build_job(base), workspace))
    second = passed(build(build_job(base), elsewhere))
    assert not second.reused
    assert second.build_id_gnu == first.build_id_gnu


def test_a_candidate_reads_the_compiler_cache_and_never_writes_it(
    base: Source, workspace: Workspace, build_job, repository, candidate
) -> None:
    """Where it does not begin with its base's objects: here it brings a file."""
    baseline = passed(build(build_job(base), workspace))
    assert baseline.ccache["cache_miss"] == 2
    before = {path: path.read_bytes() for path in workspace.ccache.rglob("*") if path.is_file()}
    repository.edit("kernel/workqueue.c", "512", "1024")
    repository.write({"kernel/max_active.txt": "1024"})
    repository.commit("workqueue: raise max_active")
    job = build_job(candidate(), trusted=True)
    changed = passed(build(job, workspace))
    assert changed.build_id_gnu != baseline.build_id_gnu
    # The image is this kernel's: what an assembler includes is not taken from the cache, however alike it looks.
    assert build_id(build_folder(workspace, job.key) / "kernel") == changed.build_id_gnu
    # fork.c was found, workqueue.c was compiled; a bundle is never trusted, whatever the job says.
    assert changed.ccache == {"direct_cache_hit": 1, "preprocessed_cache_hit": 0, "cache_miss": 1}
    assert {path: path.read_bytes() for path in workspace.ccache.rglob("*") if path.is_file()} == before


def test_a_series_that_does_not_compile_is_the_users(
    base: Source, workspace: Workspace, build_job, repository, candidate
) -> None:
    repository.edit("kernel/workqueue.c", "return 1;", "return undeclared;")
    repository.commit("workqueue: break")
    job = build_job(candidate(), trusted=False)
    result = build(job, workspace)
    assert result.failure and result.failure.kind is ErrorKind.USER
    assert result.reproducer == reproducer(job)
    assert result.failure.summary.startswith("the kernel does not compile: kernel/workqueue.c:5:16: error: ")
    assert "undeclared" in result.failure.excerpt
    assert "/src" not in result.failure.excerpt
    assert [artifact.kind for artifact in result.artifacts] == [ArtifactKind.BUILD_LOG]
    assert result.failure.excerpt.splitlines()[0] in workspace.path_of(result.artifacts[0]).read_text()
    assert not build_folder(workspace, job.key).exists()


def test_warnings_are_listed(base: Source, workspace: Workspace, build_job, repository, candidate) -> None:
    repository.edit("kernel/workqueue.c", "return 1;", "int unused; return 1;")
    repository.commit("workqueue: warn")
    result = passed(build(build_job(candidate()), workspace))
    assert [(warning.where, warning.option) for warning in result.warnings] == [
        ("kernel/workqueue.c:5:13", "-Wunused-variable")
    ]


@pytest.mark.parametrize(
    ("hook", "summary"),
    [
        ("ln -sf /etc/passwd $(O)/System.map", "the build left no usable System.map"),
        ("rm $(O)/vmlinux; echo no ELF > $(O)/vmlinux", "vmlinux has no usable GNU build-id"),
        (
            "rm -r $(O)/arch/x86/boot; ln -s /usr/bin $(O)/arch/x86/boot",
            "the build left no usable arch/x86/boot/bzImage",
        ),
    ],
)
def test_what_a_hostile_build_leaves_is_not_believed(
    base: Source, workspace: Workspace, build_job, repository, candidate, hook: str, summary: str
) -> None:
    repository.write({"hooks.mk": f"modules_install: evil\nevil:\n\t{hook}\n"})
    repository.commit("hooks: be evil")
    result = build(build_job(candidate(), trusted=False), workspace)
    assert result.failure and result.failure.kind is ErrorKind.USER
    assert result.failure.summary.startswith(summary)


def test_a_build_script_cannot_touch_source_cache_or_network(
    base: Source, workspace: Workspace, build_job, repository, candidate
) -> None:
    passed(build(build_job(base), workspace))
    attack = (
        "modules_install: evil\nevil:\n"
        "\t@for f in kernel/fork.c /ccache/x /config/x /usr/x; do echo evil >> $$f && echo WROTE $$f; done; true\n"
        "\t@bash -c 'exec 3<>/dev/tcp/127.0.0.1/22' && echo CONNECTED; true\n"
        "\t@cat /proc/self/environ | tr '\\0' '\\n' | grep WQLAB && echo LEAKED; true\n"
    )
    repository.write({"hooks.mk": attack})
    repository.commit("hooks: attack")
    job = build_job(candidate(), trusted=False)
    passed(build(job, workspace))
    log = (build_folder(workspace, job.key) / "build.log").read_text()
    assert "Read-only file system" in log
    assert not {"WROTE", "CONNECTED", "LEAKED"} & set(log.split())


@pytest.mark.parametrize("change", [{"toolchain": "gcc (Other) 1.0; GNU ld 1"}, {"key": "0" * 64}])
def test_a_job_that_does_not_fit_this_worker_is_the_labs(
    base: Source, workspace: Workspace, build_job, change: dict[str, str]
) -> None:
    job: BuildJob = build_job(base)
    if "toolchain" in change:
        change = change | {
            "key": builds.build_key(job.source.tree_oid, job.recipe, job.arch, job.fragments, change["toolchain"])
        }
    result = build(job.model_copy(update=change), workspace)
    assert result.failure and result.failure.kind is ErrorKind.INFRASTRUCTURE


def test_a_full_disk_is_the_labs(
    base: Source, workspace: Workspace, build_job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builds, "SPACE_NEEDED", 1 << 60)
    result = build(build_job(base), workspace)
    assert result.failure and result.failure.kind is ErrorKind.INFRASTRUCTURE
    assert "a build needs" in result.failure.summary


def test_a_canceled_build_leaves_nothing(base: Source, workspace: Workspace, build_job) -> None:
    class Canceled(Exception):
        pass

    def cancel(text: str, done: int, total: int) -> None:
        if text == "configuring":
            raise Canceled

    with pytest.raises(Canceled):
        build(build_job(base), workspace, cancel)
    assert list((workspace.cache / "scratch").iterdir()) == []
    assert not build_folder(workspace, build_job(base).key).exists()
    passed(build(build_job(base), workspace))


def test_a_build_whose_files_are_gone_is_built_again(base: Source, workspace: Workspace, build_job) -> None:
    first = passed(build(build_job(base), workspace))
    workspace.path_of(first.artifacts[0]).unlink()
    second = passed(build(build_job(base), workspace))
    assert not second.reused
    assert workspace.path_of(second.artifacts[0]).is_file()


@pytest.mark.parametrize("text", ["", "{", '{"outcome": "passed"}', '{"outcome": "failed"}', "\x00" * 64])
def test_a_build_with_a_damaged_result_is_built_again(base: Source, workspace: Workspace, build_job, text: str) -> None:
    job = build_job(base)
    first = passed(build(job, workspace))
    (build_folder(workspace, job.key) / "result.json").write_text(text)
    second = passed(build(job, workspace))
    assert (second.reused, second.build_id_gnu) == (False, first.build_id_gnu)
    assert passed(build(job, workspace)).reused


def test_a_build_with_a_damaged_file_is_built_again(base: Source, workspace: Workspace, build_job) -> None:
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


def test_keeping_a_file_replaces_a_damaged_one_with_its_name(workspace: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"whole")
    target = workspace.path_of(workspace.keep(path, ArtifactKind.KERNEL, "kernel"))
    target.unlink()
    target.write_bytes(b"broke")
    assert workspace.path_of(workspace.keep(path, ArtifactKind.KERNEL, "kernel")).read_bytes() == b"whole"
    assert [entry.name for entry in workspace.fetched.iterdir()] == [target.name]


def test_the_reproducer_gives_the_same_kernel(
    base: Source, workspace: Workspace, build_job, repository, tmp_path: Path
) -> None:
    """Run as a person would: config beside the source tree, tuxmake from this environment."""
    import os
    import subprocess
    import sys

    result = passed(build(build_job(base), workspace))
    assert "\n" not in result.reproducer
    assert "#" not in result.reproducer
    place = tmp_path / "person"
    place.mkdir()
    (place / "linux").symlink_to(repository.path)
    (place / "config").write_bytes((build_folder(workspace, build_job(base).key) / "config").read_bytes())
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    subprocess.run(["sh", "-c", result.reproducer], cwd=place, env=environment, check=True, capture_output=True)
    assert build_id(place / "build" / "vmlinux") == result.build_id_gnu


def test_a_build_found_again_says_how_it_is_built_today(base: Source, workspace: Workspace, build_job) -> None:
    job = build_job(base)
    stored = build_folder(workspace, job.key) / "result.json"
    first = passed(build(job, workspace))
    stored.write_text(first.model_copy(update={"reproducer": "make"}).model_dump_json())
    assert passed(build(job, workspace)).reproducer == first.reproducer == reproducer(job)
