"""Identify this machine's compiler and linker, which are part of every build key."""

from __future__ import annotations

import platform
import re
import subprocess
from pathlib import Path

from wqlab_contracts.specs import CpuArch

from ..failures import InfrastructureError

PREFIX: dict[CpuArch, str] = {"x86_64": "x86_64-linux-gnu-", "arm64": "aarch64-linux-gnu-"}
_MACHINE: dict[CpuArch, str] = {"x86_64": "x86_64", "arm64": "aarch64"}


def toolchain_identity(command: str = "gcc") -> str:
    """Return the versions of the compiler and the linker.

    For example `gcc (Debian 12.2.0-14) 12.2.0; GNU ld (GNU Binutils for Debian) 2.40`. These are the machine's native
    tools; the cross compilers of the same distribution have the same versions. Raises InfrastructureError if there is
    no such compiler.
    """
    linker = "ld.lld" if command.startswith("clang") else "ld"
    return f"{_first_line(command)}; {_first_line(linker)}"


def cross_prefix(arch: CpuArch) -> str:
    """Return the prefix of the compiler for `arch`; empty for the machine's own architecture."""
    return "" if platform.machine() == _MACHINE[arch] else PREFIX[arch]


def _first_line(command: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9.+-]*", command):
        raise InfrastructureError(f"{command!r} is not the name of a compiler")
    try:
        done = subprocess.run(
            [f"/usr/bin/{command}", "--version"], capture_output=True, text=True, check=True, env={"LC_ALL": "C.UTF-8"}
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise InfrastructureError(
            f"{command} does not run here: {error}", advice="Install gcc and binutils."
        ) from error
    return done.stdout.splitlines()[0].strip()


# ccache's depend mode (see build_kernel.py) learns from the compiler which headers a source includes, but not which
# files the assembler includes. A changed compressed kernel of the same length would then be replaced by the cached one.
_CACHED = """\
#!/bin/sh
for source; do :; done # kbuild names the source last
case $source in
*.S) exec {compiler} "$@" ;;
*.c) ! grep -qs '[.]incbin' "$source" || exec {compiler} "$@" ;;
esac
exec ccache {compiler} "$@"
"""


def write_compilers(folder: Path, arch: CpuArch, toolchain: str) -> None:
    """Write wrappers under the compilers' names that call ccache, except for sources with `.incbin` files."""
    for name in {"gcc", toolchain, f"{PREFIX[arch]}{toolchain}"}:
        command = folder / name
        command.write_text(_CACHED.format(compiler=f"/usr/bin/{name}"))
        command.chmod(0o755)
