"""Build the lab's kernel modules (kernels/modules) against a kernel, and choose the module files for a device.

A module that does not build against a kernel does not fail the kernel's build. The result has the reason, and plans
that need the module are unsupported for this kernel.
"""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from wqlab_contracts.messages import Artifact, BuildJob, Kernel, RunJob

from ..failures import InfrastructureError
from ..sandbox import Sandbox
from ..tar_reader import TarReader
from ..workspace import collect
from . import build_log, workqueue_offsets
from .reproduce import BUILD, IDENTITY
from .toolchain import PREFIX

MODULES = "/modules"
"""Folder in the sandbox with the modules' sources, where they are built."""
SIZE_LIMIT = 64 << 20
REASON_LIMIT = 300
LAYOUT_LIMIT = 64 << 10
ARCHIVE_LIMIT = 1 << 30
ARCHIVE_MEMBERS = 100_000
"""Most headers in the archive of a kernel's own modules; a distribution has 5 000."""
_DEPENDENCIES = "modules.dep"
_BUILTIN = "modules.builtin"
"""Lists in the archive of a kernel's own modules. Lines of the first are `PATH: PATH...`, of the second `PATH`."""
LIST_LIMIT = 4 << 20
DEPENDENCY_LIMIT = 100
"""Most modules that come with one module; the most of a distribution are some 30."""
LOG_LIMIT = 256 << 10
"""Bytes of output kept of each module."""


@dataclass
class BuiltModules:
    """The result of building modules."""

    files: list[str] = field(default_factory=list)
    """NAME.ko of each module that was built, in the folder of the result."""
    failed: dict[str, str] = field(default_factory=dict)
    """Module -> reason why it was not built."""
    log: list[str] = field(default_factory=list)
    """Output of make and messages of wqlab.

    It is kept apart from the kernel's log, whose warnings count for the series.
    """


def write_sources(job: BuildJob, folder: Path) -> None:
    """Write the sources of the job's modules into `folder`.

    Call it before any command of the build: one could replace a folder by a link to a folder of this machine.
    """
    for name, files in job.modules.items():
        for file, text in files.items():
            (folder / name / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / name / file).write_text(text)


def build_modules(
    job: BuildJob, sandbox: Sandbox, sources: Path, target: Path, on_tick: Callable[[], None]
) -> BuiltModules:
    """Build each module of the job in the `sandbox` that has built the kernel, into `target`/NAME.ko.

    `sources` is the folder bound as MODULES, in which `write_sources` has written. Raises InfrastructureError if the
    sandbox cannot be set up.
    """
    built = BuiltModules()
    quiet = replace(sandbox, limits=replace(sandbox.limits, log_bytes=LOG_LIMIT))
    for name in sorted(job.modules):
        output = target / f"{name}.log"
        with output.open("wb") as log:
            finished = quiet.run(_make_command(job, name), log=log, on_tick=on_tick)
        lines = list(build_log.read_lines(output))
        output.unlink()
        built.log += [f"wqlab: module {name}", *lines]
        if finished.exit_code == 0 and finished.stopped is None:
            reason = _collect(sources, name, target)
        else:
            reason = finished.stopped.value if finished.stopped else build_log.first_errors(lines)[0]
            reason = reason or f"make ended with exit status {finished.exit_code}"
        if reason is None:
            built.files.append(f"{name}.ko")
            continue
        built.failed[name] = reason.replace(f"{MODULES}/{name}/", "")[:REASON_LIMIT]
        built.log.append(f"wqlab: module {name} does not build against this kernel: {built.failed[name]}")
    return built


def _collect(sources: Path, name: str, target: Path) -> str | None:
    """Copy the built module to `target`; return None, or the reason if make left no usable module."""
    try:
        collect(sources, f"{name}/{name}.ko", target / f"{name}.ko", SIZE_LIMIT)
    except OSError as error:
        return f"its Kbuild makes no usable {name}.ko: {error}"
    return None


def _make_command(job: BuildJob, name: str) -> list[str]:
    toolchain = job.recipe.toolchain
    variables = {
        "O": BUILD,
        "M": f"{MODULES}/{name}",
        "ARCH": job.arch,
        "CROSS_COMPILE": PREFIX[job.arch],
        **({"CC": toolchain, "HOSTCC": toolchain} if toolchain.startswith("clang") else {}),
        **IDENTITY,
    }
    return ["make", "-C", build_log.SOURCE, *(f"{key}={value}" for key, value in variables.items()), "modules"]


def files_for_device(names: list[str], kernel: Kernel, fetch: Callable[[Artifact], Path]) -> dict[str, bytes]:
    """Return the files for the device for each module: NAME.ko, or NAME.absent with the reason in one line.

    A module of the kernel itself comes with the modules that it needs, and NAME.depends lists those in the order in
    which they are loaded, one a line. One that is built into the kernel is an empty NAME.builtin. `fetch` returns the
    path of an artifact on this machine, after checking its hash.
    """
    files = {}
    own = _OwnModules(fetch(kernel.own_modules) if kernel.own_modules else None)
    for name in names:
        if name in kernel.modules:
            files[f"{name}.ko"] = _content(kernel.modules[name], fetch, SIZE_LIMIT)
        elif name in kernel.failed_modules:
            reason = f"module {name} does not build against this kernel: {kernel.failed_modules[name]}"
            files[f"{name}.absent"] = f"{reason}\n".encode()
        else:
            files |= own.files(name)
    return files


class _OwnModules:
    """The archive of a kernel's own modules. One that is compressed or unreadable counts as empty.

    Names are those of `/sys/module`, which have no `-`.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lists: dict[str, list[str]] | None = None

    def files(self, name: str) -> dict[str, bytes]:
        """Return the files for the device for one module, and for the modules that it needs."""
        if self._lists is None:
            found = self._read({_DEPENDENCIES, _BUILTIN}, LIST_LIMIT)
            self._lists = {file: content.decode(errors="replace").splitlines() for file, content in found.items()}
        needed = self._dependencies(name)
        wanted = {f"{module}.ko" for module in (name, *needed)}
        found = self._read(wanted, SIZE_LIMIT)
        if f"{name}.ko" not in found:
            builtin = any(_module(line) == name for line in self._lists.get(_BUILTIN, []))
            return {f"{name}.builtin": b""} if builtin else {f"{name}.absent": _absent(name)}
        for module in needed:
            if f"{module}.ko" not in found:
                return {f"{name}.absent": _absent(f"{module}, which {name} needs")}
        return {
            **found,
            **({f"{name}.depends": "".join(f"{module}\n" for module in needed).encode()} if needed else {}),
        }

    def _dependencies(self, name: str) -> list[str]:
        """Return the modules that must be loaded before the module, in this order. The archive's list has them last."""
        assert self._lists is not None  # noqa: S101 - read by `files`
        for line in self._lists.get(_DEPENDENCIES, []):
            module, _, needed = line.partition(":")
            if _module(module) == name:
                return [_module(path) for path in reversed(needed.split()[:DEPENDENCY_LIMIT])]
        return []

    def _read(self, names: set[str], limit: int) -> dict[str, bytes]:
        """Return name -> content of these files; the first of each name, of at most `limit` bytes."""
        found: dict[str, bytes] = {}
        if self._path is None:
            return found
        with suppress(tarfile.TarError), self._path.open("rb") as archive:
            reader = TarReader(archive, total_bytes=ARCHIVE_LIMIT, members=ARCHIVE_MEMBERS)
            for member in reader:
                file = PurePosixPath(member.name).name.replace("-", "_")
                if file in names and file not in found and member.isreg():
                    found[file] = reader.read(limit)
                    if len(found) == len(names):
                        break
        return found


def _module(path: str) -> str:
    return PurePosixPath(path.strip()).name.removesuffix(".ko").replace("-", "_")


def _absent(name: str) -> bytes:
    return f"this kernel has no module {name}\n".encode()


def _content(artifact: Artifact, fetch: Callable[[Artifact], Path], limit: int) -> bytes:
    """Return the content of an artifact. Raises InfrastructureError if it has more than `limit` bytes."""
    if artifact.size > limit:
        raise InfrastructureError(f"{artifact.name} has {artifact.size} bytes; at most {limit} are read")
    with fetch(artifact).open("rb") as file:
        return file.read(limit)


def files_for_kernel(job: RunJob, kernel: Kernel, fetch: Callable[[Artifact], Path]) -> dict[str, bytes]:
    """Return the files that the device gets for this kernel, in addition to the plan's files."""
    files = dict(files_for_device(job.plan.modules, kernel, fetch))
    if kernel.workqueue_layout is not None:
        offsets = _content(kernel.workqueue_layout, fetch, LAYOUT_LIMIT).decode(errors="replace")
        files[workqueue_offsets.ON_DEVICE] = workqueue_offsets.for_device(offsets).encode()
    return files
