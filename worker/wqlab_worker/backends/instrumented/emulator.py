"""Run one boot of an instrumented device: one QEMU, which ends with the guest."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import structlog

from wqlab_bench import confinement
from wqlab_bench.console import OUTPUT_LIMIT
from wqlab_bench.instrument import qemu_arguments
from wqlab_bench.machine import guest_of
from wqlab_bench.qemu import Firmware
from wqlab_contracts.enums import Arm

from .emulator_time import HangWatch

log = structlog.get_logger()

OUTPUT_BYTES = 1 << 30
"""Largest file that the emulator may write: the console, and the results with all windows."""
POLL_S = 0.5
KEPT_STDERR = 4000
HOST_MIB = 1536
"""Memory of one emulator beside the guest's: translated code and the model of cache lines."""
MEMORY_FACTOR = 2
"""An emulator that occupies so many times its expected memory is killed: the guest decides how many lines it uses."""

NICENESS = 14
"""Added to the niceness of an emulator of the bench: devices whose clock is the host's come first."""

Seeded = tuple[Arm, int]
"""Kernel and seed: what determines a boot."""


@dataclass(frozen=True)
class Ended:
    """A boot that has ended."""

    output: Path
    """The plugin's output."""
    status: int
    """Exit status of QEMU; negative: the signal that ended it."""
    stderr: str
    seconds: float
    timed_out: bool
    out_of_memory: bool = False
    """True if it was killed because it occupied more than MEMORY_FACTOR times the expected memory."""


@dataclass(frozen=True)
class Emulator:
    """How to boot one device. Each boot gets a folder of its own in `scratch`."""

    guest: qemu_arguments.Guest
    kernels: Mapping[Arm, Sequence[Path]]
    """Kernels of each arm, one for each layout: seed s boots entry s modulo their number."""
    initramfs: Mapping[Arm, Path]
    command_line: Callable[[int], str]
    """Kernel command line of a seed."""
    layouts: Mapping[Arm, Sequence[Path]]
    """Where each kernel keeps its data; without it, cache lines of data have no names."""
    plugin: Path
    firmware: Firmware
    scratch: Path
    limit_s: float
    """Most CPU time of a boot, in seconds."""

    def folder(self, boot: Seeded) -> Path:
        return self.scratch / f"{boot[0].value}-{boot[1]}"

    def console(self, boot: Seeded) -> Path:
        return self.folder(boot) / "console"

    def run(self, boot: Seeded, stop: threading.Event) -> Ended:
        """Run a boot until the guest switches off, `limit_s` is used up, or `stop` is set."""
        arm, seed = boot
        folder = self.folder(boot)
        folder.mkdir(parents=True, exist_ok=True)
        output, stderr = folder / "output", folder / "stderr"
        kernels, layouts = self.kernels[arm], self.layouts.get(arm)
        description = qemu_arguments.Boot(
            kernel=kernels[seed % len(kernels)], initramfs=self.initramfs[arm], command_line=self.command_line(seed),
            seed=seed, output=output, console=self.console(boot),
            layout=layouts[seed % len(layouts)] if layouts else None,
        )  # fmt: skip
        command = [
            "nice", "-n", str(NICENESS), *bounds(self.guest.memory_mib),
            *qemu_arguments.command(self.guest, description, self.plugin, self.firmware),
        ]  # fmt: skip
        started = time.monotonic()
        with stderr.open("wb") as errors:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, start_new_session=True,
                env=confinement.environment(),
            )  # fmt: skip
        _yield_to_other_sessions(process)
        watch = HangWatch(process.pid, self.limit_s)
        timed_out = out_of_memory = False
        most_bytes = _most_bytes(self.guest.memory_mib)
        try:
            while True:
                try:
                    process.wait(POLL_S)
                    break
                except subprocess.TimeoutExpired:
                    timed_out = watch.expired()
                    out_of_memory = occupied_bytes(process.pid) > most_bytes
                    if timed_out or out_of_memory or stop.is_set():
                        break
        finally:
            _kill(process)
        text = stderr.read_bytes()[-KEPT_STDERR:].decode(errors="replace")
        # QEMU says so for every CPU, and the guest sees in CPUID what there is.
        lines = [line for line in text.splitlines() if "TCG doesn't support requested feature" not in line]
        return Ended(
            output=output, status=process.returncode, stderr="\n".join(lines),
            seconds=time.monotonic() - started, timed_out=timed_out,
            out_of_memory=out_of_memory,
        )  # fmt: skip


def _most_bytes(memory_mib: int) -> int:
    return MEMORY_FACTOR * (memory_mib + HOST_MIB) << 20


def bounds(memory_mib: int) -> list[str]:
    """Return the start of a command line whose rest the kernel gives no more memory and file size than a boot may use.

    `run` measures the memory twice a second, and kills before this bound in all but the fastest growth. The buffer for
    translated code counts as data, used or not.
    """
    data = _most_bytes(memory_mib) + (qemu_arguments.TRANSLATED_MIB << 20)
    return ["prlimit", f"--fsize={OUTPUT_BYTES}", "--core=0", f"--data={data}"]


def _yield_to_other_sessions(process: subprocess.Popen[bytes]) -> None:
    """Lower the priority of the emulator's session: with autogroups, niceness only counts inside one (sched(7))."""
    with suppress(FileNotFoundError, ProcessLookupError):  # a kernel without autogroups, or an emulator that has ended
        while process.poll() is None:
            try:
                Path(f"/proc/{process.pid}/autogroup").write_text(str(NICENESS))
                return
            except BlockingIOError:  # the kernel takes one such change in 100 ms from all users
                time.sleep(0.1)


def occupied_bytes(pid: int) -> int:
    """Return the memory that the emulator in process `pid`, or below bubblewrap in it, occupies; 0 if it has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{guest_of(pid)}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) << 10
    return 0


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill bubblewrap, with which the emulator dies, or the emulator itself where there is no bubblewrap."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        log.debug("emulator already gone", pid=process.pid)
    process.wait()


def read_console(path: Path, offset: int) -> bytes:
    """Return the console from `offset` on, up to OUTPUT_LIMIT in total."""
    try:
        with path.open("rb") as console:
            console.seek(offset)
            return console.read(max(0, OUTPUT_LIMIT - offset))
    except FileNotFoundError:
        return b""


def parallel_boots(memory_mib: int) -> int:
    """Return how many emulators may run at once: one for each core, as far as memory suffices."""
    cores = len(os.sched_getaffinity(0))
    fields = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    available_mib = int(fields["MemAvailable"].split()[0]) >> 10
    return max(1, min(cores, available_mib // (memory_mib + HOST_MIB)))
