"""Builds one kernel: tuxmake in the sandbox, the compiler cache, a result that is found again by its content key."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import structlog

from wqlab_contracts.enums import ArtifactKind, Outcome
from wqlab_contracts.keys import build_key, in_merge_order
from wqlab_contracts.messages import BuildJob, BuildResult, Failure
from wqlab_contracts.specs import CpuArch

from ..apply.checkout import checked_out
from ..failures import InfrastructureError, JobError, UserError
from ..sandbox import GIB, TOOLS, Finished, Limits, Sandbox, Stop, interpreter
from ..workspace import Progress, Workspace, collect, free_bytes, has_hash, no_progress
from . import build_id as elf
from . import kconfig, objects, workqueue_offsets
from . import log as buildlog
from .modules import MODULES, BuiltModules, build_modules
from .reproduce import BUILD, IDENTITY, reproducer
from .toolchain import cross_prefix, toolchain_identity, write_compilers

log = structlog.get_logger()

OUT, CONFIG, CCACHE, COMPILERS = "/out", "/config", "/ccache", "/compilers"
LIMITS = Limits(wall_s=2 * 3600.0, disk_bytes=12 * GIB)
SPACE_NEEDED = 4 * GIB
SPACE_EXHAUSTED = 64 << 20
CCACHE_SIZE = "5G"
USUAL_STEPS = 2050
"""Lines of make's output that a `measure` kernel takes, for the first estimate; later ones use what was counted."""
TOP_LEVEL_LIMIT = 500

_IMAGE: dict[CpuArch, str] = {"x86_64": "arch/x86/boot/bzImage", "arm64": "arch/arm64/boot/Image.gz"}


@dataclass(frozen=True)
class _Product:
    """A file of the finished build: where the sandbox leaves it, what it is called here, how large it may be."""

    folder: str
    path: str
    kind: ArtifactKind
    name: str
    limit: int
    required: bool = True


def _products(arch: CpuArch) -> list[_Product]:
    return [
        _Product(BUILD, _IMAGE[arch], ArtifactKind.KERNEL, "kernel", GIB),
        _Product(BUILD, "vmlinux", ArtifactKind.VMLINUX, "vmlinux", 4 * GIB),
        _Product(BUILD, "System.map", ArtifactKind.SYSTEM_MAP, "System.map", GIB),
        _Product(BUILD, ".config", ArtifactKind.CONFIG, "config", 4 << 20),
        _Product(OUT, "metadata.json", ArtifactKind.METADATA, "metadata.json", 4 << 20),
        _Product(OUT, "modules.tar", ArtifactKind.MODULES, "modules.tar", GIB, required=False),
    ]


def build(job: BuildJob, workspace: Workspace, progress: Progress = no_progress) -> BuildResult:
    """Builds `job` unless this machine already has it; never fails by exception, except those of `progress`.

    The files are in `build_folder(workspace, job.key)`; `workspace.path_of(artifact)` finds each by its hash.
    Blocks while another worker of the machine builds the same key.
    """
    try:
        _check(job)
        with workspace.lock(f"build-{job.key}", lambda: progress("waiting for another worker that builds it", 0, 0)):
            if (found := finished_build(workspace, job.key)) is not None:
                # Said anew: the result may be that of an older release, whose command was another.
                return _with_layout(found, workspace, job.key).model_copy(update={"reproducer": reproducer(job)})
            return _Build(job, workspace, progress).run()
    except JobError as error:
        return BuildResult(outcome=Outcome.FAILED, failure=error.failure, reproducer=reproducer(job))


def build_folder(workspace: Workspace, key: str) -> Path:
    """Where the files of the build with this key are, once it passed."""
    return workspace.builds / key


def finished_build(workspace: Workspace, key: str) -> BuildResult | None:
    """The result of an earlier build with this key on this machine, marked as reused; None when there is none.

    A cache is no archive: a result that cannot be read, or a file that is gone or has other bytes than it was kept
    with, is no build either. Damaged files are removed, so that the next build enters its own.
    """
    stored = build_folder(workspace, key) / "result.json"
    try:
        result = BuildResult.model_validate_json(stored.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        log.error("stored build is damaged; building it again", path=str(stored), error=repr(error))
        return None
    required = {product.kind for product in _products("x86_64") if product.required}
    if result.outcome is not Outcome.PASSED or not required <= {artifact.kind for artifact in result.artifacts}:
        log.error("stored build is incomplete; building it again", path=str(stored))
        return None
    damaged = [artifact for artifact in result.artifacts if not has_hash(workspace.path_of(artifact), artifact.sha256)]
    for artifact in damaged:
        log.error("stored build is damaged; building it again", path=str(stored), file=artifact.name)
        workspace.path_of(artifact).unlink(missing_ok=True)
    return None if damaged else result.model_copy(update={"reused": True})


def _with_layout(found: BuildResult, workspace: Workspace, key: str) -> BuildResult:
    """A build that an older release made, with the layout that this one adds. No key changes, nothing is built anew."""
    if any(artifact.kind is ArtifactKind.WORKQUEUE_LAYOUT for artifact in found.artifacts):
        return found
    folder = build_folder(workspace, key)
    with workspace.temporary("layout") as scratch:
        (scratch / workqueue_offsets.NAME).write_text(workqueue_offsets.resolve(folder / "vmlinux"))
        (scratch / workqueue_offsets.NAME).replace(folder / workqueue_offsets.NAME)
        kept = workspace.keep(folder / workqueue_offsets.NAME, ArtifactKind.WORKQUEUE_LAYOUT, workqueue_offsets.NAME)
        result = found.model_copy(update={"artifacts": [*found.artifacts, kept]})
        (scratch / "result.json").write_text(result.model_copy(update={"reused": False}).model_dump_json(indent=1))
        (scratch / "result.json").replace(folder / "result.json")
    return result


def _check(job: BuildJob) -> None:
    try:
        key = build_key(job.source.tree_oid, job.recipe, job.arch, job.fragments, job.toolchain, job.modules)
    except ValueError as error:
        raise InfrastructureError(f"the build is not its recipe's: {error}") from error
    if key != job.key:
        raise InfrastructureError(f"the build's key {job.key} is not that of its content, {key}")
    compiler = cross_prefix(job.arch) + job.recipe.toolchain
    if compiler.endswith("gcc") and not shutil.which(compiler, path="/usr/bin"):
        raise InfrastructureError(
            f"this worker has no compiler for {job.arch}: {compiler} is missing",
            advice=f"`make {job.arch}` in the worker's checkout installs it.",
        )
    here = toolchain_identity(job.recipe.toolchain)
    if here != job.toolchain:
        raise InfrastructureError(
            f"this worker has another compiler than the build is for: {here}, not {job.toolchain}",
            advice="Give the build to a worker with that compiler, or submit again to compare with this one.",
        )


class _Build:
    """One build from source to kept result."""

    def __init__(self, job: BuildJob, workspace: Workspace, progress: Progress) -> None:
        self.job = job
        self.workspace = workspace
        self.progress = progress
        # A bundle holds what no operator's tree has, whoever says that it is trusted.
        self.trusted = job.trusted and job.source.bundle is None
        self.steps = 0
        self.expected = _expected_steps(workspace, job)
        self.file = ""

    def run(self) -> BuildResult:
        started = time.monotonic()
        free = free_bytes(self.workspace.builds)
        if free < SPACE_NEEDED:
            raise InfrastructureError(
                f"{free >> 20} MiB left in {self.workspace.cache}; a build needs {SPACE_NEEDED >> 20} MiB",
                advice="Free some space, or point WQLAB_CACHE at a larger filesystem.",
            )
        with (
            self.workspace.temporary("build") as folder,
            checked_out(self.job.source, self.workspace, self.progress) as source,
        ):
            for name in ("source", "build", "out", "config", "modules", "compilers", "result"):
                (folder / name).mkdir()
            write_compilers(folder / "compilers", self.job.arch, self.job.recipe.toolchain)
            for name, text in self._fragment_files():
                (folder / "config" / name).write_text(text)
            if begun := objects.begin_with(self.workspace, self.job, source, folder / "build"):
                self.expected = 0  # unknown: make goes through what the series touches
            sandbox = self._sandbox(source.files, folder)
            finished = self._compile(sandbox, folder)
            lines = (folder / "result" / "build.log").read_text(errors="replace").splitlines()
            try:
                self._raise_for(finished, lines)
                self.progress("building the lab's modules", self.expected, self.expected)
                modules = build_modules(self.job, sandbox, folder / "modules", folder / "result", self._tick)
                result = self._collect(folder, lines, modules, time.monotonic() - started)
            except JobError as error:
                return self._failed(folder, lines, error.failure, time.monotonic() - started)
            if self.trusted:
                objects.keep(self.workspace, self.job.key, folder / "build")
            (folder / "result" / "result.json").write_text(result.model_dump_json(indent=1))
            target = build_folder(self.workspace, self.job.key)
            if target.exists():  # damaged; see finished_build
                target.rename(folder / "incomplete")
            (folder / "result").rename(target)
        if not begun:
            _remember_steps(self.workspace, self.job, self.steps)
        return result

    def _sandbox(self, source: Path, folder: Path) -> Sandbox:
        ccache = self.workspace.ccache
        environment = {
            # Compilers found here are cached; tuxmake and make see ordinary names.
            "PATH": f"{COMPILERS}:/usr/bin:/usr/sbin",
            "PYTHONUNBUFFERED": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "CCACHE_DIR": CCACHE,
            "CCACHE_TEMPDIR": "/tmp",  # noqa: S108 - the sandbox's own
            "CCACHE_MAXSIZE": CCACHE_SIZE,
            "CCACHE_COMPILERCHECK": "content",
            # Kbuild has gcc list each file's headers anyway: with that list no file is preprocessed twice.
            "CCACHE_DEPEND": "1",
            "CCACHE_STATSLOG": f"{OUT}/ccache.log",
            **({} if self.trusted else {"CCACHE_READONLY": "1"}),
        }
        return Sandbox(
            read_only={
                **_top_level(source, folder / "source"),
                CONFIG: folder / "config",
                COMPILERS: folder / "compilers",
                **interpreter(),
                **({} if self.trusted else {CCACHE: ccache}),
            },
            writable={
                buildlog.SOURCE: folder / "source",
                BUILD: folder / "build",
                OUT: folder / "out",
                MODULES: folder / "modules",
            },
            shared={CCACHE: ccache} if self.trusted else {},
            environment=environment,
            limits=LIMITS,
        )

    def _compile(self, sandbox: Sandbox, folder: Path) -> Finished:
        command = [f"{TOOLS}/bin/python", "-m", "tuxmake", *self._tuxmake(buildlog.SOURCE, BUILD, OUT, CONFIG)]
        self.progress("configuring", 0, self.expected)
        with (folder / "result" / "build.log").open("wb") as log:
            return sandbox.run(command, log=log, on_line=self._line, on_tick=self._report)

    def _tuxmake(self, source: str, build_dir: str, out: str, config: str) -> list[str]:
        recipe = self.job.recipe
        arguments = ["--runtime=null", f"--directory={source}", f"--target-arch={self.job.arch}"]
        arguments += [f"--toolchain={recipe.toolchain}", "--compression-type=none", "--verbose", "--fail-fast"]
        arguments += [f"--jobs={self.workspace.jobs}", f"--build-dir={build_dir}", f"--output-dir={out}"]
        arguments += [f"--kconfig={recipe.base_config}"]
        arguments += [f"--kconfig-add={config}/{name}" for name, _ in self._fragment_files()]
        arguments += [f"--environment={name}={value}" for name, value in IDENTITY.items()]
        return [*arguments, "config", "kernel", "modules"]

    def _fragment_files(self) -> list[tuple[str, str]]:
        ordered = in_merge_order(self.job.recipe, self.job.arch, self.job.fragments)
        return [(f"{index}-{name}.config", text) for index, (name, text) in enumerate(ordered)]

    def _line(self, line: str) -> None:
        file = buildlog.step(line)
        if file is not None:
            self.steps += 1
            self.file = file

    def _report(self) -> None:
        self.progress(f"compiling {self.file}", min(self.steps, self.expected), self.expected)

    def _tick(self) -> None:
        self.progress("building the lab's modules", self.expected, self.expected)

    # --- how it ended -------------------------------------------------------------------------------------------

    def _raise_for(self, finished: Finished, lines: list[str]) -> None:
        if finished.exit_code == 0 and finished.stopped is None:
            return
        tail = "\n".join(lines[-buildlog.EXCERPT_LINES :])
        if free_bytes(self.workspace.builds) < SPACE_EXHAUSTED:
            raise InfrastructureError("the disk is full", excerpt=tail, advice="Free space under WQLAB_CACHE.")
        if finished.stopped is not None:
            # A trusted tree that needs more than a build may have is the lab's problem, a series that does is not.
            kind = InfrastructureError if self.trusted else UserError
            raise kind(_STOPPED[finished.stopped].format(limits=LIMITS), excerpt=tail)
        if finished.out_of_memory_kills:
            raise InfrastructureError("the machine ran out of memory while it compiled", excerpt=tail)
        first, excerpt = buildlog.first_errors(lines)
        summary = f"the kernel does not compile: {first}" if first else "the kernel does not compile"
        raise UserError(summary[:500], excerpt=excerpt)

    def _failed(self, folder: Path, lines: list[str], failure: Failure, duration_s: float) -> BuildResult:
        """A build that went as far as the compiler is read by its log, most of all when it failed."""
        return BuildResult(
            outcome=Outcome.FAILED,
            failure=failure,
            reproducer=reproducer(self.job),
            duration_s=round(duration_s, 1),
            warnings=buildlog.warnings(lines),
            artifacts=[self.workspace.keep(folder / "result" / "build.log", ArtifactKind.BUILD_LOG, "build.log")],
        )

    def _collect(self, folder: Path, lines: list[str], modules: BuiltModules, duration_s: float) -> BuildResult:
        result, inside = folder / "result", {BUILD: folder / "build", OUT: folder / "out"}
        artifacts = []
        for product in _products(self.job.arch):
            try:
                collect(inside[product.folder], product.path, result / product.name, product.limit)
            except OSError as error:
                if product.required or not isinstance(error, FileNotFoundError):
                    raise UserError(f"the build left no usable {product.path}: {error}") from error
                continue
            artifacts.append((product.kind, product.name))
        try:
            build_id = elf.build_id(result / "vmlinux")
        except ValueError as error:
            raise UserError(f"vmlinux has no usable GNU build-id: {error}") from error
        config = (result / "config").read_text(errors="replace")
        unmet = kconfig.unmet((text for _, text in self._fragment_files()), config)
        with (result / "build.log").open("a") as log:
            log.writelines(f"{line}\n" for line in modules.log)
            log.writelines(f"wqlab: not in the finished configuration: {option}\n" for option in unmet)
        artifacts += [(ArtifactKind.MODULE, name) for name in modules.files]
        artifacts.append((ArtifactKind.BUILD_LOG, "build.log"))
        self.progress("reading the debug information", self.expected, self.expected)
        (result / workqueue_offsets.NAME).write_text(workqueue_offsets.resolve(result / "vmlinux"))
        artifacts.append((ArtifactKind.WORKQUEUE_LAYOUT, workqueue_offsets.NAME))
        return BuildResult(
            outcome=Outcome.PASSED,
            build_id_gnu=build_id,
            release=_short_text(inside[BUILD], "include/config/kernel.release"),
            compiler=kconfig.options(config).get("CC_VERSION_TEXT", "").strip('"') or self.job.toolchain,
            reproducer=reproducer(self.job),
            duration_s=round(duration_s, 1),
            ccache=_ccache_counts(inside[OUT]),
            warnings=buildlog.warnings(lines),
            unmet_options=unmet,
            failed_modules=modules.failed,
            artifacts=[self.workspace.keep(result / name, kind, name) for kind, name in artifacts],
        )


_STOPPED = {
    Stop.TIME: "the build did not finish within {limits.wall_s:.0f} s",
    Stop.DISK: "the build wrote more than {limits.disk_bytes} bytes",
    Stop.MEMORY: "the build used more than {limits.memory_bytes} bytes of memory",
    Stop.PROCESSES: "the build started more than {limits.processes} processes",
}


def _top_level(source: Path, root: Path) -> dict[str, Path]:
    """What to bind read-only so that `root`, writable and thrown away, looks like `source`.

    The kernel's merge_config.sh wants to create a temporary file in the top folder; nothing below it is writable.
    """
    bound = {}
    for entry in sorted(source.iterdir()):
        if entry.is_symlink():
            (root / entry.name).symlink_to(entry.readlink())
        else:
            bound[f"{buildlog.SOURCE}/{entry.name}"] = entry
    if len(bound) > TOP_LEVEL_LIMIT:
        raise UserError(f"{len(bound)} files and folders in the tree's top folder; at most {TOP_LEVEL_LIMIT} are built")
    return bound


def _short_text(root: Path, relative: str) -> str:
    copy = root.parent / "short-text"
    copy.unlink(missing_ok=True)
    with suppress(OSError):
        collect(root, relative, copy, 4096)
        return _one_line(copy.read_text(errors="replace"))
    return ""


def _one_line(text: str) -> str:
    return re.sub(r"[^\x20-\x7e]+", " ", text).strip()[:200]


def _ccache_counts(out: Path) -> dict[str, int]:
    """How often ccache hit and missed, from the log that it wrote in the sandbox."""
    copy = out.parent / "ccache.log"
    with suppress(OSError):
        collect(out, "ccache.log", copy, 64 << 20)
        counts = Counter(copy.read_text(errors="replace").split("\n"))
        return {name: counts[name] for name in ("direct_cache_hit", "preprocessed_cache_hit", "cache_miss")}
    return {}


# --- how long builds take ---------------------------------------------------------------------------------------


def _steps_file(workspace: Workspace) -> Path:
    return workspace.builds / "steps.json"


def _steps_name(job: BuildJob) -> str:
    return f"{job.recipe.name}-{job.arch}-{'emulated' if job.emulated else 'hardware'}"


def _known_steps(workspace: Workspace) -> dict[str, int]:
    with suppress(OSError, ValueError):
        return dict(json.loads(_steps_file(workspace).read_text()))
    return {}


def _expected_steps(workspace: Workspace, job: BuildJob) -> int:
    return int(_known_steps(workspace).get(_steps_name(job), USUAL_STEPS))


def _remember_steps(workspace: Workspace, job: BuildJob, steps: int) -> None:
    fresh = _steps_file(workspace).with_suffix(f".{os.getpid()}")
    fresh.write_text(json.dumps(_known_steps(workspace) | {_steps_name(job): steps}))
    fresh.rename(_steps_file(workspace))
