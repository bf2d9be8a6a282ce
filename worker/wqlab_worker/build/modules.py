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
    """Return a file for the device for each module: NAME.ko, or NAME.absent with the reason in one line.

    `fetch` returns the path of an artifact on this machine, after checking its hash.
    """
    files = {}
    for name in names:
        if name in kernel.modules:
            files[f"{name}.ko"] = _content(kernel.modules[name], fetch, SIZE_LIMIT)
        elif name in kernel.failed_modules:
            reason = f"module {name} does not build against this kernel: {kernel.failed_modules[name]}"
            files[f"{name}.absent"] = f"{reason}\n".encode()
        elif kernel.own_modules and (own := _from_tar(fetch(kernel.own_modules), name)) is not None:
            files[f"{name}.ko"] = own
        else:
            files[f"{name}.absent"] = f"this kernel has no module {name}\n".encode()
    return files


def _from_tar(path: Path, name: str) -> bytes | None:
    """Return the content of NAME.ko in the archive of a kernel's own modules; None if it has none or is unreadable.

    A compressed archive counts as unreadable; tuxmake makes none here.
    """
    file_name = f"{name}.ko".replace("-", "_")
    with suppress(tarfile.TarError), path.open("rb") as archive:
        reader = TarReader(archive, total_bytes=ARCHIVE_LIMIT, members=ARCHIVE_MEMBERS)
        for member in reader:
            file = PurePosixPath(member.name).name.replace("-", "_")
            if file == file_name and member.isreg():
                return reader.read(SIZE_LIMIT)
    return None


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
