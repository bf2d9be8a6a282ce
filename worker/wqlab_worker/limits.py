"""The limits on a command in the sandbox, and the names by which failures refer to them."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

MIB = 1 << 20
GIB = 1 << 30
BLOCK = 4096
DEPTH_LIMIT = 15
"""Levels of folders below a writable folder; with names of at most 255 bytes, paths then stay within PATH_MAX."""


class Stop(StrEnum):
    """The limit that a killed command exceeded."""

    TIME = "time"
    DISK = "disk"
    TMP = "size of /tmp"
    FILES = "number of files"
    MEMORY = "memory"
    PROCESSES = "processes"
    MACHINE = "machine memory"
    """The machine ran out of memory, and the command did not hold most of it: the lab is at fault."""


_CONTAINER_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def physical_memory() -> int:
    """Return the bytes of memory of this machine, or of the container in which this process runs."""
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for file in _CONTAINER_LIMITS:
        with suppress(OSError, ValueError):  # absent, or "max"
            physical = min(physical, int(file.read_text()))
    return physical


def _process_limit() -> int:
    return 512 + 16 * (os.cpu_count() or 1)


@dataclass(frozen=True)
class Limits:
    """Limits on the resources of one command."""

    wall_s: float = 3600.0
    disk_bytes: int = 2 * GIB
    """Total size of the writable folders, which are in memory."""
    file_bytes: int = 4 * GIB
    memory_bytes: int = field(default_factory=lambda: max(2 * GIB, physical_memory() * 3 // 4))
    """Memory of all processes and of the files that they have written."""
    processes: int = field(default_factory=_process_limit)
    """Processes and threads at once."""
    log_bytes: int = 64 * MIB
    """Further output is discarded."""
    tmp_bytes: int = GIB
    """Size of /tmp."""
