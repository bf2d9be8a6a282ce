"""Find the QEMU to run: the installed one, or one of another Debian release that was unpacked into a folder.

    python -m wqlab_bench.qemu_program FOLDER [SUITE]

unpacks the QEMU of a Debian release (by default trixie, which has QEMU 10) with all of its libraries, and prints the
value for the variable WQLAB_QEMU_TREE. Worker, bench and tests that have it run this QEMU for x86-64 devices.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from wqlab_contracts.specs import CpuArch
from wqlab_host.apt import Apt

PROGRAM: dict[CpuArch, str] = {"x86_64": "qemu-system-x86_64", "arm64": "qemu-system-aarch64"}
PACKAGE: dict[CpuArch, str] = {"x86_64": "qemu-system-x86", "arm64": "qemu-system-arm"}
"""Debian package of each program. Debian builds it with plugins since 11 (version 5.2)."""
TREE = "WQLAB_QEMU_TREE"
SUITE = "trixie"


def words(arch: CpuArch) -> list[str]:
    """Return the beginning of QEMU's command line."""
    unpacked = tree(arch)
    if unpacked is None:
        return [PROGRAM[arch]]
    loader, libraries = unpacked / "usr/lib64/ld-linux-x86-64.so.2", unpacked / "usr/lib/x86_64-linux-gnu"
    program = [str(loader), "--library-path", str(libraries), str(unpacked / "usr/bin" / PROGRAM[arch])]
    return [*program, "-L", str(unpacked / "usr/share/qemu"), "-L", str(unpacked / "usr/share/seabios")]


def file(arch: CpuArch) -> Path | None:
    """Return the path of QEMU's program, or None if it is not installed."""
    unpacked = tree(arch)
    found = shutil.which(PROGRAM[arch]) if unpacked is None else str(unpacked / "usr/bin" / PROGRAM[arch])
    return Path(found) if found else None


def tree(arch: CpuArch) -> Path | None:
    """Return the folder with an unpacked QEMU; None if the installed one runs, as always for arm64."""
    chosen = os.environ.get(TREE)
    return Path(chosen) if chosen and arch == "x86_64" else None


def unpack(cache: Path, folder: Path, suite: str = SUITE) -> Path:
    """Unpack the QEMU of a Debian release into `folder` and return the value for the variable. Raises AptError."""
    apt = Apt(cache / "apt", "x86_64", suite)
    return apt.unpack(apt.with_dependencies([PACKAGE["x86_64"]]), folder)


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 3:
        sys.exit(__doc__)
    print(unpack(Path(os.environ["WQLAB_CACHE"]), Path(sys.argv[1]).absolute(), *sys.argv[2:]))
