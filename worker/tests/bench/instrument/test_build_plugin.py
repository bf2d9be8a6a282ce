"""Building the plugin for the QEMU that is installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from wqlab_bench.instrument import build_plugin
from wqlab_bench.instrument.build_plugin import InstrumentUnsupported
from wqlab_bench.qemu_program import PROGRAM

QEMU = Path(shutil.which(PROGRAM["x86_64"]) or "")


def qemu_with(functions: list[str], folder: Path) -> Path:
    """Return a program that exports these functions, in place of a QEMU of another version."""
    source, program = folder / "qemu.c", folder / "qemu"
    source.write_text("".join(f"void {name}(void) {{}}\n" for name in functions))
    subprocess.run(["gcc", "-shared", "-fPIC", str(source), "-o", str(program)], check=True)
    return program


def test_plugin_is_built_once_and_loads_into_qemu(tmp_path: Path) -> None:
    plugin = build_plugin.plugin(tmp_path)
    changed = plugin.stat().st_mtime_ns
    assert build_plugin.plugin(tmp_path) == plugin
    assert plugin.stat().st_mtime_ns == changed
    assert re.fullmatch("[0-9a-f]{64}", build_plugin.sha256(plugin))
    output = tmp_path / "stream"
    option = f"{plugin},output={output},cpus=0:0:0,memory_mib=1"
    command = [QEMU, "-nodefaults", "-display", "none", "-monitor", "stdio", "-S", "-plugin", option]
    subprocess.run(command, input="quit\n", capture_output=True, text=True, check=True)
    assert output.read_bytes() == b"blocks kernel 0\n\n"


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("cpus=0:0:0/0:0", "expected CORE:L3:NODE"),
        ("cpus=0:0:0/1:0:0", "names 2 CPUs, the machine has 1"),
        ("memory_mib=x", "expected a number"),
        ("l2_kib=3", "choose a power of two"),
        ("other=1", "unknown argument other"),
        ("output=/nonexistent/stream", "cannot create /nonexistent/stream"),
    ],
)
def test_plugin_refuses_invalid_arguments(tmp_path: Path, argument: str, message: str) -> None:
    arguments = {"output": f"output={tmp_path / 'stream'}", "cpus": "cpus=0:0:0", "memory_mib": "memory_mib=1"}
    arguments[argument.partition("=")[0]] = argument
    option = ",".join([str(build_plugin.plugin(tmp_path)), *arguments.values()])
    command = [QEMU, "-nodefaults", "-display", "none", "-S", "-plugin", option]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode
    assert f"wqlab-instrument: {message}" in done.stderr or message in done.stderr


@pytest.mark.parametrize("version", [1, 3])
def test_plugin_compiles_for_both_versions_of_the_interface(tmp_path: Path, version: int) -> None:
    names = {1: ["insn_exec_inline"], 3: ["insn_exec_inline_per_vcpu", "tb_exec_cond_cb"]}[version]
    qemu = qemu_with([f"qemu_plugin_register_vcpu_{name}" for name in names], tmp_path)
    assert build_plugin.interface_version(qemu) == version
    plugin = build_plugin.plugin(tmp_path, qemu=qemu)
    needed = subprocess.run(["nm", "-D", "--undefined-only", plugin], capture_output=True, text=True, check=True).stdout
    # Only version 1 has an inline counter that all CPUs share.
    assert ("insn_exec_inline" in needed) == (version == 1)


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        ([], "was built without TCG plugins; install Debian's qemu-system-x86"),
        (["qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu"], "is QEMU 9.0"),
    ],
)
def test_unsupported_qemu_is_explained(tmp_path: Path, functions: list[str], message: str) -> None:
    with pytest.raises(InstrumentUnsupported, match=re.escape(message)):
        build_plugin.plugin(tmp_path, qemu=qemu_with(functions, tmp_path))


def test_missing_qemu_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InstrumentUnsupported, match="install package qemu-system-arm"):
        build_plugin.plugin(tmp_path, "arm64")


def test_missing_compiler_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / QEMU.name).symlink_to(QEMU)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InstrumentUnsupported, match="gcc is not installed; install package gcc"):
        build_plugin.plugin(tmp_path)


def test_no_qemu_program_is_explained(tmp_path: Path) -> None:
    script = tmp_path / "qemu"
    script.write_text("#!/bin/sh\n")
    os.chmod(script, 0o755)  # noqa: PTH101
    with pytest.raises(InstrumentUnsupported, match="cannot read QEMU's program"):
        build_plugin.plugin(tmp_path, qemu=script)
