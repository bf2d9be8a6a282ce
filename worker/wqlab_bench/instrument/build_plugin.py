"""Build the TCG plugin for the installed QEMU: `instrument/<hash>/wqlab-instrument.so` in the cache.

QEMU exports its plugin interface as functions of its program. Which functions there are tells whether QEMU was built
with plugins, and which version of the interface to build for.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from wqlab_contracts.specs import CpuArch
from wqlab_host import tool

from .. import qemu_program
from ..qemu_program import PACKAGE, PROGRAM

_SOURCES = Path(__file__).parent / "plugin"
_FLAGS = (
    "-O2",
    "-flto",
    "-std=gnu11",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-fno-plt",
    "-s",
)
_SHARED_COUNTERS = "qemu_plugin_register_vcpu_insn_exec_inline"
_COUNTERS_PER_CPU = "qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu"
_CONDITIONAL_CALLS = "qemu_plugin_register_vcpu_tb_exec_cond_cb"
"""Came with version 3 of the interface, in QEMU 9.1; QEMU 9.0 has counters per CPU, but not the rest of version 3."""


class InstrumentUnsupported(Exception):
    """This machine cannot run instrumented devices; the message names the package to install."""


def plugin(cache: Path, arch: CpuArch = "x86_64", qemu: Path | None = None) -> Path:
    """Return the path of the plugin for the QEMU of `arch`, and build it unless it is cached.

    `qemu` is QEMU's program if it is not the one that the lab runs. Raises InstrumentUnsupported.
    """
    version = interface_version(qemu or find_program(arch), arch)
    folder = cache / "instrument" / content_key(version)
    library = folder / "wqlab-instrument.so"
    if library.exists():
        return library
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="build-", dir=folder) as name:
        built = Path(name) / library.name
        sources = [str(path) for path in _sources() if path.suffix == ".c"]
        define = f"-DWQLAB_PLUGIN_API={version}"
        advice = "; install package gcc"
        tool.output(["gcc", *_FLAGS, define, *sources, "-o", str(built)], InstrumentUnsupported, advice=advice)
        # A rename is atomic, also if two builders race.
        built.rename(library)
    return library


def sha256(library: Path) -> str:
    """Return the hash of a plugin, which results name."""
    return hashlib.sha256(library.read_bytes()).hexdigest()


def content_key(version: int) -> str:
    """Return a hash of what determines the plugin: sources, flags, interface version and compiler."""
    sources = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in _sources()}
    inputs = {"sources": sources, "flags": _FLAGS, "version": version, "compiler": compiler()}
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()[:32]


def compiler() -> str:
    """Return the name and version of the compiler. Raises InstrumentUnsupported."""
    return tool.output(["gcc", "--version"], InstrumentUnsupported, advice="; install package gcc").splitlines()[0]


def interface_version(program: Path, arch: CpuArch = "x86_64") -> int:
    """Return the version of the plugin interface to build for: 1 or 3. Raises InstrumentUnsupported."""
    package = PACKAGE[arch]
    exported = _exported_functions(program)
    if _SHARED_COUNTERS in exported:
        return 1
    if _CONDITIONAL_CALLS in exported:
        return 3
    if _COUNTERS_PER_CPU in exported:
        raise InstrumentUnsupported(f"{program} is QEMU 9.0, whose plugin interface is not supported; use 7.2 or 10")
    raise InstrumentUnsupported(
        f"{program} was built without TCG plugins; install Debian's {package} (7.2 or later), or build QEMU with "
        "--enable-plugins"
    )


def _exported_functions(program: Path) -> set[str]:
    try:
        with program.open("rb") as stream:
            table = ELFFile(stream).get_section_by_name(".dynsym")
            if not isinstance(table, SymbolTableSection):
                return set()
            return {symbol.name for symbol in table.iter_symbols() if symbol.name.startswith("qemu_plugin_")}
    except (OSError, ELFError) as error:
        raise InstrumentUnsupported(f"cannot read QEMU's program {program}: {error}") from error


def find_program(arch: CpuArch) -> Path:
    """Return QEMU's program for guests of `arch`. Raises InstrumentUnsupported if it is not installed."""
    path = qemu_program.file(arch)
    if path is None:
        raise InstrumentUnsupported(f"{PROGRAM[arch]} is not installed; install package {PACKAGE[arch]}")
    return path


def _sources() -> list[Path]:
    return sorted(path for path in _SOURCES.iterdir() if path.suffix in {".c", ".h"})
