"""Measure how many instructions modelled devices execute per CPU second, compared with QEMU without the model.

    python benchmarks/model_speed.py        # after `make up` and `make model`, as the lab's user

Three boots of the lab's golden kernel on 24 CPUs execute the same workload, a work queued by each CPU again and again
(module queue_rate): on QEMU as it is with -icount, on an instrumented device, and on a modelled one; the last again
with a second one beside it. Times are QEMU's CPU times between two lines on the console, so that other load of the
machine matters less. Prints million instructions a CPU second, the ratio to QEMU without plugin, virtual milliseconds a
CPU minute, and seeds an hour of a host with 16 cores, on each of which one boot executes. The aims are 100 million
instructions a CPU second and a seed of the demo in less than 3 minutes, on an idle machine.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from wqlab_bench import cpio, rootfs
from wqlab_bench.instrument import build_plugin, stream
from wqlab_bench.instrument.qemu_arguments import Boot, Guest, Model, arguments
from wqlab_bench.model import build_qemu
from wqlab_bench.qemu import Firmware
from wqlab_contracts.loading import load_data
from wqlab_contracts.specs.cost_profile import write_costs

ROOT = Path(__file__).resolve().parents[1]
TYPE = "modelled-3900x"
CORES = 16
SEED_MS = 8
"""Virtual milliseconds of a seed's window, as of plan queue-rate."""
MODULE = "queue_rate.ko"
INIT = """#!/bin/busybox sh
export PATH=/usr/sbin:/usr/bin
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs devtmpfs /dev
mount -t debugfs debugfs /sys/kernel/debug
exec < /dev/console > /dev/console 2>&1
busybox insmod /queue_rate.ko
rate=/sys/kernel/debug/queue_rate
echo cache > /sys/devices/virtual/workqueue/queue_rate/affinity_scope
wqmark track
echo "producers=all first=0 intervals=1 interval_us=100" > $rate/start
echo "PHASE ready"
echo "producers=all first=0 intervals=8 interval_us=500 mark=1" > $rate/start
echo "PHASE done"
wqmark untrack
poweroff -f
"""


@dataclass(frozen=True)
class Speed:
    boot_s: float
    """CPU seconds until the window."""
    window_s: float
    """CPU seconds of the window."""
    instructions: int
    """Number executed in the window; 0 if QEMU has no plugin."""
    virtual_ms: float
    """Length of the window in virtual time; 0 without model."""


def main() -> int:
    cache, state = Path(os.environ["WQLAB_CACHE"]), Path(os.environ["WQLAB_STATE"])
    kernel = Path(json.loads((state / "golden.json").read_text())["x86_64"]["kernel"])
    data = load_data(ROOT)
    topology = data.device_types[TYPE].topology
    with tempfile.TemporaryDirectory(prefix="wqlab-model-") as name:
        folder = Path(name)
        costs = folder / "costs"
        write_costs(data.cost_profiles["ryzen-3900x"], costs, topology.l3_domains)
        model = Model(build_qemu.find_program(cache, "x86_64"), costs)
        image = rootfs.build(cache).read_bytes()
        with (folder / "initramfs").open("wb") as output:
            output.write(image + b"\0" * (-len(image) % 512))
            module = (kernel.parent / MODULE).read_bytes()
            files = [cpio.file("init", INIT.encode(), executable=True), cpio.file(MODULE, module, executable=False)]
            cpio.write_archive(files, output)

        def start(label: str, machine: Model | None, plugin: Path | None) -> Measured:
            work = folder / label
            work.mkdir()
            guest = Guest("benchmark", "x86_64", topology, "Skylake-Server", 4096, model=machine)
            words = "console=ttyS0 panic=-1 nokaslr norandmaps mitigations=off tsc=reliable cpuhp.parallel=0"
            boot = Boot(kernel, folder / "initramfs", words, 1, work / "stream", work / "console")
            return Measured(arguments(guest, boot, plugin, Firmware(work)), boot)

        modelled = build_plugin.plugin(cache, "x86_64", model.program)
        plain = start("plain", None, None).speed()
        counted = start("counted", None, build_plugin.plugin(cache)).speed()
        alone = start("modelled", model, modelled).speed()
        beside, second = start("beside", model, modelled), start("second", model, modelled)
        both = (beside.speed(second), second.speed())
    # Without plugin, QEMU executes the instructions that are counted with it.
    rate = {"plain": counted.instructions / plain.window_s, "instrumented": counted.instructions / counted.window_s,
            "modelled": alone.instructions / alone.window_s}  # fmt: skip
    rate["modelled, two at once"] = sum(each.instructions / each.window_s for each in both) / 2
    print(f"{'':>24}{'M instructions/CPU s':>24}{'times slower':>16}")
    for label, each in rate.items():
        print(f"{label:>24}{each / 1e6:24.1f}{rate['plain'] / each:16.2f}")
    for label, speed in (("one", alone), ("two at once", both[0])):
        per_ms = speed.window_s / speed.virtual_ms
        seed_s = speed.boot_s + SEED_MS * per_ms
        print(f"{label}: boot {speed.boot_s:.1f} CPU s, {60 / per_ms:.1f} ms of window a CPU minute")
        print(f"a seed of {SEED_MS} ms {seed_s:.0f} CPU s; {CORES} cores {CORES * 3600 / seed_s:.0f} seeds an hour")
    return 0


class Measured:
    """A running boot whose CPU times are recorded."""

    def __init__(self, command: list[str], boot: Boot) -> None:
        self._boot = boot
        self._seconds: list[float] = []
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def speed(self, *others: Measured) -> Speed:
        """Wait for the end of this boot, record the CPU times of `others` meanwhile, and return this boot's speed."""
        while self._look():
            for other in others:
                other._look()
            time.sleep(0.005)
        if len(self._seconds) != 2:
            raise SystemExit(self._boot.console.read_text(errors="replace")[-2000:])
        boot_s, end_s = self._seconds
        output = self._boot.output
        records = list(stream.read(output)) if output.exists() else []
        window = next((record for record in records if isinstance(record, stream.Window)), None)
        clock = re.search(rb"^clock\t\d+\t(\d+)\t(\d+)", output.read_bytes() if output.exists() else b"", re.MULTILINE)
        virtual_ms = (int(clock[2]) - int(clock[1])) / 1e9 if clock else 0.0
        return Speed(boot_s, end_s - boot_s, window.instructions if window else 0, virtual_ms)

    def _look(self) -> bool:
        """Record the CPU time when the console has a new line of a phase. Return False if the boot has ended."""
        if self._process.poll() is not None:
            return False
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        seconds = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        text = self._boot.console.read_bytes() if self._boot.console.exists() else b""
        self._seconds += [seconds] * (len(re.findall(rb"PHASE \S+\r?\n", text)) - len(self._seconds))
        return True


if __name__ == "__main__":
    sys.exit(main())
