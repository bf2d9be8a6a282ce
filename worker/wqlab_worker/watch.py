"""Measure from outside what the processes of a sandbox use."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from .limits import BLOCK, DEPTH_LIMIT, physical_memory


@dataclass(frozen=True)
class Usage:
    """What a process and its descendants use."""

    tasks: int
    """Processes and threads."""
    resident_bytes: int


def usage_of(root: int) -> Usage:
    """Return the usage of the process `root` and its descendants."""
    parents: dict[int, int] = {}
    numbers: dict[int, tuple[int, int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):
            fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
            parents[int(folder.name)], numbers[int(folder.name)] = int(fields[1]), (int(fields[17]), int(fields[21]))
    family, grown = {root}, True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in family} - family
        family |= more
        grown = bool(more)
    found = [numbers[pid] for pid in family if pid in numbers]
    page = os.sysconf("SC_PAGE_SIZE")
    return Usage(sum(tasks for tasks, _ in found), sum(pages for _, pages in found) * page)


def disk_usage(folder: Path) -> int:
    """Return the bytes allocated under `folder`, without following links.

    Each entry counts at least one block, because inodes are limited too. Files that disappear during the count are
    ignored. A tree deeper than DEPTH_LIMIT counts as sys.maxsize.
    """
    total = 0
    pending = [(str(folder), 0)]
    while pending:
        path, depth = pending.pop()
        if depth > DEPTH_LIMIT:
            return sys.maxsize
        with suppress(OSError), os.scandir(path) as entries:
            for entry in entries:
                with suppress(OSError):
                    total += max(entry.stat(follow_symlinks=False).st_blocks * 512, BLOCK)
                    if entry.is_dir(follow_symlinks=False):
                        pending.append((entry.path, depth + 1))
    return total


def available_memory() -> int:
    """Return the bytes that programs can still use before the machine runs out of memory."""
    return _memory("MemAvailable")


def occupied_memory() -> int:
    """Return the bytes that processes and the kernel hold and cannot give back.

    The kernel counts them exactly, unlike free memory, of which each CPU keeps a part aside.
    """
    return _memory("AnonPages", "Shmem", "SUnreclaim", "PageTables", "KernelStack")


def _memory(*names: str) -> int:
    fields = (line.partition(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return sum(int(value.split()[0]) << 10 for name, _, value in fields if name in names)


def memory_reserve() -> int:
    """Return the bytes of available memory below which no command may go on."""
    return min(512 << 20, physical_memory() // 16)


def out_of_memory_kills() -> int:
    """Return how many processes the machine's kernel has killed for lack of memory since it booted."""
    for line in Path("/proc/vmstat").read_text().splitlines():
        name, _, value = line.partition(" ")
        if name == "oom_kill":
            return int(value)
    return 0
