"""Identify the emulator of this host: boots of hosts with the same text are equal, byte for byte."""

from __future__ import annotations

import hashlib
import subprocess
from functools import lru_cache
from pathlib import Path

from wqlab_contracts.specs import CpuArch

from ..qemu_program import PACKAGE
from . import build_plugin

_FIRMWARE: dict[CpuArch, tuple[str, ...]] = {"x86_64": ("bios-256k.bin", "linuxboot_dma.bin"), "arm64": ()}
"""Files from which QEMU's machine boots a kernel; Debian's package seabios has its own version."""


def identify(cache: Path, arch: CpuArch) -> str:
    """Return version of QEMU, hash of its firmware and hash of the plugin, which is built unless it is cached.

    Raises InstrumentUnsupported.
    """
    program = build_plugin.find_program(arch)
    return _identify(cache, arch, program, program.stat().st_mtime_ns)


@lru_cache(maxsize=8)
def _identify(cache: Path, arch: CpuArch, program: Path, _changed: int) -> str:
    plugin = build_plugin.sha256(build_plugin.plugin(cache, arch))
    version = _output(program, "--version").splitlines()[0]
    folders = [Path(line) for line in _output(program, "-L", "help").splitlines()]
    firmware = hashlib.sha256()
    for name in _FIRMWARE[arch]:
        found = next((folder / name for folder in folders if (folder / name).exists()), None)
        if found is None:
            raise build_plugin.InstrumentUnsupported(f"QEMU's {name} is missing; install {PACKAGE[arch]}")
        firmware.update(found.read_bytes())
    return f"{version.removeprefix('QEMU emulator version ')}, firmware {firmware.hexdigest()[:16]}, plugin {plugin}"


def _output(program: Path, *words: str) -> str:
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    if done.returncode or not done.stdout:
        raise build_plugin.InstrumentUnsupported(f"{program} {' '.join(words)} failed: {done.stderr.strip()}")
    return done.stdout
