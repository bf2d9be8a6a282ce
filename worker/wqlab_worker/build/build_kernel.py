"""Build one kernel with tuxmake in the sandbox and keep the result under its content key."""

from __future__ import annotations

import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from wqlab_contracts.enums import ArtifactKind, Outcome
from wqlab_contracts.keys import build_key, in_merge_order
from wqlab_contracts.linear_patterns import LinearPattern
from wqlab_contracts.messages import BuildJob, BuildResult, Failure

from ..apply.checkout import checked_out
from ..failures import InfrastructureError, JobError, UserError
from ..limits import GIB, Limits, Stop
from ..retention import make_space
from ..sandbox import TOOLS, Finished, Sandbox, interpreter
from ..volume import Volume, file_limit, open_volume_unless_watched
from ..workspace import Progress, Workspace, collect, free_bytes, no_progress, open_regular
from . import build_log, kconfig, objects, source_archive, workqueue_offsets
from .build_id import read_build_id
from .content_digest import content_digest
from .kept_builds import build_folder, finished_build, products
from .link_layouts import LayoutLinker
from .modules import MODULES, BuiltModules, build_modules, write_sources
from .reproduce import BUILD, IDENTITY, OUT, reproducer
from .steps import expected_steps, remember_steps
from .toolchain import cross_prefix, toolchain_identity, write_compilers

CONFIG, CCACHE, COMPILERS = "/config", "/ccache", "/compilers"
LIMITS = Limits(wall_s=2 * 3600.0, disk_bytes=3 * GIB)
SPACE_NEEDED = 4 * GIB
SPACE_EXHAUSTED = 64 << 20
CCACHE_SIZE = "5G"
TOP_LEVEL_LIMIT = 500
_WRITABLE = {build_log.SOURCE: "source", BUILD: "build", OUT: "out", MODULES: "modules"}
"""Path inside the sandbox -> name of each folder in which a build writes."""
_CCACHE_LINE = 4096
_UNPRINTABLE = LinearPattern(r"[^\x20-\x7e]+")


def build(job: BuildJob, workspace: Workspace, progress: Progress = no_progress) -> BuildResult:
    """Build the job's kernel unless this machine already has it.

    The files are in `build_folder(workspace, job.key)`; `workspace.path_of(artifact)` finds each by its hash. The call
    blocks while another worker of the machine builds the same key. A failure is returned in the result; only exceptions
    of `progress` are propagated.
    """
    try:
        _check(job)
        with workspace.lock(
            f"build-{job.key}", lambda: progress("waiting for another worker that builds this kernel", 0, 0)
        ):
            workspace.use(build_folder(workspace, job.key))
            if (found := finished_build(workspace, job.key)) is not None:
                return found
            return _Build(job, workspace, progress).run()
    except JobError as error:
        return BuildResult(outcome=Outcome.FAILED, failure=error.failure, reproducer=reproducer(job))


def _check(job: BuildJob) -> None:
    """Raise InfrastructureError if this worker cannot build the job, or the job's key is wrong."""
    try:
        key = build_key(
            job.source.tree_oid, job.recipe, job.arch, job.fragments, job.toolchain, job.modules, job.layouts
        )
    except ValueError as error:
        raise InfrastructureError(f"the build job does not match its recipe: {error}") from error
    if key != job.key:
        raise InfrastructureError(f"the build job has key {job.key}, but its content has key {key}")
    compiler = cross_prefix(job.arch) + job.recipe.toolchain
    if compiler.endswith("gcc") and not shutil.which(compiler, path="/usr/bin"):
        raise InfrastructureError(
            f"this worker has no compiler for {job.arch}: {compiler} is missing",
            advice=f"Run `make {job.arch}` in the worker's checkout to install it.",
        )
    installed = toolchain_identity(job.recipe.toolchain)
    if installed != job.toolchain:
        raise InfrastructureError(
            f"this worker has another compiler than the build needs: {installed}, not {job.toolchain}",
            advice="Start a build worker with that compiler, or submit again to build with this one.",
        )


class _Build:
    """A single build, from source to kept result."""

    def __init__(self, job: BuildJob, workspace: Workspace, progress: Progress) -> None:
        self.job = job
        self.workspace = workspace
        self.progress = progress
        # A bundle holds commits that are in no operator's tree, and neither are those of a user's URL.
        self.trusted = job.trusted and job.source.bundle is None and job.source.tree.origin == "operator"
        self.steps = 0
        self.expected = expected_steps(workspace, job)
        self.file = ""
        self.places: dict[str, Path] = {}
        """Path inside the sandbox -> folder of this machine, for all that the build writes."""

    def run(self) -> BuildResult:
        started = time.monotonic()
        make_space(self.workspace, SPACE_NEEDED)
        free = free_bytes(self.workspace.builds)
        if free < SPACE_NEEDED:
            raise InfrastructureError(
                f"only {free >> 20} MiB are free in {self.workspace.cache}; a build needs {SPACE_NEEDED >> 20} MiB",
                advice="Free some space, or set WQLAB_CACHE to a folder on a larger filesystem.",
            )
        with (
            self.workspace.temporary("build") as folder,
            checked_out(self.job.source, self.workspace, self.progress) as source,
            open_volume_unless_watched(LIMITS) as volume,
        ):
            for name in ("config", "compilers", "result"):
                (folder / name).mkdir()
            self.places = {inside: self._writable(name, folder, volume) for inside, name in _WRITABLE.items()}
            write_compilers(folder / "compilers", self.job.arch, self.job.recipe.toolchain)
            for name, text in self._fragment_files():
                (folder / "config" / name).write_text(text)
            write_sources(self.job, self.places[MODULES])
            if base_key := objects.restore_base(self.workspace, self.job, source, self.places[BUILD]):
                self.expected = 0  # unknown: make compiles only what the series changes
            sandbox = self._sandbox(source.files, folder, volume)
            finished = self._compile(sandbox, folder)
            try:
                self._check_finished(finished, folder / "result" / "build.log")
                self._report_modules()
                with ThreadPoolExecutor(1) as beside:
                    packed = beside.submit(source_archive.pack, sandbox)
                    modules = build_modules(
                        self.job, sandbox, self.places[MODULES], folder / "result", self._report_modules
                    )
                    packed.result()
                result = self._collect(folder, modules, sandbox, started)
            except JobError as error:
                return self._failed(folder, error.failure, time.monotonic() - started)
            if self.trusted and self.job.layouts == 1:  # the other layouts have replaced files of this folder
                objects.keep(self.workspace, self.job.key, self.places[BUILD])
            (folder / "result" / "result.json").write_text(result.model_dump_json(indent=1))
            target = build_folder(self.workspace, self.job.key)
            if target.exists():  # damaged; see finished_build
                target.rename(folder / "incomplete")
            (folder / "result").rename(target)
        if not base_key:
            remember_steps(self.workspace, self.job, self.steps)
        return result

    def _writable(self, name: str, folder: Path, volume: Volume | None) -> Path:
        """Make a folder in which the build writes: in the volume, or on disk if there is none."""
        if volume is not None:
            return volume.folder(name)
        (folder / name).mkdir()
        return folder / name

    def _sandbox(self, source: Path, folder: Path, volume: Volume | None) -> Sandbox:
        ccache = self.workspace.ccache
        environment = {
            # The wrappers have the compilers' own names, so tuxmake and make need no setting for ccache.
            "PATH": f"{COMPILERS}:/usr/bin:/usr/sbin",
            "PYTHONUNBUFFERED": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "CCACHE_DIR": CCACHE,
            "CCACHE_TEMPDIR": "/tmp",  # noqa: S108 - the sandbox's own
            "CCACHE_MAXSIZE": CCACHE_SIZE,
            "CCACHE_COMPILERCHECK": "content",
            # Kbuild lets gcc list each file's headers anyway; with that list ccache need not preprocess files.
            "CCACHE_DEPEND": "1",
            "CCACHE_STATSLOG": f"{OUT}/ccache.log",
            **({} if self.trusted else {"CCACHE_READONLY": "1"}),
        }
        return Sandbox(
            read_only={
                **_top_level(source, self.places[build_log.SOURCE]),
                CONFIG: folder / "config",
                COMPILERS: folder / "compilers",
                **interpreter(),
                **({} if self.trusted else {CCACHE: ccache}),
            },
            writable=self.places,
            shared={CCACHE: ccache} if self.trusted else {},
            environment=environment,
            limits=LIMITS,
            volume=volume,
        )

    def _compile(self, sandbox: Sandbox, folder: Path) -> Finished:
        command = [f"{TOOLS}/bin/python", "-m", "tuxmake", *self._tuxmake(build_log.SOURCE, BUILD, OUT, CONFIG)]
        self.progress("configuring", 0, self.expected)
        with (folder / "result" / "build.log").open("wb") as log:
            return sandbox.run(command, log=log, on_line=self._count_step, on_tick=self._report_compiling)

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

    def _count_step(self, line: str) -> None:
        file = build_log.parse_step(line)
        if file is not None:
            self.steps += 1
            self.file = file

    def _report_compiling(self) -> None:
        self.progress(f"compiling {self.file}", min(self.steps, self.expected), self.expected)

    def _report_linking(self) -> None:
        self.progress("linking the other layouts", self.expected, self.expected)

    def _report_modules(self) -> None:
        self.progress("building the lab's modules", self.expected, self.expected)

    # --- the result ---------------------------------------------------------------------------------------------

    def _check_finished(self, finished: Finished, log: Path) -> None:
        """Raise UserError or InfrastructureError if the compilation failed."""
        if finished.exit_code == 0 and finished.stopped is None:
            return
        tail = build_log.last_lines(log)
        if free_bytes(self.workspace.builds) < SPACE_EXHAUSTED:
            raise InfrastructureError("the disk is full", excerpt=tail, advice="Free space under WQLAB_CACHE.")
        if finished.stopped is not None:
            # For a trusted tree, the lab's limits are too low; for a series, the series is at fault.
            at_fault = self.trusted or finished.stopped is Stop.MACHINE
            kind = InfrastructureError if at_fault else UserError
            files = file_limit(LIMITS.disk_bytes)
            raise kind(_STOPPED[finished.stopped].format(limits=LIMITS, files=files), excerpt=tail)
        first, excerpt = build_log.first_errors(build_log.read_lines(log))
        summary = f"the kernel does not compile: {first}" if first else "the kernel does not compile"
        raise UserError(summary[:500], excerpt=excerpt)

    def _failed(self, folder: Path, failure: Failure, duration_s: float) -> BuildResult:
        """Return the result of a failed build, with the log of the compilation."""
        return BuildResult(
            outcome=Outcome.FAILED,
            failure=failure,
            reproducer=reproducer(self.job),
            duration_s=round(duration_s, 1),
            warnings=build_log.warnings(build_log.read_lines(folder / "result" / "build.log")),
            artifacts=[self.workspace.keep(folder / "result" / "build.log", ArtifactKind.BUILD_LOG, "build.log")],
        )

    def _collect(self, folder: Path, modules: BuiltModules, sandbox: Sandbox, started: float) -> BuildResult:
        result = folder / "result"
        artifacts = []
        for product in products(self.job.arch):
            try:
                collect(self.places[product.folder], product.path, result / product.name, product.limit)
            except OSError as error:
                if product.required or not isinstance(error, FileNotFoundError):
                    raise UserError(f"the build left no usable {product.path}: {error}") from error
                continue
            artifacts.append((product.kind, product.name))
        try:
            build_id = read_build_id(result / "vmlinux")
        except ValueError as error:
            raise UserError(f"vmlinux has no usable GNU build-id: {error}") from error
        config = (result / "config").read_text(errors="replace")
        unmet = kconfig.unmet_options((text for _, text in self._fragment_files()), config)
        warnings = build_log.warnings(build_log.read_lines(result / "build.log"))
        with (result / "build.log").open("a") as log:
            log.writelines(f"{line}\n" for line in modules.log)
            log.writelines(f"wqlab: not in the finished configuration: {option}\n" for option in unmet)
        artifacts += [(ArtifactKind.MODULE, name) for name in modules.files]
        artifacts.append((ArtifactKind.BUILD_LOG, "build.log"))
        self.progress("reading the debug information", self.expected, self.expected)
        (result / workqueue_offsets.NAME).write_text(workqueue_offsets.read_layout(result / "vmlinux"))
        artifacts.append((ArtifactKind.WORKQUEUE_LAYOUT, workqueue_offsets.NAME))
        own_modules = result / "modules.tar" if (ArtifactKind.MODULES, "modules.tar") in artifacts else None
        lab_modules = [result / name for name in modules.files]
        duration_s = time.monotonic() - started
        release = _short_text(self.places[BUILD], "include/config/kernel.release", folder)
        linker = LayoutLinker(self.job, sandbox, self.places[BUILD], result, self.workspace, self._report_linking)
        layouts = linker.link(own_modules, lab_modules)
        return BuildResult(
            outcome=Outcome.PASSED,
            build_id_gnu=build_id,
            content_sha256=content_digest(result / "kernel", own_modules, lab_modules),
            release=release,
            compiler=kconfig.parse_options(config).get("CC_VERSION_TEXT", "").strip('"') or self.job.toolchain,
            reproducer=reproducer(self.job),
            duration_s=round(duration_s, 1),
            ccache=_ccache_counts(self.places[OUT]),
            warnings=warnings,
            unmet_options=unmet,
            failed_modules=modules.failed,
            layouts=layouts,
            artifacts=[self.workspace.keep(result / name, kind, name) for kind, name in artifacts],
        )


_STOPPED = {
    Stop.TIME: "the build did not finish within {limits.wall_s:.0f} s",
    Stop.DISK: "the build wrote more than {limits.disk_bytes} bytes",
    Stop.TMP: "the build wrote more than {limits.tmp_bytes} bytes to /tmp",
    Stop.FILES: "the build made more than {files} files",
    Stop.MEMORY: "the build used more than {limits.memory_bytes} bytes of memory",
    Stop.PROCESSES: "the build started more than {limits.processes} processes",
    Stop.MACHINE: "the machine ran out of memory during the compilation",
}


def _top_level(source: Path, root: Path) -> dict[str, Path]:
    """Return the read-only binds with which the temporary, writable folder `root` looks like `source`.

    The kernel's merge_config.sh creates a temporary file in the top folder; nothing below it is writable.
    """
    binds = {}
    for entry in sorted(source.iterdir()):
        if entry.is_symlink():
            (root / entry.name).symlink_to(entry.readlink())
        else:
            binds[f"{build_log.SOURCE}/{entry.name}"] = entry
    if len(binds) > TOP_LEVEL_LIMIT:
        raise UserError(
            f"{len(binds)} files and folders in the tree's top folder; at most {TOP_LEVEL_LIMIT} are allowed"
        )
    return binds


def _short_text(root: Path, relative: str, folder: Path) -> str:
    """Return the text of a small file that the build made, as one line; empty if there is none."""
    copy = folder / "short-text"
    with suppress(OSError):
        collect(root, relative, copy, 4096)
        return _one_line(copy.read_text(errors="replace"))
    return ""


def _one_line(text: str) -> str:
    return _UNPRINTABLE.sub(" ", text).strip()[:200]


def _ccache_counts(out: Path) -> dict[str, int]:
    """Return the numbers of ccache's hits and misses, from its log in the sandbox."""
    names = (b"direct_cache_hit", b"preprocessed_cache_hit", b"cache_miss")
    counts = dict.fromkeys(names, 0)
    with suppress(OSError), os.fdopen(open_regular(out, "ccache.log"), "rb") as log:
        left = 64 << 20
        while left > 0 and (line := log.readline(_CCACHE_LINE)):
            left -= len(line)
            if (word := line.rstrip(b"\n")) in counts:
                counts[word] += 1
        return {name.decode(): counts[name] for name in names}
    return {}
