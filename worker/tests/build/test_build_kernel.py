"""Build the toy kernel: reproducible results, and failures attributed to the series or the lab."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from wqlab_contracts.enums import ArtifactKind, ErrorKind, Outcome
from wqlab_contracts.keys import build_key
from wqlab_contracts.messages import BuildJob, BuildResult, Source
from wqlab_worker import volume
from wqlab_worker.build import build_kernel
from wqlab_worker.build.build_id import read_build_id
from wqlab_worker.build.build_kernel import build
from wqlab_worker.build.kept_builds import build_folder
from wqlab_worker.build.reproduce import reproducer
from wqlab_worker.limits import GIB, MIB, Limits
from wqlab_worker.watch import disk_usage
from wqlab_worker.workspace import Workspace


def passed(result: BuildResult) -> BuildResult:
    assert result.outcome is Outcome.PASSED, result.failure
    return result


def test_build_produces_all_files_of_a_run(base: Source, workspace: Workspace, build_job) -> None:
    job = build_job(base)
    seen: list[str] = []
    result = passed(build(job, workspace, lambda text, done, total: seen.append(text)))
    folder = build_folder(workspace, job.key)
    assert {path.name for path in folder.iterdir()} == {
        *("kernel", "vmlinux", "System.map", "config", "build.log", "metadata.json", "modules.tar", "result.json"),
        *("workqueue-layout.json", "sources.zip"),
    }
    assert {artifact.kind for artifact in result.artifacts} >= {
        *(ArtifactKind.KERNEL, ArtifactKind.VMLINUX, ArtifactKind.SYSTEM_MAP, ArtifactKind.CONFIG),
        *(ArtifactKind.BUILD_LOG, ArtifactKind.METADATA, ArtifactKind.MODULES),
    }
    for artifact in result.artifacts:
        assert workspace.path_of(artifact).read_bytes() == (folder / artifact.name).read_bytes()
    assert result.release == "6.12.99-toy"
    assert result.build_id_gnu == read_build_id(folder / "vmlinux")
    assert len(result.build_id_gnu) == 40
    assert result.compiler.startswith(("gcc", "x86_64-linux-gnu-gcc"))
    assert "  CC      kernel/workqueue.o" in (folder / "build.log").read_text()
    assert BuildResult.model_validate_json((folder / "result.json").read_text()) == result
    assert "configuring" in seen


def test_unmet_options_are_reported(base: Source, workspace: Workspace, build_job) -> None:
    job = build_job(base)
    assert passed(build(job, workspace)).unmet_options == ["CONFIG_ABSENT=y (is n)"]
    log = (build_folder(workspace, job.key) / "build.log").read_text()
    assert log.endswith("wqlab: not in the finished configuration: CONFIG_ABSENT=y (is n)\n")
    assert "CONFIG_NR_CPUS=64" in (build_folder(workspace, job.key) / "config").read_text()


def test_two_workers_build_the_same_key_once(base: Source, workspace: Workspace, build_job) -> None:
    results: list[BuildResult] = []
    workers = [threading.Thread(target=lambda: results.append(build(build_job(base), workspace))) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(passed(result).reused for result in results) == [False, True]


def test_same_content_gives_same_build_id(base: Source, workspace: Workspace, build_job, tmp_path: Path) -> None:
    elsewhere = Workspace(tmp_path / "elsewhere", local_git_paths=workspace.local_git_paths, jobs=1)
    first = passed(build(build_job(base), workspace))
    second = passed(build(build_job(base), elsewhere))
    assert not second.reused
    assert second.build_id_gnu == first.build_id_gnu


def test_candidate_build_only_reads_compiler_cache(
    base: Source, workspace: Workspace, build_job, repository, candidate
) -> None:
    """The base's objects are not reused, because the series adds a file."""
    baseline = passed(build(build_job(base), workspace))
    assert baseline.ccache["cache_miss"] == 2
    before = {path: path.read_bytes() for path in workspace.ccache.rglob("*") if path.is_file()}
    repository.edit("kernel/workqueue.c", "512", "1024")
    repository.write({"kernel/max_active.txt": "1024"})
    repository.commit("workqueue: raise max_active")
    job = build_job(candidate(), trusted=True)
    changed = passed(build(job, workspace))
    assert changed.build_id_gnu != baseline.build_id_gnu
    # The image contains this kernel: sources with .incbin are never taken from the cache.
    assert read_build_id(build_folder(workspace, job.key) / "kernel") == changed.build_id_gnu
    # fork.c was a hit, workqueue.c a miss. A bundle is never trusted, even if the job says so.
    assert changed.ccache == {"direct_cache_hit": 1, "preprocessed_cache_hit": 0, "cache_miss": 1}
    assert {path: path.read_bytes() for path in workspace.ccache.rglob("*") if path.is_file()} == before


def test_compile_error_of_a_series_is_a_user_error(
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


def test_compiler_warnings_are_listed(base: Source, workspace: Workspace, build_job, repository, candidate) -> None:
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
def test_hostile_build_output_is_rejected(
    base: Source, workspace: Workspace, build_job, repository, candidate, hook: str, summary: str
) -> None:
    repository.write({"hooks.mk": f"modules_install: evil\nevil:\n\t{hook}\n"})
    repository.commit("hooks: be evil")
    result = build(build_job(candidate(), trusted=False), workspace)
    assert result.failure and result.failure.kind is ErrorKind.USER
    assert result.failure.summary.startswith(summary)


def test_build_script_cannot_access_source_cache_or_network(
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
def test_unsuitable_job_is_an_infrastructure_error(
    base: Source, workspace: Workspace, build_job, change: dict[str, str]
) -> None:
    job: BuildJob = build_job(base)
    if "toolchain" in change:
        change = change | {
            "key": build_key(job.source.tree_oid, job.recipe, job.arch, job.fragments, change["toolchain"])
        }
    result = build(job.model_copy(update=change), workspace)
    assert result.failure and result.failure.kind is ErrorKind.INFRASTRUCTURE


def test_full_disk_is_an_infrastructure_error(
    base: Source, workspace: Workspace, build_job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_kernel, "SPACE_NEEDED", 1 << 60)
    result = build(build_job(base), workspace)
    assert result.failure and result.failure.kind is ErrorKind.INFRASTRUCTURE
    assert "a build needs" in result.failure.summary


def test_canceled_build_leaves_no_files(base: Source, workspace: Workspace, build_job) -> None:
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


SMALL = Limits(wall_s=3600, disk_bytes=64 * MIB, memory_bytes=GIB, processes=64, tmp_bytes=8 * MIB)


@pytest.mark.parametrize(
    ("hook", "summary"),
    [
        (
            "exec 3> $(O)/f; rm $(O)/f; head -c 200M /dev/zero >&3; sleep 600",
            "the build wrote more than 67108864 bytes",
        ),
        (
            "mkdir $(O)/d; exec 3> $(O)/d/f; chmod 0 $(O)/d; head -c 200M /dev/zero >&3; sleep 600",
            "the build wrote more than 67108864 bytes",
        ),
        (
            "exec 3> /tmp/f; rm /tmp/f; head -c 200M /dev/zero >&3; sleep 600",
            "the build wrote more than 8388608 bytes to /tmp",
        ),
        (
            "mkdir $(O)/d; cd $(O)/d; chmod 300 .; seq 50000 | xargs touch; sleep 600",
            "the build made more than 4096 files",
        ),
        ("for n in $$(seq 99); do sleep 600 & done; wait", "the build started more than 64 processes"),
        (
            "for n in 1 2 3 4; do python3 -c 'import time; b = bytearray(400 << 20); time.sleep(600)' & done; wait",
            "the build used more than 1073741824 bytes of memory",
        ),
        ("python3 -c 'import os; os.write(os.memfd_create(str()), bytes(1))'", "the kernel does not compile"),
        ("echo > /dev/shm/f", "the kernel does not compile"),
    ],
    ids=["unlinked file", "unreadable folder", "/tmp", "files", "fork bomb", "memory", "memfd", "/dev/shm"],
)
def test_series_that_exceeds_a_limit_is_blamed(
    workspace: Workspace, build_job, repository, candidate, monkeypatch: pytest.MonkeyPatch, hook: str, summary: str
) -> None:
    monkeypatch.setattr(build_kernel, "LIMITS", SMALL)
    repository.write({"hooks.mk": f"modules_install: evil\nevil:\n\t{hook}\n"})
    repository.commit("hooks: be evil")
    before = disk_usage(workspace.cache)
    result = build(build_job(candidate(), trusted=False), workspace)
    assert result.failure and result.failure.kind is ErrorKind.USER, result.failure
    assert result.failure.summary.startswith(summary)
    assert disk_usage(workspace.cache) - before < 16 * MIB
    assert list((workspace.cache / "scratch").iterdir()) == []


def test_sources_of_modules_are_not_written_through_planted_links(
    workspace: Workspace, build_job, repository, candidate, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    repository.write(
        {"hooks.mk": f"modules_install: evil\nevil:\n\t@rm -rf /modules/load; ln -s {victim} /modules/load\n"}
    )
    repository.commit("hooks: plant a link")
    modules = {"load": {"Kbuild": "obj-m := load.o\n", "load.c": "int load;\n"}}
    result = passed(build(build_job(candidate(), trusted=False, modules=modules), workspace))
    assert list(victim.iterdir()) == []
    assert list(result.failed_modules) == ["load"]


def test_build_without_bounded_files_is_refused_unless_accepted(
    base: Source, workspace: Workspace, build_job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(volume, "physical_memory", lambda: 4 * GIB)
    result = build(build_job(base), workspace)
    assert result.failure and result.failure.kind is ErrorKind.INFRASTRUCTURE
    assert result.failure.summary == "the sandbox needs up to 4096 MiB of memory for files; this machine has 4096 MiB"
    assert "WQLAB_SANDBOX_WATCHED" in result.failure.advice
    monkeypatch.setenv("WQLAB_SANDBOX_WATCHED", "1")
    passed(build(build_job(base), workspace))
