"""The command with which anyone builds the same kernel outside the lab."""

from __future__ import annotations

import shlex

from wqlab_contracts.messages import BuildJob

from . import log as buildlog

BUILD = "/build"
"""Where the sandbox builds; paths in debug information are mapped to it."""
IDENTITY = {
    "KBUILD_BUILD_TIMESTAMP": "2026-01-01 00:00:00 UTC",
    "KBUILD_BUILD_USER": "wqlab",
    "KBUILD_BUILD_HOST": "wqlab",
    "KBUILD_BUILD_VERSION": "1",
}
"""Fixed, so that the same content gives the same bytes."""


def reproducer(job: BuildJob) -> str:
    """One line for `sh`, run beside the source in `linux/` and the build's configuration in the file `config`; with
    the job's toolchain it gives the same build-id. The same for every source: which one is for the reader to name.

    Debug information holds paths, and the build-id covers it, hence the prefix maps. Commands are joined by ` && `, so
    that the line can be shown as several.
    """
    first = f"-fdebug-prefix-map=$PWD/linux={buildlog.SOURCE}"
    second = f"-fdebug-prefix-map=$PWD/build={BUILD}"
    tuxmake = ["tuxmake", "--runtime=null", "--directory=linux", f"--target-arch={job.arch}"]
    tuxmake += [f"--toolchain={shlex.quote(job.recipe.toolchain)}", "--compression-type=none"]
    tuxmake += ["--build-dir=build", "--output-dir=out", "--kconfig=config"]
    tuxmake += [f"--environment={name}={shlex.quote(value)}" for name, value in IDENTITY.items()]
    command = " ".join(['KCFLAGS="$maps"', 'KAFLAGS="$maps"', *tuxmake, "config", "kernel", "modules"])
    return f'maps="{first}" && maps="$maps {second}" && {command}'
