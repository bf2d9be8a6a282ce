"""Name the cache lines of data of a window: worker pool, per-CPU variable, slab cache or static variable."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from wqlab_bench.instrument.stream import Line, SpinWait, Window

from ...stacks.counted_code import KERNEL_SPACE, CountedCode, with_offset

LINE_BYTES = 64
NAMES_LIMIT = 3
"""Names of merged slab caches that are shown."""
UNBOUND_POOL = "unbound worker_pool"
ALLOCATED_PER_CPU = "allocated per-CPU memory"
USER_SPACE = "user space"


@dataclass(frozen=True)
class DataName:
    """What the data of a cache line is."""

    text: str
    """`runqueues (per-CPU) + 0x40`, `pool_workqueue cache + 0x80`; empty if it cannot be told."""
    cpu: int | None = None
    """CPU of per-CPU memory."""


def per_cpu_offset(window: Window, address: int) -> tuple[int, int] | None:
    """Return CPU and offset of an address in the CPU's per-CPU memory; None if it is not in such memory."""
    for cpu, memory in window.per_cpu.items():
        if 0 <= address - memory.address < memory.size:
            return cpu, address - memory.address
    return None


def name_of(window: Window, line: Line | SpinWait, code: CountedCode, merged: dict[str, list[str]]) -> DataName:
    """Return the name of a cache line. `code` was asked for it, `merged` is what `merged_caches` returns."""
    address = line.virtual if isinstance(line, Line) else line.line
    if address < KERNEL_SPACE:
        return DataName(USER_SPACE)
    for pool in window.pools:
        # The lines of a CPU's pools have the name of the per-CPU variable.
        if pool.cpu is None and -LINE_BYTES < address - pool.address < pool.size:
            return DataName(with_offset(UNBOUND_POOL, max(0, address - pool.address)))
    if found := per_cpu_offset(window, address):
        cpu, offset = found
        return DataName(code.per_cpu.get(offset) or ALLOCATED_PER_CPU, cpu)
    if line.slab is not None:
        name = f"{_with_merged(line.slab.cache, merged)} cache"
        # A line has several smaller objects, so that its offset says nothing.
        return DataName(with_offset(name, line.slab.offset if line.slab.size > LINE_BYTES else 0))
    return DataName(code.data.get(address, ""))


def merged_caches(links: str) -> dict[str, list[str]]:
    """Return the names of the slab caches that share their slabs with each cache.

    `links` is `ls -l /sys/kernel/slab`: caches that were merged are links to the same folder.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for line in links.splitlines():
        words = line.split()
        match words[-3:]:
            case [name, "->", target] if name.isprintable():
                groups[target].append(name)
    return {name: sorted(set(group) - {name}) for group in groups.values() for name in group}


def _with_merged(name: str, merged: dict[str, list[str]]) -> str:
    others: Iterable[str] = merged.get(name, ())
    shown = [name, *others]
    more = f" and {len(shown) - NAMES_LIMIT} more" if len(shown) > NAMES_LIMIT else ""
    return "/".join(shown[:NAMES_LIMIT]) + more
