"""Which compiler and linker this machine has, exactly: part of every build's key."""

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
    """`gcc (Debian 12.2.0-14) 12.2.0; GNU ld (GNU Binutils for Debian) 2.40`.

    Of the machine's own compiler and linker; a cross compiler of the same distribution has the same versions, and
    `cross_prefix` says when one is missing. Raises InfrastructureError when there is no such compiler.
    """
    linker = "ld.lld" if command.startswith("clang") else "ld"
    return f"{_first_line(command)}; {_first_line(linker)}"


def cross_prefix(arch: CpuArch) -> str:
    """Prefix of the compiler's name that builds for `arch` here; empty for the machine's own."""
    return "" if platform.machine() == _MACHINE[arch] else PREFIX[arch]


def _first_line(command: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9.+-]*", command):
        raise InfrastructureError(f"{command!r} is not a compiler's name")
    try:
        done = subprocess.run(
            [f"/usr/bin/{command}", "--version"], capture_output=True, text=True, check=True, env={"LC_ALL": "C.UTF-8"}
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise InfrastructureError(
            f"{command} does not run here: {error}", advice="Install gcc and binutils."
        ) from error
    return done.stdout.splitlines()[0].strip()


# Depend mode (see build.py) learns from the compiler which headers a source includes, not what the assembler does: a
# kernel image whose compressed body has changed, but not its length, would be put together with the one before.
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
    """Commands under the compilers' own names that go through ccache, but for sources with files in `.incbin`."""
    for name in {"gcc", toolchain, f"{PREFIX[arch]}{toolchain}"}:
        command = folder / name
        command.write_text(_CACHED.format(compiler=f"/usr/bin/{name}"))
        command.chmod(0o755)
