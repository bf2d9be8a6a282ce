"""Write the command that builds the same kernel outside the lab."""

from __future__ import annotations

import shlex

from wqlab_contracts.messages import BuildJob

from .build_log import SOURCE

BUILD = "/build"
"""Build folder in the sandbox; paths in debug information are mapped to it."""
OUT = "/out"
"""Folder in the sandbox for the results of tuxmake."""
IDENTITY = {
    "KBUILD_BUILD_TIMESTAMP": "2026-01-01 00:00:00 UTC",
    "KBUILD_BUILD_USER": "wqlab",
    "KBUILD_BUILD_HOST": "wqlab",
    "KBUILD_BUILD_VERSION": "1",
}
"""Fixed values, so that the same content gives the same bytes."""


def reproducer(job: BuildJob) -> str:
    """Return one line for `sh` that builds the kernel with the same build-id if the job's toolchain is installed.

    It runs in a folder with the source in `linux/` and the configuration of the build in the file `config`. It is the
    same for every source. The build-id covers the paths in the debug information, hence the prefix maps. The commands
    are joined by ` && `, so that the line can be shown as several.
    """
    source_map = f"-fdebug-prefix-map=$PWD/linux={SOURCE}"
    build_map = f"-fdebug-prefix-map=$PWD/build={BUILD}"
    tuxmake = ["tuxmake", "--runtime=null", "--directory=linux", f"--target-arch={job.arch}"]
    tuxmake += [f"--toolchain={shlex.quote(job.recipe.toolchain)}", "--compression-type=none"]
    tuxmake += ["--build-dir=build", "--output-dir=out", "--kconfig=config"]
    tuxmake += [f"--environment={name}={shlex.quote(value)}" for name, value in IDENTITY.items()]
    command = " ".join(['KCFLAGS="$maps"', 'KAFLAGS="$maps"', *tuxmake, "config", "kernel", "modules"])
    return f'maps="{source_map}" && maps="$maps {build_map}" && {command}'
