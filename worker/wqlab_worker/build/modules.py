"""The lab's own kernel modules (kernels/modules): built against a kernel, and given to the device that runs it.

A module that does not build against a kernel is no fault of that kernel: the build passes without it and says why, and
so does every plan that needs it.
"""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from wqlab_contracts.messages import Artifact, BuildJob, Kernel, RunJob

from ..sandbox import Sandbox
from ..workspace import collect
from . import log as buildlog
from . import workqueue_offsets
from .reproduce import BUILD, IDENTITY
from .toolchain import PREFIX

MODULES = "/modules"
"""Where the sandbox shows the modules' sources, and builds them."""
SIZE_LIMIT = 64 << 20
REASON_LIMIT = 300


@dataclass
class BuiltModules:
    files: list[str] = field(default_factory=list)
    """NAME.ko of each that was built, in the result's folder."""
    failed: dict[str, str] = field(default_factory=dict)
    """Name -> why there is no NAME.ko."""
    log: list[str] = field(default_factory=list)
    """What make printed, and what was made of it; apart from the kernel's log, whose warnings are the series'."""


def build_modules(
    job: BuildJob, sandbox: Sandbox, sources: Path, target: Path, on_tick: Callable[[], None]
) -> BuiltModules:
    """Builds each of the job's modules in the `sandbox` that has just built the kernel, into `target`/NAME.ko.

    `sources` is what the sandbox shows as MODULES. Raises InfrastructureError when the sandbox cannot be set up.
    """
    built = BuiltModules()
    for name in sorted(job.modules):
        for file, text in job.modules[name].items():
            (sources / name / file).parent.mkdir(parents=True, exist_ok=True)
            (sources / name / file).write_text(text)
        output = target / f"{name}.log"
        with output.open("wb") as log:
            finished = sandbox.run(_make(job, name), log=log, on_tick=on_tick)
        lines = output.read_text(errors="replace").splitlines()
        output.unlink()
        built.log += [f"wqlab: module {name}", *lines]
        if finished.exit_code == 0 and finished.stopped is None:
            reason = _collected(sources, name, target)
        else:
            reason = finished.stopped.value if finished.stopped else buildlog.first_errors(lines)[0]
            reason = reason or f"make ended with exit status {finished.exit_code}"
        if reason is None:
            built.files.append(f"{name}.ko")
            continue
        built.failed[name] = reason.replace(f"{MODULES}/{name}/", "")[:REASON_LIMIT]
        built.log.append(f"wqlab: module {name} does not build against this kernel: {built.failed[name]}")
    return built


def _collected(sources: Path, name: str, target: Path) -> str | None:
    """Why there is no module although make is content; None when there is one."""
    try:
        collect(sources, f"{name}/{name}.ko", target / f"{name}.ko", SIZE_LIMIT)
    except OSError as error:
        return f"its Kbuild makes no usable {name}.ko: {error}"
    return None


def _make(job: BuildJob, name: str) -> list[str]:
    toolchain = job.recipe.toolchain
    variables = {
        "O": BUILD,
        "M": f"{MODULES}/{name}",
        "ARCH": job.arch,
        "CROSS_COMPILE": PREFIX[job.arch],
        **({"CC": toolchain, "HOSTCC": toolchain} if toolchain.startswith("clang") else {}),
        **IDENTITY,
    }
    return ["make", "-C", buildlog.SOURCE, *(f"{key}={value}" for key, value in variables.items()), "modules"]


def files_for_device(wanted: list[str], kernel: Kernel, fetch: Callable[[Artifact], Path]) -> dict[str, bytes]:
    """What goes to the device for each of the `wanted` modules: NAME.ko, or NAME.absent with one line that says why.

    `fetch` gives an artifact's path on this machine, its hash checked.
    """
    files = {}
    for name in wanted:
        if name in kernel.modules:
            files[f"{name}.ko"] = fetch(kernel.modules[name]).read_bytes()
        elif name in kernel.failed_modules:
            why = f"module {name} does not build against this kernel: {kernel.failed_modules[name]}"
            files[f"{name}.absent"] = f"{why}\n".encode()
        elif kernel.own_modules and (own := _from_tar(fetch(kernel.own_modules), name)) is not None:
            files[f"{name}.ko"] = own
        else:
            files[f"{name}.absent"] = f"this kernel has no module {name}\n".encode()
    return files


def _from_tar(path: Path, name: str) -> bytes | None:
    """Content of NAME.ko among the modules that a kernel installs; an archive that cannot be read has none."""
    wanted = f"{name}.ko".replace("-", "_")
    with suppress(tarfile.TarError), tarfile.open(path) as archive:
        for member in archive:
            file = PurePosixPath(member.name).name.replace("-", "_")
            if file == wanted and member.isreg() and member.size <= SIZE_LIMIT:
                content = archive.extractfile(member)
                return content.read() if content else None
    return None


def files_for_kernel(job: RunJob, kernel: Kernel, fetch: Callable[[Artifact], Path]) -> dict[str, bytes]:
    """What goes to the device beside the plan's files, for this kernel alone."""
    files = dict(files_for_device(job.plan.modules, kernel, fetch))
    if kernel.workqueue_layout is not None:
        offsets = fetch(kernel.workqueue_layout).read_text(errors="replace")
        files[workqueue_offsets.ON_DEVICE] = workqueue_offsets.for_device(offsets).encode()
    return files
