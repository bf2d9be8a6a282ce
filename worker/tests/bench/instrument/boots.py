"""Boot the golden kernel with sharing.c as its first process, under the plugin, and read what it counted."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from wqlab_bench import cpio, qemu_program
from wqlab_bench.instrument import build_plugin, qemu_arguments, stream
from wqlab_bench.instrument.qemu_arguments import Boot, Guest
from wqlab_bench.qemu import Firmware
from wqlab_bench.rootfs import TRIPLET
from wqlab_contracts.specs import Cluster, CpuArch, Topology
from wqlab_host import tool

INSTALLED, NEWER = "installed", qemu_program.SUITE
"""The QEMU of the test session, and that of Debian 13 (QEMU 10), whose plugin interface is another version."""
_TREE_OF_SESSION = os.environ.get(qemu_program.TREE)
ROUNDS, FEW, MANY = 100, 3, 8
"""Rounds of each test program, and the two numbers of threads of its locks; sharing.c has the same values."""

PLACES = "0:0:0/0:0:0/1:0:0/1:0:0/2:1:0/2:1:0/3:2:1/3:2:1"
"""Core, L3 domain and node of each CPU: sharing.c expects a machine that has all levels with eight CPUs."""

_SOURCE = Path(__file__).parent / "sharing.c"
_MARKS = Path(build_plugin.__file__).parents[1] / "guest"
_TOPOLOGY: dict[CpuArch, Topology] = {
    "x86_64": Topology(sockets=1, l3_per_socket=1, cores_per_l3=8, threads_per_core=1),
    "arm64": Topology(
        sockets=1, l3_per_socket=0, threads_per_core=1,
        clusters=[Cluster(cores=4, capacity=400), Cluster(cores=4, capacity=1024)],
    ),
}  # fmt: skip
MODEL: dict[CpuArch, str] = {"x86_64": "qemu64", "arm64": "cortex-a72"}
CONSOLE: dict[CpuArch, str] = {"x86_64": "ttyS0", "arm64": "ttyAMA0"}


class Error(Exception):
    """A tool failed."""


def golden_kernel(arch: CpuArch) -> Path:
    """Return the golden kernel prepared by `make test`."""
    prepared = Path(os.environ.get("WQLAB_STATE", "/nonexistent")) / "golden.json"
    images = json.loads(prepared.read_text()) if prepared.exists() else {}
    if arch not in images:
        pytest.fail(
            f"no {arch} in {prepared}: set WQLAB_STATE, WQLAB_CACHE and run `python -m wqlab_lab.prepare` first"
        )
    return Path(images[arch]["kernel"])


class Program:
    """sharing.c, compiled: an initramfs with nothing else, and the addresses of its functions."""

    def __init__(self, arch: CpuArch, folder: Path) -> None:
        program = folder / "init"
        constants = [f"-DROUNDS={ROUNDS}", f"-DTHREADS_FEW={FEW}", f"-DTHREADS_MANY={MANY}"]
        tool.output(
            [
                f"{TRIPLET[arch]}-gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-no-pie", "-pthread",
                # Functions with equal code stay apart.
                "-fno-ipa-icf", *constants, "-I", str(_MARKS), str(_SOURCE), "-o", str(program),
            ],
            Error,
        )  # fmt: skip
        self.initramfs = folder / "initramfs.cpio"
        entries = [cpio.directory("dev"), cpio.character_device("dev/console", 5, 1)]
        with self.initramfs.open("wb") as output:
            cpio.write_archive([*entries, cpio.file("init", program.read_bytes(), True)], output)
        self._functions = []
        for line in tool.output([f"{TRIPLET[arch]}-nm", "-S", str(program)], Error).splitlines():
            match line.split():
                case [address, size, "t" | "T", name]:
                    self._functions.append((int(address, 16), int(address, 16) + int(size, 16), name))

    def function(self, pc: int) -> str:
        """Return the function that contains an address, or an empty string for the kernel's."""
        return next((name for start, end, name in self._functions if start <= pc < end), "")


@dataclass(frozen=True)
class Counts:
    """The windows of one boot, by the names of the phases, and its raw output."""

    windows: dict[str, stream.Window]
    output: bytes
    console: bytes
    function: Callable[[int], str]

    def moved(self, phase: str, *functions: str) -> Counter[tuple[str, str, str, str]]:
        """Return (function, writer's function, level, kind) -> transfers of these functions in a phase."""
        found: Counter[tuple[str, str, str, str]] = Counter()
        for moved in self.windows[phase].moved:
            if (name := self.function(moved.pc)) in functions:
                found[name, self.function(moved.writer_pc), moved.level, moved.kind] += moved.count
        return found

    def total(self, phase: str, *functions: str) -> int:
        """Return the transfers of these functions in a phase."""
        return self.moved(phase, *functions).total()

    def instructions(self, phase: str, function: str) -> int:
        code = self.windows[phase].code
        return sum(count for pc, count in code.items() if self.function(pc) == function)

    def locked(self, phase: str, function: str) -> int:
        code = self.windows[phase].locked_code
        return sum(count for pc, count in code.items() if self.function(pc) == function)


@dataclass(frozen=True)
class Machine:
    """A QEMU and what it starts."""

    arch: CpuArch
    program: Program
    plugin: Path
    kernel: Path
    folder: Path

    def command(self, name: str) -> tuple[list[str], Boot]:
        guest = Guest("counts", self.arch, _TOPOLOGY[self.arch], MODEL[self.arch], 512, instruction_ns=8)
        words = f"console={CONSOLE[self.arch]} panic=-1 nokaslr norandmaps mitigations=off"
        output, console = self.folder / f"{name}.stream", self.folder / f"{name}.console"
        boot = Boot(self.kernel, self.program.initramfs, words, 1, output, console)
        command = qemu_arguments.arguments(guest, boot, self.plugin, Firmware(self.folder))
        option = command.index("-plugin") + 1
        parts = [f"cpus={PLACES}" if part.startswith("cpus=") else part for part in command[option].split(",")]
        command[option] = ",".join(parts)
        return command, boot

    def boot(self, name: str) -> Counts:
        """Boot until the guest powers off."""
        command, boot = self.command(name)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        console = boot.console.read_bytes() if boot.console.exists() else b""
        assert done.returncode == 0, done.stderr + console.decode(errors="replace")[-2000:]
        windows, phase, sent = {}, "", []
        for record in stream.read(boot.output):
            if isinstance(record, stream.Window):
                windows[phase] = record
            elif isinstance(record, stream.Frame):
                sent.append(record.name)
                phase = record.data.decode()
        assert sent[-1] == "finished", sent
        return Counts(windows, boot.output.read_bytes(), console, self.program.function)


@contextmanager
def qemu_of(release: str, folder: Path) -> Iterator[None]:
    """Run the QEMU of this Debian release meanwhile, unpacked in `folder`; with INSTALLED that of the session.

    The QEMU of the session is the installed one, or what WQLAB_QEMU_TREE names; then NEWER is the same.
    """
    with pytest.MonkeyPatch.context() as patch:
        unpacked = _TREE_OF_SESSION
        if release == NEWER and unpacked is None:
            unpacked = str(qemu_program.unpack(Path(os.environ["WQLAB_CACHE"]), folder, release))
        if unpacked is None:
            patch.delenv(qemu_program.TREE, raising=False)
        else:
            patch.setenv(qemu_program.TREE, unpacked)
        yield


def machine(arch: CpuArch, folder: Path) -> Machine:
    """Return a machine with the QEMU that the lab runs."""
    return Machine(arch, Program(arch, folder), build_plugin.plugin(folder, arch), golden_kernel(arch), folder)
