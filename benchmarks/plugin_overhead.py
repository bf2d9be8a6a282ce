"""Measure what the plugin of instrumented devices costs, as a ratio of CPU times in one boot.

    python benchmarks/plugin_overhead.py [ROUNDS]       # after `make up`, as the lab's user

One instrumented device boots the lab's golden kernel and executes the same workload again and again: without tracking
(where the plugin only looks for markers), while cache lines are tracked, and in a window. The workloads are those of
the demo: writers with an fsync each on XFS, and dm-crypt. A phase's cost is QEMU's CPU time between two lines on the
console, so that other load of the machine matters little. Prints a row for each workload. The aim is a ratio of at
most 2 in a window.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from statistics import median

from wqlab_bench import cpio, rootfs
from wqlab_bench.instrument import build_plugin, stream
from wqlab_bench.instrument.qemu_arguments import Boot, Guest, arguments
from wqlab_bench.qemu import Firmware
from wqlab_contracts.specs import Topology

EIGHT_CPUS = Topology(sockets=1, l3_per_socket=4, cores_per_l3=2, threads_per_core=1)
WORKLOADS = ("xfs-fsync", "dm-crypt")
INIT = """#!/bin/busybox sh
export PATH=/usr/sbin:/usr/bin
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs devtmpfs /dev
mount -t configfs configfs /sys/kernel/config; mount -t tmpfs tmpfs /tmp
exec < /dev/console > /dev/console 2>&1
disk() { # NAME MIB
	mkdir "/sys/kernel/config/nullb/$1"; cd "/sys/kernel/config/nullb/$1"
	echo 1 > memory_backed; echo "$2" > size; echo 4 > submit_queues; echo 0 > irqmode; echo 1 > power; cd /
}
disk xfs 400; mkfs.xfs -q -f -K /dev/xfs; mkdir /m; mount -t xfs /dev/xfs /m
disk plain 16; key=$(od -An -v -N64 -tx1 /dev/zero | tr -d ' \\n')
dmsetup create crypt --table "0 32768 crypt aes-xts-plain64 $key 0 /dev/plain 0"; dmsetup mknodes
workload() {
	if [ "$1" = xfs-fsync ]; then
		fio --ioengine=psync --rw=write --size=320k --bs=4k --fsync=1 --name=a --directory=/m --numjobs=16 --unlink=1
	else
		fio --ioengine=psync --rw=randrw --bs=16k --size=1m --offset_increment=1m --direct=1 --name=a --numjobs=8 \\
			--filename=/dev/mapper/crypt
	fi > /tmp/out 2>&1 || cat /tmp/out
}
phase() { # NAME WORKLOAD
	echo "PHASE $1 $2 begins"; workload "$2"; echo "PHASE $1 $2 ends"
}
workload xfs-fsync; workload dm-crypt
for round in $(seq ROUNDS); do
	for load in WORKLOADS; do
		phase plain "$load"
		wqmark track; workload "$load"
		phase tracked "$load"
		wqmark begin; phase window "$load"; wqmark end
		wqmark untrack; workload "$load"
		phase plain "$load"
	done
done
poweroff -f
"""
MARK = re.compile(rb"PHASE (\S+) (\S+) (begins|ends)\r?\n")


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process and its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    cache, state = Path(os.environ["WQLAB_CACHE"]), Path(os.environ["WQLAB_STATE"])
    kernel = Path(json.loads((state / "golden.json").read_text())["x86_64"]["kernel"])
    with tempfile.TemporaryDirectory(prefix="wqlab-plugin-") as name:
        folder = Path(name)
        init = INIT.replace("ROUNDS", str(rounds)).replace("WORKLOADS", " ".join(WORKLOADS))
        image = rootfs.build(cache).read_bytes()
        with (folder / "initramfs").open("wb") as output:
            output.write(image + b"\0" * (-len(image) % 512))
            cpio.write_archive([cpio.file("init", init.encode(), executable=True)], output)
        guest = Guest("benchmark", "x86_64", EIGHT_CPUS, "Skylake-Server", 2048, instruction_ns=8)
        words = "console=ttyS0 panic=-1 nokaslr norandmaps mitigations=off"
        boot = Boot(kernel, folder / "initramfs", words, 1, folder / "stream", folder / "console")
        command = arguments(guest, boot, build_plugin.plugin(cache), Firmware(folder))
        costs = measure(command, boot.console)
        windows = [record for record in stream.read(boot.output) if isinstance(record, stream.Window)]
    header = ("workload", "instructions, million", "plain, s", "tracked, ratio", "window, ratio")
    print("".join(f"{word:>24}" for word in header))
    for number, load in enumerate(WORKLOADS):
        plain = median(costs["plain", load])
        instructions = windows[number].instructions / 1e6
        ratios = [median(costs[phase, load]) / plain for phase in ("tracked", "window")]
        print(f"{load:>24}{instructions:24.0f}{plain:24.2f}" + "".join(f"{ratio:24.2f}" for ratio in ratios))
    return 0


def measure(command: list[str], console: Path) -> dict[tuple[str, str], list[float]]:
    """Boot until the guest powers off and return (phase, workload) -> CPU seconds of each time."""
    costs: dict[tuple[str, str], list[float]] = defaultdict(list)
    began: dict[tuple[str, str], float] = {}
    seen = 0
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None:
        time.sleep(0.005)
        text = console.read_bytes() if console.exists() else b""
        marks = MARK.findall(text)
        for phase, load, event in marks[seen:]:
            key = phase.decode(), load.decode()
            if event == b"begins":
                began[key] = cpu_s(process.pid)
            else:
                costs[key].append(cpu_s(process.pid) - began[key])
        seen = len(marks)
    if process.returncode or not costs:
        raise SystemExit(console.read_bytes().decode(errors="replace")[-2000:])
    return costs


if __name__ == "__main__":
    sys.exit(main())
