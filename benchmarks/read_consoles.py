"""Read console logs for kernel reports: megabytes a second, and against splitting and decoding the same lines.

Without arguments, the logs are the cases of contracts/tests/consoles, which are nearly all reports, and quiet lines as
a boot prints them. Arguments are files to read instead.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from wqlab_contracts.consoles.detect import Detector

CASES = Path(__file__).parents[1] / "contracts/tests/consoles/cases"
BYTES = 2_000_000
"""Least size of what is read, so that a measurement takes about a second."""
CHUNK = 4096
QUIET = (
    "[    0.{n:06}] pci 0000:00:{n}.0: BAR 0 [mem 0xfebd4000-0xfebd4fff]",
    "[    1.{n:06}] NET: Registered PF_NETLINK/PF_ROUTE protocol family",
    "[    2.{n:06}] virtio_blk virtio{n}: [vda] 262144 512-byte logical blocks (134 MB/128 MiB)",
    "[    3.{n:06}][  T{n}] EXT4-fs (vda): mounted filesystem r/w with ordered data mode. Quota mode: none.",
    "wqlab: fio: jobs=16 iops={n} clat_p99={n}.25us",
)


def main() -> None:
    paths = [Path(name) for name in sys.argv[1:]]
    if paths:
        measure("files", b"".join(path.read_bytes() for path in paths))
        return
    cases = [line for path in sorted(CASES.glob("*.json")) for line in json.loads(path.read_text())["lines"]]
    measure("reports", "".join(f"{line}\n" for line in cases).encode())
    quiet = [line.format(n=number) for number in range(1000) for line in QUIET]
    measure("quiet lines", "".join(f"{line}\n" for line in quiet).encode())


def measure(name: str, once: bytes) -> None:
    data = once * (BYTES // len(once) + 1)
    read_s, split_s = seconds(read, data), seconds(split, data)
    print(f"{name}: {len(data) / read_s / 1e6:.1f} MB/s, {read_s / split_s:.0f} times as long as splitting the lines")


def read(data: bytes) -> None:
    detector = Detector()
    for start in range(0, len(data), CHUNK):
        detector.feed(data[start : start + CHUNK])
    detector.flush()


def split(data: bytes) -> None:
    for line in data.split(b"\n"):
        line.decode("utf-8", "replace")


def seconds(run: Callable[[bytes], None], data: bytes) -> float:
    """Return the shortest of three times of the CPU."""
    times = []
    for _ in range(3):
        start = time.process_time()
        run(data)
        times.append(time.process_time() - start)
    return min(times)


if __name__ == "__main__":
    main()
